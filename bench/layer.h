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

  double flops() const { return up.flops() + down.flops(); }
  // Returns "MxIxK", as --shape has it.
  std::string text() const;
};

Layer dense_layer(int32_t m, int32_t intermediate, int32_t k, std::string label);

// Parses the arguments of --shape; throws std::runtime_error.
Layer parse_dense_layer(const std::string& text);

// Returns those of models that are measured where no shape is named.
std::vector<Layer> dense_layers();

// Returns each of them with each of these numbers of rows, and one that is there twice once.
std::vector<Layer> with_rows(const std::vector<Layer>& layers, const std::vector<int32_t>& rows);

}  // namespace bench
