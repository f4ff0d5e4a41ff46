// checkpoint.h -- from the tensors of a checkpoint to gate and up: where they lie, and what they are worth.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "example/checkpoint/config.h"
#include "example/checkpoint/layout.h"
#include "example/checkpoint/names.h"

namespace checkpoint {

// Gate or up of one expert, [n, k], where the file has it.
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

struct Mlp {
  Convention convention;
  std::string gate, layout;         // the name of gate's tensor, and in words how its rows lie
  std::vector<std::string> notes;   // "NAME TYPE [SHAPE]" of each tensor that was used
  std::vector<std::string> others;  // names of those beside them that were not, and of metadata
  bool gpt_oss;                     // by its names or by its configuration: the activation is that of gpt-oss
  std::string activation_note;      // what the activation that is computed is not, or ""
  int32_t n, k;
  uint64_t first_expert;           // the number of the first, where they have numbers
  std::vector<Matrix> gates, ups;  // one of each for every expert
  Moved moved;
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
