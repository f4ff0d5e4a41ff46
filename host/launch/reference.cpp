// reference.cpp -- the result of a launch in double precision, computed on the host as the manual writes it
// down: for callers who want to see what is right, and for the first answer where there is no GPU. Only
// outputs are rounded, but every step has the range of a launch's fp32.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "host/common/rows.h"
#include "host/common/status.h"
#include "host/convert/floats.h"
#include "host/convert/mxfp4.h"
#include "host/convert/nvfp4.h"
#include "host/launch/validate.h"

namespace dualgemm {
namespace {

// Return NaN if either argument is NaN, as the functions of the kernel do.
double smaller(double x, double y) { return std::isnan(x) || std::isnan(y) ? x + y : std::min(x, y); }
double larger(double x, double y) { return std::isnan(x) || std::isnan(y) ? x + y : std::max(x, y); }

// Returns a step's result in the range of fp32: a number that would round to more than the largest float is
// infinite, and one below the smallest normal float is a multiple of 2^-149, as in fp32. Others keep their
// bits.
double in_range(double x) {
  const float rounded = static_cast<float>(x);
  if (std::isinf(rounded)) return std::copysign(HUGE_VAL, x);
  return std::fabs(x) < std::numeric_limits<float>::min() ? rounded : x;
}

// Computes the activation in the arithmetic of a launch: in fp32, or with EXACT_ACT in fp64.
class Activation {
 public:
  explicit Activation(const dualgemm_args_t& args)
      : args_(args), exact_((args.flags & DUALGEMM_FLAG_EXACT_ACT) != 0) {}

  // Returns f(g) * h(u). With EXACT_ACT only the product is brought into the range of fp32.
  double operator()(double g, double u) const {
    return in_range(exact_ ? f(g) * h(u) : in_range(f(g)) * in_range(h(u)));
  }
  // Returns f(x) of a launch with one product.
  double operator()(double x) const { return in_range(linear(x)); }

 private:
  // In a launch, powers and reciprocals below the smallest normal float become zero.
  bool flushed(double x) const { return !exact_ && x < std::numeric_limits<float>::min(); }
  double sigmoid(double x) const {
    const double s = 1 / (1 + std::exp(-x));
    return flushed(s) ? 0 : s;
  }
  // Returns the normal distribution, (1 + erf(x / sqrt 2)) / 2. For x < 0 a launch multiplies by exp(-x^2 /
  // 2), which it takes as zero if it is subnormal.
  double normal(double x) const {
    return x < 0 && flushed(std::exp(-x * x / 2)) ? 0 : std::erfc(-x / std::numbers::sqrt2) / 2;
  }
  // Returns x times a sigmoid: 0 where the sigmoid is 0, even if x is not finite.
  static double gated(double x, double sigmoid) { return sigmoid == 0 ? 0 : x * sigmoid; }
  static double bounded(double x, double bound) { return bound * std::tanh(x / bound); }

  static double tanh_argument(double x) {
    return 2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  }

  double linear(double x) const {
    switch (args_.linear_activation) {
      case DUALGEMM_LINEAR_ACTIVATION_SILU: return gated(x, sigmoid(x));
      case DUALGEMM_LINEAR_ACTIVATION_GELU_TANH: return gated(x, sigmoid(tanh_argument(x)));
      case DUALGEMM_LINEAR_ACTIVATION_GELU_ERF: return gated(x, normal(x));
      case DUALGEMM_LINEAR_ACTIVATION_RELU: return larger(x, 0);
      case DUALGEMM_LINEAR_ACTIVATION_RELU2: return larger(x, 0) * larger(x, 0);
      default: return x;
    }
  }
  double f(double g) const {
    const double alpha = args_.swiglu_alpha, limit = args_.swiglu_limit;
    switch (args_.activation) {
      case DUALGEMM_ACTIVATION_GEGLU_TANH: return gated(g, sigmoid(tanh_argument(g)));
      case DUALGEMM_ACTIVATION_GEGLU_ERF: return gated(g, normal(g));
      case DUALGEMM_ACTIVATION_REGLU: return larger(g, 0);
      case DUALGEMM_ACTIVATION_GLU: return sigmoid(g);
      case DUALGEMM_ACTIVATION_SWIGLU_STEP: return smaller(gated(g, sigmoid(alpha * g)), limit);
      case DUALGEMM_ACTIVATION_SITU: return bounded(g, args_.situ_gate) * sigmoid(g);
      default: {
        const double x = smaller(g, limit);
        return gated(x, sigmoid(alpha * x));
      }
    }
  }
  double h(double u) const {
    const double limit = args_.swiglu_limit;
    switch (args_.activation) {
      case DUALGEMM_ACTIVATION_SITU: return bounded(u, args_.situ_up);
      case DUALGEMM_ACTIVATION_SWIGLU:
      case DUALGEMM_ACTIVATION_SWIGLU_STEP: return larger(smaller(u, limit), -limit) + args_.swiglu_beta;
      default: return u;
    }
  }

  const dualgemm_args_t& args_;
  bool exact_;
};

// This is one row of an operand: its elements, and in NVFP4 and MXFP4 the factors of its matrix.
struct Row {
  int32_t dtype, k;
  const uint8_t* elements;
  const uint8_t* factors;
  int32_t row;  // of the factors

  Row(int32_t dtype, int32_t k, const Tensor& operand, const Tensor& scales, int32_t matrix, int64_t at,
      int64_t first_block, int32_t row)
      : dtype(dtype),
        k(k),
        elements(static_cast<const uint8_t*>(operand.base) +
                 operand.bytes(matrix * operand.shared_stride() + at * operand.pitch)),
        factors(static_cast<const uint8_t*>(scales.base)),
        row(row) {
    if (factors) factors += matrix * scales.shared_stride() + first_block * scales.row_elements;
  }

  double element(int32_t i) const {
    if (dtype != DUALGEMM_DTYPE_NVFP4 && dtype != DUALGEMM_DTYPE_MXFP4) return float_of(dtype, elements, i);
    const auto code = static_cast<uint8_t>(elements[i / 2] >> (i % 2 * 4));
    if (dtype == DUALGEMM_DTYPE_NVFP4) return from_e2m1(code);
    return weight_in_e4m3(code, factors[sf_offset(k, row, i / kMxBlock, kMxBlock)]);
  }
  // Returns the factor of a block of NVFP4. A weight in MXFP4 has its factor in it.
  double factor(int32_t block) const {
    return dtype == DUALGEMM_DTYPE_NVFP4 ? from_ue4m3(factors[sf_offset(k, row, block)]) : 1;
  }
};

double dot(const Row& a, const Row& b) {
  double sum = 0;
  for (int32_t block = 0; block < a.k / kSfBlock; ++block) {
    double products = 0;
    for (int32_t i = block * kSfBlock; i < (block + 1) * kSfBlock; ++i)
      products += a.element(i) * b.element(i);
    sum += products * a.factor(block) * b.factor(block);
  }
  return sum;
}

class Reference {
 public:
  Reference(const Problem& problem, double* y)
      : p_(problem),
        args_(problem.args),
        activation_(problem.args),
        y_(y),
        rows_{args_.m, problem.problems, args_.group_mode, args_.group_rows} {}

  void run() const {
    for_each_problem(rows_, [this](const RowsInUse& use) {
      if (args_.c_dtype == DUALGEMM_DTYPE_NVFP4) clear_factors(use);
      for (int32_t row = 0; row < use.count; ++row)
        for (int32_t first = 0; first < args_.n; first += kSfBlock) compute(use, row, first);
    });
  }

 private:
  // The launch may not have this vector. With K == 0 no input is read, and its stride may have any value.
  bool reads(Input input) const { return p_.inputs[input].given() && args_.k > 0; }
  double number(Input input, int64_t i, int32_t dtype = DUALGEMM_DTYPE_FP32) const {
    return float_of(dtype, p_.inputs[input].base, i);
  }
  double of_problem(Input input, int32_t problem) const {
    return reads(input) ? number(input, problem * p_.inputs[input].shared_stride()) : 1;
  }
  double of_row(Input input, const RowsInUse& use, int32_t row) const {
    if (!reads(input)) return 1;
    return number(input, use.matrix * p_.inputs[input].shared_stride() + use.first + row);
  }
  // Returns the power of two that a row of B1 or B2 is multiplied by.
  int of_weights(Input input, int32_t problem, int32_t column) const {
    if (!reads(input)) return 0;
    const Tensor& t = p_.inputs[input];
    return static_cast<const int16_t*>(t.base)[problem * t.shared_stride() + column];
  }
  double of_column(Input input, int32_t problem, int32_t column) const {
    if (!reads(input)) return 0;
    return number(input, problem * p_.inputs[input].shared_stride() + column, args_.bias_dtype);
  }

  // Returns the gate or the up of one element, as the activation takes it.
  double before(const RowsInUse& use, int32_t row, int32_t column, bool up) const {
    const Input b = up ? kB2 : kB1, sfb = up ? kSfb2 : kSfb1, bias = up ? kBias2 : kBias1;
    const Input exponent = up ? kB2RowExponent : kB1RowExponent;
    double sum = 0;
    if (args_.k > 0)
      sum = dot(Row(args_.a_dtype, args_.k, p_.inputs[kA], p_.inputs[kSfa], use.matrix,
                    int64_t{use.first} + row, use.first_block, row),
                Row(args_.b_dtype, args_.k, p_.inputs[b], p_.inputs[sfb], use.problem, column, 0, column));
    const double product = in_range(std::ldexp(in_range(sum), of_weights(exponent, use.problem, column)));
    const double alpha =
        in_range((up ? args_.alpha2 : args_.alpha1) * of_problem(up ? kAlpha2 : kAlpha1, use.problem));
    const double scaled = in_range(in_range(alpha * of_row(kARowScale, use, row)) * product);
    return in_range(scaled + of_column(bias, use.problem, column));
  }

  static int64_t element(const Tensor& t, const RowsInUse& use, int32_t row, int32_t column) {
    return use.matrix * t.shared_stride() + (int64_t{use.first} + row) * t.pitch + column;
  }

  // Returns f(g) * h(u), or with one product f(x), after storing D1 and D2.
  double activated(const RowsInUse& use, int32_t row, int32_t column) const {
    const double g = before(use, row, column, false);
    if (args_.d1) store_nearest(args_.d_dtype, args_.d1, element(p_.outputs[kD1], use, row, column), g);
    if (p_.products == 1) return args_.k > 0 ? activation_(g) : 0;
    const double u = before(use, row, column, true);
    if (args_.d2) store_nearest(args_.d_dtype, args_.d2, element(p_.outputs[kD2], use, row, column), u);
    return args_.k > 0 ? activation_(g, u) : 0;
  }

  // Computes up to sixteen elements of a row, which share a factor where C is NVFP4.
  void compute(const RowsInUse& use, int32_t row, int32_t first) const {
    const int32_t columns = std::min(kSfBlock, args_.n - first);
    double y[kSfBlock];
    for (int32_t i = 0; i < columns; ++i) {
      y[i] = activated(use, row, first + i);
      if (p_.inputs[kCRowScale].given()) y[i] = in_range(y[i] * of_row(kCRowScale, use, row));
      if (const Tensor& added = p_.inputs[kCAdd]; added.given())
        y[i] = in_range(y[i] + float_of(args_.c_dtype, added.base, element(added, use, row, first + i)));
      if (args_.amax_out && args_.k > 0)
        *args_.amax_out = static_cast<float>(larger(*args_.amax_out, std::fabs(y[i])));
      if (y_) y_[(int64_t{use.matrix} * args_.m + use.first + row) * args_.n + first + i] = y[i];
    }
    store(use, row, first, columns, y);
  }

  void store(const RowsInUse& use, int32_t row, int32_t first, int32_t columns, const double* y) const {
    const Tensor& c = p_.outputs[kC];
    const int64_t at = element(c, use, row, first);
    const float encode = args_.c_global_scale * static_cast<float>(of_problem(kCGlobalScale, use.problem));
    if (args_.c_dtype == DUALGEMM_DTYPE_NVFP4) {
      float x[kSfBlock];
      std::copy(y, y + kSfBlock, x);
      factors_of(use)[sf_offset(args_.n, row, first / kSfBlock)] =
          quantize_block(x, encode, static_cast<uint8_t*>(args_.c) + at / 2);
      return;
    }
    const double scale = args_.c_dtype == DUALGEMM_DTYPE_FP8_E4M3 ? encode : 1;
    for (int32_t i = 0; i < columns; ++i) store_nearest(args_.c_dtype, args_.c, at + i, y[i] * scale);
  }

  uint8_t* factors_of(const RowsInUse& use) const {
    const Tensor& sfc = p_.outputs[kSfc];
    return static_cast<uint8_t*>(args_.sfc) + use.matrix * sfc.shared_stride() +
           use.first_block * sfc.row_elements;
  }
  void clear_factors(const RowsInUse& use) const {
    std::fill_n(factors_of(use), sf_row_blocks(use.count) * p_.outputs[kSfc].row_elements, uint8_t{0});
  }

  const Problem& p_;
  const dualgemm_args_t& args_;
  Activation activation_;
  double* y_;
  Rows rows_;
};

}  // namespace
}  // namespace dualgemm

using namespace dualgemm;

dualgemm_status_t dualgemm_reference_host(const dualgemm_args_t* args, double* y) noexcept {
  clear_last_error();
  Problem problem;
  if (auto status = validate(args, &problem)) return status;
  if (!problem.empty) Reference(problem, y).run();
  return DUALGEMM_STATUS_SUCCESS;
}
