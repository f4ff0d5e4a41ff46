// tensor_core_inputs.h -- operands and accumulators of wgmma.mma_async, in families that ask different things
// of the sum:
//
//   near       nothing is cut
//   wide       how far terms are aligned and cut off
//   cancel     what is left of large terms
//   subnormal  what small operands come to
//   special    what is no number
//   split      how a subnormal operand that meets a large one is aligned
//   zeros      whether zero that meets the largest numbers counts, and many products at one place
#pragma once

#include <cstdint>
#include <vector>

namespace conformance {

constexpr const char* kProductFamilyNames[] = {"near",    "wide",  "cancel", "subnormal",
                                               "special", "split", "zeros"};
constexpr int kProductFamilies = sizeof kProductFamilyNames / sizeof kProductFamilyNames[0];

struct ProductInputs {
  std::vector<uint16_t> a, b;  // 64 x 16 and n x 16 of each block
  std::vector<float> c;        // 64 x n
};

// Returns the inputs of a family, by its place in the list, for `blocks` products. They depend only on the
// arguments.
ProductInputs product_inputs(bool bf16, int family, int n, int blocks);

}  // namespace conformance
