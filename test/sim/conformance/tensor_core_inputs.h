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
//   one_sign   how far sums grow above their terms, and what is left of their last places
//   few        which products are aligned together: all but three are zero, and two of those cancel
//   far        accumulators far above or below the products, and alone
#pragma once

#include <cstdint>
#include <vector>

namespace conformance {

constexpr const char* kProductFamilyNames[] = {"near",  "wide",  "cancel",   "subnormal", "special",
                                               "split", "zeros", "one_sign", "few",       "far"};
constexpr int kProductFamilies = sizeof kProductFamilyNames / sizeof kProductFamilyNames[0];

enum class OperandType : uint8_t { kF16, kBf16, kE4m3, kE5m2 };

struct ProductInputs {
  std::vector<uint32_t> a, b;  // 64 and n rows of 32 bytes of each block
  std::vector<float> c;        // 64 x n
};

// Returns the inputs of a family, by its place in the list, for `blocks` products. They depend only on the
// arguments. The types are of one size.
ProductInputs product_inputs(OperandType a, OperandType b, int family, int n, int blocks);

}  // namespace conformance
