// verify.cpp -- see verify.h.
#include "verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <stdexcept>

#include "budget.h"
#include "test/ref/dual_gemm.h"
#include "test/ref/formats.h"
#include "test/ref/nvfp4.h"

namespace bench {
namespace {

constexpr int64_t kSamplesPerProblem = 8;  // at least: the corners, and as many anywhere

// This is a number, and how far the kernel's may be from it.
struct Expected {
  double value, error;
};

ref::Format format_of(const Epilogue& epilogue) {
  switch (epilogue.dtype) {
    case DUALGEMM_DTYPE_FP16: return ref::Format::kFp16;
    case DUALGEMM_DTYPE_BF16: return ref::Format::kBf16;
    case DUALGEMM_DTYPE_FP32: return ref::Format::kFp32;
    case DUALGEMM_DTYPE_FP8_E4M3: return ref::Format::kE4m3;
    default: throw std::logic_error("elements of this type do not stand alone");
  }
}

// Returns the tensor core of the current device: sums of each keep a bound of their own.
ref::TensorCore tensor_core() {
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  check(dualgemm_current_device(&device), "dualgemm_current_device");
  return device.cc_major == 9 ? ref::TensorCore::kWgmma : ref::TensorCore::kTcgen05;
}

class Verifier {
 public:
  Verifier(const Shape& s, const Epilogue& epilogue, const InputSet& x, const Written& written,
           Rounding rounding)
      : s_(s),
        epilogue_(epilogue),
        x_(x),
        written_(written),
        rounding_(rounding),
        activation_(s.products == 2 ? ref::activation(epilogue.activation)
                                    : ref::linear_activation(epilogue.linear_activation)),
        core_(tensor_core()) {}

  // Names the first element of C that belongs to no problem and was written, or returns an empty string.
  std::string outside() const {
    const int64_t row_bytes = epilogue_.pitch(s_.n) * epilogue_.bits() / 8;
    for (int32_t problem = 0; problem < s_.problems(); ++problem) {
      const auto first = written_.c.begin() + x_.place(problem).row * row_bytes;
      const auto begin = first + s_.rows(problem) * row_bytes;
      const auto end = written_.c.begin() + x_.place(problem + 1).row * row_bytes;
      const auto found = std::find_if(begin, end, [](uint8_t byte) { return byte != kUnwritten; });
      if (found == end) continue;
      const int64_t byte = found - first;
      return fmt::format("problem {}: C[{}][{}] belongs to no group and was written", problem,
                         byte / row_bytes, byte % row_bytes * 8 / epilogue_.bits());
    }
    return {};
  }

  // Says what is wrong with a result, or returns an empty string.
  std::string judge(int32_t problem, int32_t row, int32_t column) const {
    return epilogue_.blocks() ? judge_block(problem, row, column) : judge_one(problem, row, column);
  }

 private:
  // The bound holds however the launch splits K. A gate or an up that is rounded to the type of C on its way
  // moves by that, too; what it overflows to is not accounted for, and does not occur with these data.
  Expected preactivation(const Row& a, const Row& b, double alpha) const {
    const ref::Sum sum = ref::product(a.operand(), b.operand(), s_.k, core_).sums[0];
    const double lost = *std::max_element(std::begin(sum.lost), std::end(sum.lost));
    if (rounding_ != Rounding::kOnce && rounding_ != Rounding::kIntermediates)
      return of_others(sum.exact, s_.fp8_a() ? lost : 0, magnitude(a, b), alpha);
    const double factor = alpha * a.factor;
    Expected out{factor * sum.exact, std::fabs(factor) * lost};
    if (s_.fp8_a())
      out.error += 0x1p-24 * (std::fabs(out.value) + out.error);  // the factor is a product more
    if (rounding_ == Rounding::kIntermediates)
      out.error += ref::conversion_error(format_of(epilogue_), std::fabs(out.value) + out.error);
    return out;
  }
  // The products of two operands are exact in fp32. Each addition loses less than an ulp of a sum that no
  // order makes larger than all magnitudes together. What sums of FP8 in tensor cores lose comes on top.
  Expected of_others(double exact, double lost, double magnitude, double alpha) const {
    const double factor = s_.fp8_a() ? kFactorOfA : 1;
    exact *= factor;
    lost = factor * (lost + 0x1p-23 * s_.k * magnitude);
    const ref::Format to = rounding_ == Rounding::kAnyOrder       ? ref::Format::kFp32
                           : rounding_ == Rounding::kFp16Products ? ref::Format::kFp16
                                                                  : ref::Format::kBf16;
    const double error = lost + ref::conversion_error(to, std::fabs(exact) + lost);
    return {alpha * exact, std::fabs(alpha) * error};
  }
  // Returns the sum of |a b| over K.
  double magnitude(const Row& a, const Row& b) const {
    double sum = 0;
    for (int32_t i = 0; i < s_.k; ++i) sum += std::fabs(number(a, i) * number(b, i));
    return sum;
  }
  static double number(const Row& row, int32_t i) {
    const auto wide = [&](ref::Format type) {
      return ref::decode(type, row.codes[2 * i] | uint32_t{row.codes[2 * i + 1]} << 8);
    };
    const auto code = [&] { return ref::nibble(row.codes.data(), i); };
    const auto k = static_cast<int64_t>(row.codes.size()) * 2;  // of those with codes
    switch (row.elements) {
      case ref::Elements::kFp16: return wide(ref::Format::kFp16);
      case ref::Elements::kBf16: return wide(ref::Format::kBf16);
      case ref::Elements::kE4m3: return ref::e4m3_decode(row.codes[i]);
      case ref::Elements::kMxfp4:
        return std::ldexp(ref::mxfp4_weight(code(), row.scales[ref::mx_sf_offset(k, 0, i / ref::kMxBlock)]),
                          row.exponent);
      default:
        return double{ref::e2m1_decode(code())} *
               ref::ue4m3_decode(row.scales[ref::sf_offset(k, 0, i / ref::kBlock)]);
    }
  }
  Expected result(const Row& a, int32_t problem, int32_t column) const {
    const Place& place = x_.place(problem);
    const Expected g = preactivation(a, x_.row_of_b(0, problem, column), place.alpha1);
    const Expected u =
        s_.products == 2 ? preactivation(a, x_.row_of_b(1, problem, column), place.alpha2) : Expected{1, 0};
    return {activation_.f(g.value) * activation_.h(u.value),
            ref::error_bound(activation_, g.value, u.value, g.error, u.error)};
  }
  int64_t element(int32_t problem, int32_t row, int32_t column) const {
    return (x_.place(problem).row + row) * epilogue_.pitch(s_.n) + column;
  }

  std::string judge_one(int32_t problem, int32_t row, int32_t column) const {
    Expected y = result(x_.row_of_a(problem, row), problem, column);
    if (epilogue_.encodes()) {  // a product of its own, which is rounded
      const double scale = x_.args().c_global_scale;
      y = {y.value * scale, y.error * scale + 0x1p-24 * (std::fabs(y.value) + y.error) * scale};
    }
    const int64_t bytes = epilogue_.bits() / 8, at = element(problem, row, column) * bytes;
    uint32_t bits = 0;
    for (int64_t b = 0; b < bytes; ++b) bits |= uint32_t{written_.c[at + b]} << 8 * b;
    const ref::Format type = format_of(epilogue_);
    const double got = ref::decode(type, bits);
    if (ref::may_become(type, y.value, y.error, got)) return {};
    return fmt::format("C[{}][{}] = {:.9g}, expected {:.9g}, allowed error {:.3g}", row, column, got, y.value,
                       y.error + ref::conversion_error(type, std::fabs(y.value) + y.error));
  }

  std::string judge_block(int32_t problem, int32_t row, int32_t column) const {
    const int32_t block = column / ref::kBlock, first = block * ref::kBlock;
    const Row a = x_.row_of_a(problem, row);
    double exact[ref::kBlock];
    float error[ref::kBlock];
    uint8_t codes[ref::kBlock];
    for (int32_t i = 0; i < ref::kBlock; ++i) {
      const Expected y = result(a, problem, first + i);
      exact[i] = y.value;
      error[i] = std::nextafter(static_cast<float>(y.error), std::numeric_limits<float>::infinity());
      codes[i] = ref::nibble(written_.c.data(), element(problem, row, first + i));
    }
    const double encode = x_.args().c_global_scale;
    const uint8_t factor = written_.sfc[x_.place(problem).sfc + ref::sf_offset(s_.n, row, block)];
    const ref::BlockVerdict verdict = ref::judge_block(exact, error, encode, factor, codes);
    if (!verdict.factor)
      return fmt::format("factor {} of row {} of C = 0x{:02X}, which no expected block has", block, row,
                         factor);
    for (int32_t i = 0; i < ref::kBlock; ++i)
      if (verdict.wrong >> i & 1)
        return fmt::format(
            "C[{}][{}] = code 0x{:X} with the factor 0x{:02X}, expected {:.9g} times {:g}, error of the first "
            "{:.3g}",
            row, first + i, codes[i], factor, exact[i], encode, error[i]);
    return {};
  }

  const Shape& s_;
  const Epilogue& epilogue_;
  const InputSet& x_;
  const Written& written_;
  Rounding rounding_;
  ref::Activation activation_;
  ref::TensorCore core_;
};

}  // namespace

std::string verify(const Shape& s, const Epilogue& epilogue, const InputSet& x, const Written& written,
                   int samples, Rounding rounding, Rng& random) {
  const Verifier verifier(s, epilogue, x, written, rounding);
  if (std::string text = verifier.outside(); !text.empty()) return text;
  std::vector<int32_t> with_rows;
  for (int32_t problem = 0; problem < s.problems(); ++problem)
    if (s.rows(problem) > 0) with_rows.push_back(problem);
  const int64_t count = std::max<int64_t>(samples, kSamplesPerProblem * with_rows.size());
  for (int64_t sample = 0; sample < count; ++sample) {
    const int32_t problem = with_rows[sample % with_rows.size()];
    const auto turn = static_cast<int32_t>(sample / with_rows.size());
    const int32_t last_row = s.rows(problem) - 1, last_column = s.n - 1;
    const auto below = [&random](int32_t end) { return static_cast<int32_t>(random.bits() % end); };
    const int32_t row = turn < 4 ? (turn / 2) * last_row : below(last_row + 1);
    const int32_t column = turn < 4 ? (turn % 2) * last_column : below(last_column + 1);
    if (const std::string text = verifier.judge(problem, row, column); !text.empty())
      return fmt::format("problem {}: {}", problem, text);
  }
  return {};
}

}  // namespace bench
