// layer.h -- the layers that --chain measures: gate and up, whose NVFP4 output is the A of down.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "inputs.h"
#include "shapes.h"

namespace bench {

// The types of C of the two launches.
inline constexpr dualgemm_dtype_t kBetween = DUALGEMM_DTYPE_NVFP4, kOut = DUALGEMM_DTYPE_FP16;

// The first launch has two products, A [M, K] to C [M, I]; the second has one, that C to [M, K].
struct Layer {
  Shape up, down;
  // Of a layer of experts, which are groups: how many tokens there are, and the experts that each has chosen.
  int32_t tokens = 0, top_k = 0;
  std::vector<int32_t> ids = {};  // [tokens, top_k]

  bool experts() const { return top_k > 0; }
  double flops() const { return up.flops() + down.flops(); }
  // Returns "MxIxK" or "T,E,topkxIxK", as --shape has it.
  std::string text() const;
};

Layer dense_layer(int32_t m, int32_t intermediate, int32_t k, std::string label);

// `tokens` tokens choose `top_k` of `experts` each. The experts have as many rows as skewed_rows gives them;
// a token chooses one twice only where that one has more rows than there are tokens.
Layer expert_layer(int32_t tokens, int32_t experts, int32_t top_k, int32_t intermediate, int32_t k,
                   std::string label);

// Parses the arguments of --shape; throws std::runtime_error.
Layer parse_dense_layer(const std::string& text);
Layer parse_expert_layer(const std::string& text);

// Returns those of models that are measured where no shape is named.
std::vector<Layer> dense_layers();
std::vector<Layer> expert_layers();

// Returns each of them with each of these numbers of rows, or of tokens, and one that is there twice once.
std::vector<Layer> with_rows(const std::vector<Layer>& layers, const std::vector<int32_t>& rows);

}  // namespace bench
