// compare.cpp -- see compare.h.
#include "support/compare.h"

#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "ref/formats.h"

namespace dualgemm_test {
namespace {

ref::Half type_of(const Output& out) {
  if (out.dtype == DUALGEMM_DTYPE_FP16) return ref::Half::kFp16;
  if (out.dtype == DUALGEMM_DTYPE_BF16) return ref::Half::kBf16;
  throw std::invalid_argument("compare: no rounding for output type " + std::to_string(out.dtype));
}

// Every output has what it should be, whether right(i, actual) says that it is, and the error that is
// allowed.
template <class Expected, class Right, class Allowed>
Comparison compare_all(const Output& got, const Expected& expected, Right right, Allowed allowed) {
  Comparison result;
  for (int64_t i = 0; i < got.m * got.n; ++i) {
    const double actual = got.value(i / got.n, i % got.n);
    if (right(i, actual)) continue;
    if (result.mismatches++ == 0) {
      char text[160];
      std::snprintf(text, sizeof text, "C[%lld][%lld] = %.9g, expected %.9g, allowed error %.3g",
                    static_cast<long long>(i / got.n), static_cast<long long>(i % got.n), actual,
                    static_cast<double>(expected[i]), allowed(i));
      result.first = text;
    }
  }
  return result;
}

}  // namespace

Comparison compare(const Output& got, const ref::DualGemm& expected) {
  const std::vector<float>& error = expected.error[ref::split_index(got.split_k)];
  return compare_all(
      got, expected.c,
      [&](int64_t i, double actual) {
        return ref::may_become(type_of(got), expected.c[i], error[i], actual);
      },
      [&](int64_t i) {
        return error[i] + ref::conversion_error(type_of(got), std::fabs(expected.c[i]) + error[i]);
      });
}

Comparison compare_contest(const Output& got, const ref::DualGemm& expected) {
  const auto allowed = [&](int64_t i) { return 1e-3 + 1e-3 * std::fabs(double{expected.tensor_core[i]}); };
  return compare_all(
      got, expected.tensor_core,
      [&](int64_t i, double actual) {
        const double wanted = expected.tensor_core[i];
        if (std::isfinite(actual)) return std::fabs(actual - wanted) <= allowed(i);
        return ref::may_become(type_of(got), wanted, allowed(i), actual);
      },
      allowed);
}

}  // namespace dualgemm_test
