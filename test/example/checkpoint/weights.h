// weights.h -- gate or up of all experts, from the file to the device, in the form a launch reads.
#pragma once

#include <vector>

#include "example/checkpoint/checkpoint.h"
#include "example/checkpoint/device.h"

namespace checkpoint {

struct Weights {
  DeviceBuffer elements;  // [experts, n, k] packed E2M1: B1 or B2
  DeviceBuffer factors;   // [experts] times dualgemm_sf_size(n, k) bytes: SFB1 or SFB2
  // [experts]: what goes into the alphas besides the scales of the checkpoint. 1, but for MXFP4.
  std::vector<double> scales;
};

Weights upload(const std::vector<Matrix>& matrices, int32_t n, int32_t k);

// The same numbers, decoded here from the bytes of the file, without `scale`: [n, k].
std::vector<float> decode(const Matrix& matrix, int32_t n, int32_t k);

}  // namespace checkpoint
