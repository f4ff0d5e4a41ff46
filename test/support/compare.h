// compare.h -- is an output within what the kernel's arithmetic allows? The bound before the conversion to
// the output type comes from ref/dual_gemm.h, what the conversion adds from ref/formats.h and ref/nvfp4.h.
// NaN where a number belongs, and a number where NaN belongs, is a mismatch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ref/dual_gemm.h"
#include "support/problem.h"

namespace dualgemm_test {

struct Comparison {
  int64_t mismatches = 0;
  std::string first;  // the first mismatch: row, column, both values, the bound
  // Of NVFP4: factors and codes within the bound that are not those of the exact values. They are few.
  int64_t exceptions = 0;
};

// Compares with the exact result and the derived bound.
Comparison compare(const Output& got, const ref::Matrix& expected);

// Compares by the rule of the contest these shapes come from: |got - expected| <= 1e-3 + 1e-3 |expected|,
// against sums rounded as the tensor core rounds them (the contest's own reference runs on the same tensor
// cores).
Comparison compare_contest(const Output& got, const ref::DualGemm& expected);

// Says whether `got` may be the largest magnitude of these results, and of `before`, which stood there; NaN
// belongs where any result is NaN.
bool may_be_amax(float got, const std::vector<const ref::Matrix*>& expected, int32_t split_k,
                 float before = 0);

}  // namespace dualgemm_test
