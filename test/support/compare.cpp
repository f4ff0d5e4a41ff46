// compare.cpp -- see compare.h.
//
// Conversion to the output type rounds to nearest: half an ulp, relative 2^-11 for fp16 and 2^-8 for bf16,
// but no finer than half the smallest subnormal. It applies to the kernel's number, which is at most
// |expected| + error. A number at or above the overflow threshold (the largest finite number plus half an
// ulp) becomes infinity.
#include "support/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace dualgemm_test {
namespace {

struct Rounding {
  double relative, absolute, overflow;
};

Rounding rounding_of(dualgemm_dtype_t dtype) {
  if (dtype == DUALGEMM_DTYPE_FP16) return {0x1p-11, 0x1p-25, 65520};
  return {0x1p-8, 0x1p-134, 0x1.FFp127};
}

template <class Bound>
Comparison compare_all(const Output& got, const std::vector<double>& expected, Bound bound_of) {
  const double overflow = rounding_of(got.dtype).overflow;
  Comparison result;
  for (int64_t i = 0; i < got.m * got.n; ++i) {
    const double actual = got.value(i / got.n, i % got.n), wanted = expected[i];
    const double bound = bound_of(i);
    bool ok;
    if (std::isnan(wanted)) {
      ok = std::isnan(actual);
    } else if (std::isinf(actual)) {
      ok = std::signbit(actual) == std::signbit(wanted) && std::fabs(wanted) + bound >= overflow;
    } else {
      const double error = std::fabs(actual - wanted);
      ok = error <= bound;
      if (error > 0) result.worst = std::max(result.worst, error / bound);
    }
    if (ok) continue;
    if (result.mismatches++ == 0) {
      char text[160];
      std::snprintf(text, sizeof text, "C[%lld][%lld] = %.9g, expected %.9g, allowed error %.3g",
                    static_cast<long long>(i / got.n), static_cast<long long>(i % got.n), actual, wanted,
                    bound);
      result.first = text;
    }
  }
  return result;
}

}  // namespace

Comparison compare(const Output& got, const ref::DualGemm& expected) {
  const Rounding rounding = rounding_of(got.dtype);
  return compare_all(got, expected.c, [&](int64_t i) {
    const double before = expected.error[i];
    return before + std::max((std::fabs(expected.c[i]) + before) * rounding.relative, rounding.absolute);
  });
}

Comparison compare_contest(const Output& got, const ref::DualGemm& expected) {
  const std::vector<double> sums(expected.tensor_core.begin(), expected.tensor_core.end());
  return compare_all(got, sums, [&](int64_t i) { return 1e-3 + 1e-3 * std::fabs(sums[i]); });
}

}  // namespace dualgemm_test
