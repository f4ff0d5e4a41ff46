// launch.h -- one launch for all experts of a layer, compared with double precision.
#pragma once

#include <vector>

#include "example/checkpoint/activations.h"
#include "example/checkpoint/checkpoint.h"
#include "example/checkpoint/verify.h"

namespace checkpoint {

struct Launched {
  std::vector<uint16_t> c;  // [rows, n] BF16
  Verdict verdict;
};

// Quantises the input, launches, and prints what it does and how near C is. Of one product the activation
// is not looked at.
Launched launch(const Sides& sides, const Input& input, const Activation& activation);

}  // namespace checkpoint
