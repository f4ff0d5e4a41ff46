// operands.cpp -- see operands.h.
#include "operands.h"

#include <algorithm>
#include <cmath>

#include "inputs.h"
#include "unfused.h"

namespace bench {
namespace {

// The codes and factors of B1 and B2, if there is one, in one tensor; those of A stay where they are. N is a
// multiple of 128, so that no atom of factors has rows of both.
std::unique_ptr<Operands> joined(const Shape& s, const InputSet& set) {
  const size_t codes = count(int64_t{s.n} * s.k / 2), factors = dualgemm_sf_size(s.n, s.k);
  const auto products = static_cast<size_t>(s.products);
  auto x = std::make_unique<Operands>(0, products * codes, products * factors);
  x->a = set.args().a;
  x->a_scales = set.args().sfa;
  const auto copy = [](uint8_t* to, const void* from, size_t bytes) {
    check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice), "cudaMemcpy");
  };
  copy(x->b.data(), set.args().b1, codes);
  copy(x->b_scales.data(), set.args().sfb1, factors);
  if (s.products == 1) return x;
  copy(x->b.data() + codes, set.args().b2, codes);
  copy(x->b_scales.data() + factors, set.args().sfb2, factors);
  return x;
}

// Those of a shape with an A in FP8: in FP8, whose A stays where it is, or in 16 bits.
std::unique_ptr<Operands> dequantised_fp8(const Shape& s, const InputSet& set, OperandFormat format) {
  const bool fp8 = format == OperandFormat::kFp8;
  const int64_t bytes = bits_of(format) / 8, weights = int64_t{s.n} * s.k;
  const int64_t elements_of_a = set.rows() * s.k;
  auto x = std::make_unique<Operands>(fp8 ? 0 : count(bytes * elements_of_a),
                                      count(bytes * s.products * weights * s.problems()), 0);
  const dualgemm_args_t& args = set.args();
  if (fp8) x->a = args.a;
  else
    check_cuda(
        launch_convert_fp8(args.a, elements_of_a, kFactorOfA, dtype_of(format), x->a_copy.data(), nullptr),
        "convert");
  const dualgemm_dtype_t dtype = fp8 ? DUALGEMM_DTYPE_FP8_E4M3 : dtype_of(format);
  const auto factors = static_cast<int64_t>(s.sfb_bytes());
  const auto convert = [&](const void* codes, const void* scales, const int16_t* exponents, int32_t problem,
                           int64_t to) {
    check_cuda(launch_dequantise_mxfp4(static_cast<const uint8_t*>(codes) + weights / 2 * problem,
                                       static_cast<const uint8_t*>(scales) + factors * problem,
                                       exponents + int64_t{s.n} * problem, fp8 ? -kExponentOfB : 0, s.n, s.k,
                                       dtype, x->b.data() + bytes * weights * to, nullptr),
               "dequantise");
  };
  for (int32_t p = 0; p < s.problems(); ++p) {
    convert(args.b1, args.sfb1, args.b1_row_exponent, p, int64_t{s.products} * p);
    if (s.products == 2) convert(args.b2, args.sfb2, args.b2_row_exponent, p, int64_t{s.products} * p + 1);
  }
  return x;
}

}  // namespace

dualgemm_dtype_t dtype_of(OperandFormat format) {
  return format == OperandFormat::kFp16 ? DUALGEMM_DTYPE_FP16 : DUALGEMM_DTYPE_BF16;
}

float factor_of_products(OperandFormat format) {
  return format == OperandFormat::kFp8 ? std::ldexp(kFactorOfA, kExponentOfB) : 1;
}

double operand_bytes(const Shape& s, OperandFormat format) {
  const double rows_of_b = static_cast<double>(s.columns()) * s.problems();
  const double elements = (static_cast<double>(s.rows()) + rows_of_b) * s.k;
  return elements * (format == OperandFormat::kNvfp4 ? 9.0 / 16 : bits_of(format) / 8);
}

std::unique_ptr<Operands> dequantised(const Shape& s, const InputSet& set, dualgemm_dtype_t dtype) {
  if (s.fp8_a())
    return dequantised_fp8(s, set,
                           dtype == DUALGEMM_DTYPE_FP16 ? OperandFormat::kFp16 : OperandFormat::kBf16);
  const int64_t rows = set.rows(), weights = int64_t{s.n} * s.k, problems = s.problems();
  auto x = std::make_unique<Operands>(s.packed_a() ? count(2 * rows * s.k) : 0,
                                      count(2 * s.products * weights * problems), 0);
  if (!s.packed_a()) x->a = set.args().a;
  const auto at = [](const void* from, int64_t bytes) { return static_cast<const uint8_t*>(from) + bytes; };
  const auto factors_of_b = static_cast<int64_t>(dualgemm_sf_size(s.n, s.k));
  const auto convert = [&](const void* codes, const void* scales, int32_t of, uint8_t* to) {
    check_cuda(launch_dequantise(codes, scales, of, s.k, dtype, to, nullptr), "dequantise");
  };
  for (int32_t p = 0; p < problems; ++p) {
    const Place& place = set.place(p);
    if (s.packed_a() && set.room(p) > 0)
      convert(at(set.args().a, place.row * s.k / 2), at(set.args().sfa, static_cast<int64_t>(place.sfa)),
              set.room(p), x->a_copy.data() + 2 * place.row * s.k);
    uint8_t* const b = x->b.data() + 2 * s.products * weights * p;
    convert(at(set.args().b1, weights / 2 * p), at(set.args().sfb1, factors_of_b * p), s.n, b);
    if (s.products == 2)
      convert(at(set.args().b2, weights / 2 * p), at(set.args().sfb2, factors_of_b * p), s.n,
              b + 2 * weights);
  }
  return x;
}

OperandSets::OperandSets(const Workload& workload, OperandFormat format) {
  const Shape& shape = workload.shape();
  const int sets = workload.input_sets();
  const int fit = std::max(2, static_cast<int>(kMostOperandBytes / operand_bytes(shape, format)));
  for (int i = 0; i < std::min(sets, fit); ++i) {
    const InputSet& set = workload.input_set(i);
    operands_.push_back(format == OperandFormat::kNvfp4 ? joined(shape, set)
                        : format == OperandFormat::kFp8 ? dequantised_fp8(shape, set, format)
                                                        : dequantised(shape, set, dtype_of(format)));
  }
  for (int i = 0; i < sets; ++i)
    place_[workload.input_set(i).args().c] = static_cast<size_t>(i) % operands_.size();
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

}  // namespace bench
