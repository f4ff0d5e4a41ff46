// compare.cpp -- see compare.h.
#include "support/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "ref/formats.h"
#include "ref/nvfp4.h"

namespace dualgemm_test {

static ref::Format type_of(const Output& out) {
  switch (out.dtype) {
    case DUALGEMM_DTYPE_FP16: return ref::Format::kFp16;
    case DUALGEMM_DTYPE_BF16: return ref::Format::kBf16;
    case DUALGEMM_DTYPE_FP32: return ref::Format::kFp32;
    case DUALGEMM_DTYPE_FP8_E4M3: return ref::Format::kE4m3;
    default: throw std::invalid_argument("compare: no rounding for output type " + std::to_string(out.dtype));
  }
}

static std::string place(const Output& got, int64_t i) {
  return "C[" + std::to_string(i / got.n) + "][" + std::to_string(i % got.n) + "] = ";
}

// Every output has what it should be, whether right(i, actual) says that it is, and the error that is
// allowed.
template <class Expected, class Right, class Allowed>
static Comparison compare_all(const Output& got, Expected expected, Right right, Allowed allowed) {
  Comparison result;
  for (int64_t i = 0; i < got.m * got.n; ++i) {
    const double actual = got.value(i / got.n, i % got.n);
    if (right(i, actual)) continue;
    if (result.mismatches++ == 0) {
      char text[120];
      std::snprintf(text, sizeof text, "%.9g, expected %.9g, allowed error %.3g", actual,
                    static_cast<double>(expected(i)), allowed(i));
      result.first = place(got, i) + text;
    }
  }
  return result;
}

static Comparison compare_nvfp4(const Output& got, const ref::Matrix& expected,
                                const std::vector<float>& error) {
  Comparison result;
  const auto count = [&](int64_t i, const char* what, int value) {
    if (result.mismatches++ != 0) return;
    char text[160];
    std::snprintf(text, sizeof text, "%s 0x%X, expected %.9g times %.9g, error of that %.3g, factor 0x%02X",
                  what, value, expected.c[i], static_cast<double>(got.encode), static_cast<double>(error[i]),
                  got.factors[i / ref::kBlock]);
    result.first = place(got, i) + text;
  };
  for (int64_t i = 0; i < got.m * got.n; i += ref::kBlock) {
    uint8_t codes[ref::kBlock];
    for (int64_t j = 0; j < ref::kBlock; ++j) codes[j] = got.code(i / got.n, i % got.n + j);
    const uint8_t factor = got.factors.at(i / ref::kBlock);
    const ref::BlockVerdict verdict = ref::judge_block(&expected.c[i], &error[i], got.encode, factor, codes);
    if (!verdict.factor) count(i, "the factor", factor);
    for (int64_t j = 0; j < ref::kBlock; ++j)
      if (verdict.wrong >> j & 1) count(i + j, "the code", codes[j]);
    result.exceptions += verdict.exceptions;
  }
  return result;
}

Comparison compare(const Output& got, const ref::Matrix& expected) {
  if (got.m != expected.m || got.n != expected.n) throw std::invalid_argument("compare: of different sizes");
  const std::vector<float>& error = expected.error[ref::split_index(got.split_k)];
  if (error.size() != expected.c.size())
    throw std::invalid_argument("compare: no bound for " + std::to_string(got.split_k) + " slices of K");
  if (got.dtype == DUALGEMM_DTYPE_NVFP4) return compare_nvfp4(got, expected, error);
  // The encode scale is a product of two, and C is one with it.
  const bool scaled = got.dtype == DUALGEMM_DTYPE_FP8_E4M3;
  const double scale = scaled ? got.encode : 1;
  const auto value = [&](int64_t i) { return expected.c[i] * scale; };
  const auto bound = [&](int64_t i) {
    return error[i] * scale + (scaled ? 2 * 0x1p-24 * std::fabs(value(i)) : 0);
  };
  const ref::Format type = type_of(got);
  return compare_all(
      got, value, [&](int64_t i, double actual) { return ref::may_become(type, value(i), bound(i), actual); },
      [&](int64_t i) { return bound(i) + ref::conversion_error(type, std::fabs(value(i)) + bound(i)); });
}

Comparison compare_contest(const Output& got, const ref::DualGemm& expected) {
  const auto allowed = [&](int64_t i) { return 1e-3 + 1e-3 * std::fabs(double{expected.tensor_core[i]}); };
  return compare_all(
      got, [&](int64_t i) { return expected.tensor_core[i]; },
      [&](int64_t i, double actual) {
        const double wanted = expected.tensor_core[i];
        if (std::isfinite(actual)) return std::fabs(actual - wanted) <= allowed(i);
        return ref::may_become(type_of(got), wanted, allowed(i), actual);
      },
      allowed);
}

bool may_be_amax(float got, const std::vector<const ref::Matrix*>& expected, int32_t split_k, float before) {
  double low = before, high = before;
  for (const ref::Matrix* const one : expected)
    for (size_t i = 0; i < one->c.size(); ++i) {
      const double c = std::fabs(one->c[i]), error = one->error[ref::split_index(split_k)].at(i);
      if (std::isnan(c)) return std::isnan(got);
      low = std::max(low, c - error);
      high = std::max(high, c + error);
    }
  return got >= low && got <= high;
}

}  // namespace dualgemm_test
