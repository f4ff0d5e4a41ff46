// names.h -- which tensors of a checkpoint are gate, up and down.
#pragma once

#include <string>
#include <vector>

#include "example/checkpoint/tensor.h"

namespace checkpoint {

enum class Convention { kModelOpt, kCompressedTensors, kComfyUi, kGptOss, kGguf };
const char* name_of(Convention convention);

constexpr uint64_t kMostExperts = 1024;  // DUALGEMM_MAX_GROUPS

// What a model calls its projections.
struct Spelling {
  const char *gate, *up;  // up is nullptr where one tensor has both
  const char* down;
};

// What a format appends to that. What it does not have is nullptr.
struct Names {
  Convention convention;
  const char *elements, *factors, *scale, *input_scale, *bias;
};

struct Gate {
  std::string before, after;  // "model.layers.3.mlp.experts.", "."; without experts "model.layers.0.mlp.", ""
  const Spelling* spelling;
  const Names* names;
  const StoredTensor* first;  // its elements, of the first expert in the file
  // The lowest number of an expert, and the highest plus 1, which is 0 where the name has none. A file of one
  // rank may begin with any.
  uint64_t first_expert = 0, end_expert = 0;

  bool numbered() const { return end_expert > 0; }
  std::string stem(const char* leaf, uint64_t expert) const {
    return before + (numbered() ? std::to_string(expert) + after : "") + leaf;
  }
  std::string label(const char* leaf) const {
    return before + (numbered() ? "*" + after : "") + leaf + names->elements;
  }
  std::string label() const { return label(spelling->gate); }
};

// The names of all tensors that are a gate, or gate and up in one. Experts count as one, numbered *.
std::vector<std::string> list_gates(const Tensors& tensors);

// The gate that list_gates names so, or of "" the first that has elements of four bits. Throws FormatError if
// there is none.
Gate choose_gate(const Tensors& tensors, const std::string& wanted);

// A tensor of elements by its own name, of whichever layer.
struct Weight {
  std::string stem;
  const Names* names;
};

// Throws FormatError if there is no tensor of this name. Whether it is a weight its reader says.
Weight choose_weight(const Tensors& tensors, const std::string& name);

// Throws FormatError: the tensor's name, its type and shape, and why.
[[noreturn]] void refuse(const StoredTensor& tensor, const std::string& why);

}  // namespace checkpoint
