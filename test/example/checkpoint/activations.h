// activations.h -- A of a launch: random activations, the scale that the checkpoint has for them, and their
// quantisation.
#pragma once

#include <vector>

#include "example/checkpoint/checkpoint.h"
#include "example/checkpoint/device.h"

namespace checkpoint {

// Activations, and the rows of each expert: what a layer before this one and its router would give.
struct Input {
  std::vector<uint16_t> x;     // [rows, k] BF16
  std::vector<int32_t> first;  // [experts + 1]: expert e has the rows first[e] to first[e + 1] - 1

  int32_t rows() const { return first.back(); }
};

Input make_input(int32_t rows, int32_t k, size_t experts);

// Of each expert the scale that its rows of A are quantised with, as a decode scale; empty where there is
// none.
std::vector<double> input_scales(const Sides& sides);

// A and SFA, and what of their scale is not in the alphas.
struct Activations {
  DeviceBuffer elements, factors, scales;
};

// Quantises, and puts into the launch what it has to know of it: where A, SFA and computed scales are.
Activations quantise(const Input& input, const Sides& sides, const std::vector<double>& scales,
                     const DeviceBuffer& first, dualgemm_args_t& launch);

}  // namespace checkpoint
