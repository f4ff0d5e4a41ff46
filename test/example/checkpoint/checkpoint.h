// checkpoint.h -- from the tensors of a checkpoint to gate and up: where they lie, and what they are worth.
// linear.h has the same of a layer that is one product.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "example/checkpoint/config.h"
#include "example/checkpoint/layout.h"
#include "example/checkpoint/names.h"

namespace checkpoint {

// A weight of one expert, [n, k], where the file has it.
struct Matrix {
  std::string name;
  Encoding encoding;
  const uint8_t* elements;  // GGUF: blocks, which have the factors as well
  int64_t row_bytes;        // from one row to the next: of interleaved rows twice what a row has
  const uint8_t* factors;   // GGUF: nullptr
  int64_t factor_row_bytes;
  // An element is code * factor * scale. Both scales are decode scales, whatever the file has; of MXFP4,
  // which has none, 1.
  double scale;
  std::optional<double> input_scale;  // the same of A, as it was found by calibration
  std::vector<float> bias;            // [n], or empty
};

// What was read for a launch, and how.
struct Layer {
  Convention convention;
  std::string name, layout;         // the name of the first tensor of elements, and in words how its rows lie
  std::vector<std::string> notes;   // "NAME TYPE [SHAPE]" of each tensor that was used
  std::vector<std::string> others;  // names of those beside them that were not, and of metadata
  int32_t n, k;
  uint64_t first_expert;  // the number of the first, where they have numbers
  Moved moved;
};

struct Mlp : Layer {
  bool gpt_oss;                    // by its names or by its configuration: the activation is that of gpt-oss
  std::string activation_note;     // what the activation that is computed is not, or ""
  std::vector<Matrix> gates, ups;  // one of each for every expert
};

// What a launch multiplies A with: gate and up, or one weight alone. One of each for every expert.
struct Sides {
  const std::vector<Matrix>& first;
  const std::vector<Matrix>* second;  // nullptr of one product
  int32_t n, k;

  size_t experts() const { return first.size(); }
};

struct Choice {
  std::string gate;          // as list_gates names it; "" = the first that is NVFP4
  bool interleaved = false;  // a fused tensor has the rows g0, u0, g1, u1, ...
  int tp_rank = 0, tp_size = 1;
  Config config = {};
};

// Throws FormatError, which begins with a tensor's name, where something is missing or of another format.
Mlp find_mlp(const Tensors& tensors, const Choice& choice);

}  // namespace checkpoint
