// dual_gemm.h -- the reference result: C = f(alpha1 * A * B1^T) * (alpha2 * A * B2^T) of NVFP4 operands in
// double precision, and for every output how far the kernel's arithmetic may be from it. Written from the
// formats; knows neither the library nor the simulator. Fast enough for full-size problems on a CPU.
#pragma once

#include <cstdint>
#include <vector>

#include "ref/activation.h"

namespace ref {

// `rows` rows of k e2m1 codes, `pitch` bytes from row to row,
// and their scale factors in the layout of formats.h.
struct Operand {
  const uint8_t* codes;
  int64_t pitch;
  const uint8_t* scales;
  int64_t rows;
};

struct DualGemm {
  int64_t m = 0, n = 0;
  std::vector<double> c;     // [m, n], exact up to double rounding
  std::vector<float> error;  // [m, n], bound of |kernel - c| before the conversion to the output type
  // [m, n], with the sums rounded as the tensor core rounds them, the rest in double.
  std::vector<float> tensor_core;
};

// k is a multiple of 16. A NaN scale factor makes every output that uses it NaN.
DualGemm dual_gemm(const Operand& a, const Operand& b1, const Operand& b2, int64_t k, float alpha1,
                   float alpha2, const Activation& activation);

}  // namespace ref
