// problem.cpp -- see problem.h.
#include "support/problem.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "ref/formats.h"
#include "support/rng.h"

namespace dualgemm_test {
namespace {

std::vector<uint8_t> random_codes(Data data, int64_t rows, int64_t k, int64_t ld, Rng& rng) {
  std::vector<uint8_t> out(rows * ld / 2);
  for (uint8_t& byte : out) byte = static_cast<uint8_t>(rng.bits() >> 56);
  if (data == Data::kFullRange || data == Data::kSubnormalFactors) return out;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < k / 2; ++i) {
      uint8_t& byte = out[row * ld / 2 + i];
      if (data == Data::kContest) {
        byte &= 0xBB;  // sign and the two low bits of each code
      } else {
        const uint8_t integers[8] = {0x0, 0x2, 0x4, 0x8, 0xA, 0xC, 0x2, 0xA};  // 0, 1, 2, -0, -1, -2, 1, -1
        byte = static_cast<uint8_t>(integers[byte & 7] | integers[byte >> 4 & 7] << 4);
      }
    }
  }
  return out;
}

enum class Side { kA, kWeights };

std::vector<uint8_t> random_scales(Data data, Side side, int64_t rows, int64_t k, Rng& rng) {
  uint8_t contest[256];
  if (data == Data::kContest) {
    // e4m3 of a uniform number has no short closed form; 256 draws of it stand for the distribution.
    for (uint8_t& code : contest) code = ref::ue4m3_encode(rng.unit());
  }
  std::vector<uint8_t> out(ref::sf_bytes(rows, k), 0x7F);
  const int64_t blocks = k / ref::kBlock;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t block = 0; block < (blocks + 3) / 4 * 4; ++block) {
      uint8_t code = 0;
      if (block < blocks) {
        switch (data) {
          case Data::kFullRange: code = static_cast<uint8_t>(rng.below(0x7F)); break;
          case Data::kSubnormalFactors:
            code = static_cast<uint8_t>(side == Side::kWeights || row % 2 == 1 ? 1 + rng.below(7)
                                                                               : rng.below(0x7F));
            break;
          case Data::kContest: code = contest[rng.bits() >> 56]; break;
          case Data::kIntegers: code = 0x38; break;
        }
      }
      out[ref::sf_offset(k, row, block)] = code;
    }
  }
  return out;
}

}  // namespace

Problem make_problem(Data data, int32_t m, int32_t n, int32_t k, uint64_t seed, int64_t pitch_padding) {
  Rng rng(seed);
  Problem p;
  p.m = m;
  p.n = n;
  p.k = k;
  p.lda = (k + 31) / 32 * 32 + pitch_padding;
  p.ldb1 = p.lda + pitch_padding;
  p.ldb2 = p.ldb1 + pitch_padding;
  p.a = random_codes(data, m, k, p.lda, rng);
  p.b1 = random_codes(data, n, k, p.ldb1, rng);
  p.b2 = random_codes(data, n, k, p.ldb2, rng);
  p.sfa = random_scales(data, Side::kA, m, k, rng);
  p.sfb1 = random_scales(data, Side::kWeights, n, k, rng);
  p.sfb2 = random_scales(data, Side::kWeights, n, k, rng);
  if (data == Data::kFullRange || data == Data::kSubnormalFactors) {
    // Root mean squares over the codes: 2.93 of e2m1, 104 of ue4m3 below NaN and 0.0087 of its subnormal
    // numbers. So a sum has sigma 2.93^2 * 104^2 * sqrt(k), about 9.2e4 * sqrt(k), or 7.8 * sqrt(k) where the
    // factors of one side are subnormal.
    const float of_one = data == Data::kFullRange ? 9.2e4f : 7.8f;
    const float sigma = of_one * std::sqrt(static_cast<float>(std::max(k, 1)));
    p.alpha1 = 4 / sigma;
    p.alpha2 = 7 / sigma;
  } else if (data == Data::kIntegers) {
    p.alpha1 = 0.125f;
    p.alpha2 = 0.25f;
  }
  return p;
}

uint16_t bits_of_number(dualgemm_dtype_t dtype, double x) {
  if (std::isnan(x)) return 0x7FFF;
  if (dtype == DUALGEMM_DTYPE_BF16) {
    const auto bits = std::bit_cast<uint32_t>(static_cast<float>(x));
    if (ref::bf16_decode(static_cast<uint16_t>(bits >> 16)) == x) return static_cast<uint16_t>(bits >> 16);
  } else {
    const int exponent = x == 0 ? -14 : std::max(std::ilogb(x), -14);
    const double mantissa = std::ldexp(std::fabs(x), 10 - exponent);  // 1024 to 2047, less if subnormal
    const auto bits = static_cast<uint16_t>((std::signbit(x) ? 0x8000 : 0) + (exponent + 14) * 1024 +
                                            static_cast<int>(mantissa));
    if (exponent <= 15 && ref::fp16_decode(bits) == x) return bits;
  }
  throw std::domain_error("no number of 16 bits");
}

// Returns that of the current device, whose bound a result has to keep.
static ref::TensorCore tensor_core() {
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  const bool known = dualgemm_current_device(&device) == DUALGEMM_STATUS_SUCCESS;
  return known && device.cc_major == 9 ? ref::TensorCore::kWgmma : ref::TensorCore::kTcgen05;
}

size_t Problem::sfb_bytes() const { return mxfp4() ? ref::mx_sf_bytes(n, k) : ref::sf_bytes(n, k); }

ref::Operand Problem::left() const {
  if (mxfp4()) return {a8.data(), lda, nullptr, m, ref::Elements::kE4m3};
  if (a16.empty()) return {a.data(), lda / 2, sfa.data(), m};
  return {reinterpret_cast<const uint8_t*>(a16.data()), 2 * lda, nullptr, m,
          a16_dtype == DUALGEMM_DTYPE_FP16 ? ref::Elements::kFp16 : ref::Elements::kBf16};
}

ref::Operand Problem::right(int side) const {
  const auto& exponents = side == 0 ? b1_exponents : b2_exponents;
  return {(side == 0 ? b1 : b2).data(),
          (side == 0 ? ldb1 : ldb2) / 2,
          (side == 0 ? sfb1 : sfb2).data(),
          n,
          mxfp4() ? ref::Elements::kMxfp4 : ref::Elements::kNvfp4,
          exponents.empty() ? nullptr : exponents.data()};
}

std::vector<uint8_t> Problem::a_of(dualgemm_dtype_t a_dtype) const {
  if (a_dtype == DUALGEMM_DTYPE_NVFP4) return a;
  if (a_dtype == DUALGEMM_DTYPE_FP8_E4M3) return a8;
  std::vector<uint16_t> out(static_cast<size_t>(m * lda), 0xFFFF);
  if (!a16.empty()) {
    if (a16_dtype != a_dtype) throw std::invalid_argument("A has another type of 16 bits");
    out = a16;
  } else {
    for (int64_t row = 0; row < m; ++row)
      for (int64_t i = 0; i < k; ++i)
        out[row * lda + i] =
            bits_of_number(a_dtype, double{ref::e2m1_decode(ref::nibble(&a[row * lda / 2], i))} *
                                        ref::ue4m3_decode(sfa[ref::sf_offset(k, row, i / ref::kBlock)]));
  }
  const auto* const bytes = reinterpret_cast<const uint8_t*>(out.data());
  return {bytes, bytes + 2 * out.size()};
}

ref::DualGemm Problem::reference(dualgemm_activation_t activation, ref::Arithmetic arithmetic,
                                 const ref::Wanted& wanted) const {
  if (products == 1)
    return ref::one_product(left(), right(0), k, alpha1,
                            ref::linear_activation(linear_activation, arithmetic),
                            {row_scale, bias1, {}, c_row_scale}, c_add, tensor_core(), wanted);
  return ref::dual_gemm(left(), right(0), right(1), k, alpha1, alpha2,
                        ref::activation(activation, parameters, arithmetic),
                        {row_scale, bias1, bias2, c_row_scale}, tensor_core(), wanted);
}

ref::Matrix Problem::reference_d(int side) const {
  ref::Matrix d[2];
  reference(kDefaultActivation, ref::Arithmetic::kFloat, {ref::kSplits, false, &d[0], &d[1]});
  return d[side];
}

Problem with_sixteen_bits(const Problem& p, dualgemm_dtype_t a_dtype, uint64_t seed) {
  const bool fp16 = a_dtype == DUALGEMM_DTYPE_FP16;
  const int mantissa = fp16 ? 10 : 7;
  Problem out = p;
  Rng rng(seed);
  out.a16.assign(static_cast<size_t>(p.m * p.lda), 0xFFFF);
  out.a16_dtype = a_dtype;
  double squares = 0;
  for (int64_t row = 0; row < p.m; ++row)
    for (int64_t i = 0; i < p.k; ++i) {
      double x = std::ldexp(rng.between(1 << mantissa, (2 << mantissa) - 1), rng.between(-24, 10) - mantissa);
      // The smallest fp16 is 2^-24: what lies below it is cut off.
      if (fp16) x = std::ldexp(std::floor(std::ldexp(x, 24)), -24);
      if (rng.below(2) == 0) x = -x;
      squares += x * x;
      out.a16[row * p.lda + i] = bits_of_number(a_dtype, x);
    }
  // The mean square of an element of NVFP4 in kFullRange, from which the alphas come, over that of these.
  const double factor = 2.93 * 104 / std::sqrt(squares / std::max<double>(1, static_cast<double>(p.m) * p.k));
  out.alpha1 = static_cast<float>(p.alpha1 * factor);
  out.alpha2 = static_cast<float>(p.alpha2 * factor);
  return out;
}

Problem with_fp8(const Problem& p, Mx data, uint64_t seed) {
  Problem out = p;
  out.b_dtype = DUALGEMM_DTYPE_MXFP4;
  out.sfa.clear();
  Rng rng(seed);
  double squares_of_a = 0;
  out.a8.assign(static_cast<size_t>(p.m * p.lda), 0x7F);
  for (int64_t row = 0; row < p.m; ++row)
    for (int64_t i = 0; i < p.k; ++i) {
      auto code = static_cast<uint8_t>(rng.below(0x7F) | rng.below(2) << 7);
      if (data == Mx::kIntegers) code = ref::e4m3_encode(rng.between(-3, 3));
      squares_of_a += std::pow(ref::e4m3_decode(code), 2);
      out.a8[row * p.lda + i] = code;
    }
  double squares[2] = {0, 0};
  for (int side = 0; side < 2; ++side) {
    std::vector<uint8_t>& factors = side == 0 ? out.sfb1 : out.sfb2;
    const std::vector<uint8_t>& codes = side == 0 ? p.b1 : p.b2;
    const int64_t pitch = (side == 0 ? p.ldb1 : p.ldb2) / 2;
    factors.assign(out.sfb_bytes(), 0xFF);
    for (int64_t row = 0; row < p.n; ++row)
      for (int64_t block = 0; block < (p.k + 127) / 128 * 4; ++block) {
        uint8_t factor = 0;  // of a block beyond k
        if (block * ref::kMxBlock < p.k) {
          factor = static_cast<uint8_t>(rng.below(8) == 0 ? rng.below(119) : rng.between(119, 133));
          if (data == Mx::kIntegers) factor = static_cast<uint8_t>(rng.between(127, 129));
          for (int64_t i = block * ref::kMxBlock; i < (block + 1) * ref::kMxBlock; ++i)
            squares[side] += std::pow(ref::mxfp4_weight(ref::nibble(&codes[row * pitch], i), factor), 2);
        }
        factors[ref::mx_sf_offset(p.k, row, block)] = factor;
      }
  }
  if (data == Mx::kIntegers) return out;
  // Gate has a standard deviation of about 4, up of about 7, times what the problem's alphas have beside
  // those of all problems.
  const auto mean = [&](double sum, int64_t rows) {
    return sum / std::max<double>(1, double{1} * rows * p.k);
  };
  for (int side = 0; side < 2; ++side) {
    const double of_nvfp4 = std::pow(2.93 * 104, 2);
    const double factor =
        p.m == 0 ? 1 : std::sqrt(of_nvfp4 / mean(squares_of_a, p.m) * of_nvfp4 / mean(squares[side], p.n));
    float& alpha = side == 0 ? out.alpha1 : out.alpha2;
    alpha = static_cast<float>(alpha * factor);
  }
  return out;
}

void give_exponents(Problem& p, int side, int middle, uint64_t seed) {
  Rng rng(seed);
  std::vector<int16_t>& exponents = side == 0 ? p.b1_exponents : p.b2_exponents;
  for (int32_t row = 0; row < p.n; ++row)
    exponents.push_back(static_cast<int16_t>(middle + rng.between(-2, 2)));
  float& alpha = side == 0 ? p.alpha1 : p.alpha2;
  alpha = std::ldexp(alpha, -middle);
}

int bits_of(dualgemm_dtype_t dtype) {
  switch (dtype) {
    case DUALGEMM_DTYPE_BF16:
    case DUALGEMM_DTYPE_FP16: return 16;
    case DUALGEMM_DTYPE_FP32: return 32;
    case DUALGEMM_DTYPE_NVFP4: return 4;
    case DUALGEMM_DTYPE_FP8_E4M3: return 8;
    default: throw std::invalid_argument("there is no output of type " + std::to_string(dtype));
  }
}

uint8_t Output::code(int64_t row, int64_t column) const {
  return ref::nibble(reinterpret_cast<const uint8_t*>(bits.data()) + row * n / 2, column);
}

double Output::value(int64_t row, int64_t column) const {
  const int64_t element = row * n + column;
  uint32_t x = 0;
  if (dtype != DUALGEMM_DTYPE_NVFP4) {
    const int64_t size = bits_of(dtype) / 8;
    std::memcpy(&x, reinterpret_cast<const uint8_t*>(bits.data()) + element * size, size);
  }
  switch (dtype) {
    case DUALGEMM_DTYPE_FP16: return ref::fp16_decode(static_cast<uint16_t>(x));
    case DUALGEMM_DTYPE_BF16: return ref::bf16_decode(static_cast<uint16_t>(x));
    case DUALGEMM_DTYPE_FP32: return ref::fp32_decode(x);
    case DUALGEMM_DTYPE_FP8_E4M3: return ref::e4m3_decode(static_cast<uint8_t>(x));
    default:
      return double{ref::e2m1_decode(code(row, column))} *
             ref::ue4m3_decode(factors.at(element / ref::kBlock));
  }
}

}  // namespace dualgemm_test
