// verify.h -- whether C is what the problem's numbers say, by the reference of the tests and within the bound
// that is derived there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "inputs.h"
#include "shapes.h"

namespace bench {

// The products stay fp32 on their way to C, or are rounded to the type of C first; or they are sums of
// others, in fp32 and of any order, which stay fp32 or are rounded to fp16 or bf16 before they meet their
// alphas. Where A is in FP8 the sums of others may be those of FP8, in the order of K, and its rows have one
// factor, kFactorOfA.
enum class Rounding { kOnce, kIntermediates, kAnyOrder, kFp16Products, kBf16Products };

// C and its factors of all problems of an input set, as they lie on the device.
struct Written {
  std::vector<uint8_t> c, sfc;
};

// Before the launch both were filled with this byte: NaN in every type and as a factor.
inline constexpr uint8_t kUnwritten = 0xFF;

// Compares `samples` results, or more if there are many problems, taken in turns from all problems: their
// corners first, then anywhere. Of an NVFP4 C the whole block of a sample is judged. Rows that no group owns
// have to be unwritten. Returns the first mismatch, or an empty string.
std::string verify(const Shape& shape, const Epilogue& epilogue, const InputSet& x, const Written& written,
                   int samples, Rounding rounding, Rng& random);

}  // namespace bench
