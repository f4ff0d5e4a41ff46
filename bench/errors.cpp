// errors.cpp -- see errors.h. A is zero, so that gate and up are the biases, and both are known exactly.
#include "bench/errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "bench/inputs.h"
#include "host/common/names.h"
#include "host/include/dualgemm.h"
#include "test/ref/activation.h"
#include "test/ref/formats.h"
#include "test/ref/nvfp4.h"

namespace bench {
namespace {

constexpr int32_t kResults = 1 << 10, kK = 32;
constexpr double kGates = 20, kUps = 16;  // largest, on either side of 0

struct Parameterised {
  dualgemm_activation_t activation;
  const char* parameters;  // as the table says them
  ref::Parameters values;
};
constexpr Parameterised kRows[] = {
    {DUALGEMM_ACTIVATION_SWIGLU, "", {}},
    {DUALGEMM_ACTIVATION_SWIGLU, " 1.702, 1, 7", {1.702f, 1, 7}},  // gpt-oss, MiniMax-M3
    {DUALGEMM_ACTIVATION_SWIGLU, " 1, 0, 10", {1, 0, 10}},         // DeepSeek-V4
    {DUALGEMM_ACTIVATION_GEGLU_TANH, "", {}},
    {DUALGEMM_ACTIVATION_GEGLU_ERF, "", {}},
    {DUALGEMM_ACTIVATION_REGLU, "", {}},
    {DUALGEMM_ACTIVATION_GLU, "", {}},
    {DUALGEMM_ACTIVATION_SWIGLU_STEP, " 1, 0, 7", {1, 0, 7}},  // Step 3.7
    {DUALGEMM_ACTIVATION_SITU, " 4, 25", {}},                  // Kimi K3
};

// One row of results whose gates and ups go over their ranges.
class Sweep {
 public:
  Sweep()
      : zeros_(size_t{kResults} * kK, 0),
        gates_(gates()),
        ups_(ups()),
        c_(4 * size_t{kResults}, 0),
        factors_(ref::sf_bytes(1, kResults), 0) {}

  // Returns C as bytes, and the bytes of its factors.
  std::vector<uint8_t> run(const Parameterised& row, dualgemm_dtype_t c_dtype, uint32_t flags) {
    dualgemm_args_t args;
    dualgemm_args_init(&args);
    args.m = 1, args.n = kResults, args.k = kK;
    args.a = args.b1 = args.b2 = args.sfa = args.sfb1 = args.sfb2 = zeros_.data();
    args.bias1 = gates_.data(), args.bias2 = ups_.data(), args.bias_dtype = DUALGEMM_DTYPE_FP32;
    args.activation = row.activation;
    args.swiglu_alpha = static_cast<float>(row.values.alpha);
    args.swiglu_beta = static_cast<float>(row.values.beta);
    args.swiglu_limit = static_cast<float>(row.values.limit);
    args.situ_gate = static_cast<float>(row.values.situ_gate);
    args.situ_up = static_cast<float>(row.values.situ_up);
    args.flags = flags;
    args.c = c_.data(), args.c_dtype = c_dtype;
    if (c_dtype == DUALGEMM_DTYPE_NVFP4) args.sfc = factors_.data();
    if (dualgemm_launch_ex(&args, nullptr) != DUALGEMM_STATUS_SUCCESS)
      throw std::runtime_error(dualgemm_last_error());
    return c_.host();
  }
  std::vector<uint8_t> factors() const { return factors_.host(); }

  static std::vector<float> gates() {
    std::vector<float> out;
    for (int32_t i = 0; i < kResults; ++i)
      out.push_back(static_cast<float>(kGates * (2 * (i + 0.5) / kResults - 1)));
    return out;
  }
  static std::vector<float> ups() {
    std::vector<float> out;
    for (int32_t i = 0; i < kResults; ++i)
      out.push_back(static_cast<float>(kUps * (2 * (i * 7919 % kResults + 0.5) / kResults - 1)));
    return out;
  }
  static std::vector<double> exact(const Parameterised& row) {
    const ref::Activation a = ref::activation(row.activation, row.values);
    const std::vector<float> g = gates(), u = ups();
    std::vector<double> out;
    for (int32_t i = 0; i < kResults; ++i) out.push_back(a.f(g[i]) * a.h(u[i]));
    return out;
  }

 private:
  DeviceArray<uint8_t> zeros_;
  DeviceArray<float> gates_, ups_;
  DeviceArray<uint8_t> c_, factors_;
};

// Returns the distance of two neighbours of the type with this many bits of mantissa, where x lies.
double ulp(double x, int mantissa) { return std::ldexp(1.0, std::ilogb(x) - mantissa); }

constexpr double kSmallest = 0x1p-14;  // of the results whose errors count, normal in every type

// Returns the largest error of a type in its ulp.
double largest_ulps(const std::vector<uint8_t>& c, const std::vector<double>& exact, ref::Format format,
                    int bytes, int mantissa) {
  double largest = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    if (std::fabs(exact[i]) < kSmallest) continue;
    uint32_t bits = 0;
    for (int b = 0; b < bytes; ++b) bits |= uint32_t{c[i * bytes + b]} << 8 * b;
    const double error = std::fabs(ref::decode(format, bits) - exact[i]) / ulp(exact[i], mantissa);
    largest = std::max(largest, error);
  }
  return largest;
}

int32_t other_fp8(const std::vector<uint8_t>& c, const std::vector<double>& exact) {
  int32_t others = 0;
  for (size_t i = 0; i < exact.size(); ++i)  // the two zeros are one number
    others += ref::e4m3_decode(c[i]) != ref::e4m3_decode(ref::e4m3_encode(exact[i]));
  return others;
}

int32_t other_nvfp4(const std::vector<uint8_t>& c, const std::vector<uint8_t>& factors,
                    const std::vector<double>& exact) {
  const float nothing[ref::kBlock] = {};
  int32_t others = 0;
  for (size_t block = 0; block < exact.size() / ref::kBlock; ++block) {
    uint8_t codes[ref::kBlock];
    for (int i = 0; i < ref::kBlock; ++i)
      codes[i] = ref::nibble(c.data(), static_cast<int64_t>(block) * ref::kBlock + i);
    const uint8_t factor = factors[ref::sf_offset(kResults, 0, static_cast<int64_t>(block))];
    const ref::BlockVerdict verdict =
        ref::judge_block(&exact[block * ref::kBlock], nothing, 1, factor, codes);
    others += verdict.exceptions + !verdict.factor;
    for (int i = 0; i < ref::kBlock; ++i) others += verdict.wrong >> i & 1;
  }
  return others;
}

}  // namespace

std::string errors_markdown() {
  Sweep sweep;
  std::string text =
      "| activation | fp32, ulp | fp32 with EXACT_ACT, ulp | bf16, ulp | fp16, ulp | fp8, other codes | nvfp4, other "
      "codes and factors |\n| --- | --- | --- | --- | --- | --- | --- |\n";
  for (const Parameterised& row : kRows) {
    const std::vector<double> exact = Sweep::exact(row);
    const auto fp32 = [&](uint32_t flags) {
      return largest_ulps(sweep.run(row, DUALGEMM_DTYPE_FP32, flags), exact, ref::Format::kFp32, 4, 23);
    };
    const auto half = [&](dualgemm_dtype_t dtype, ref::Format format, int mantissa) {
      return largest_ulps(sweep.run(row, dtype, 0), exact, format, 2, mantissa);
    };
    const double approximate = fp32(0), in_fp64 = fp32(DUALGEMM_FLAG_EXACT_ACT);
    const double bf16 = half(DUALGEMM_DTYPE_BF16, ref::Format::kBf16, 7);
    const double fp16 = half(DUALGEMM_DTYPE_FP16, ref::Format::kFp16, 10);
    const int32_t fp8 = other_fp8(sweep.run(row, DUALGEMM_DTYPE_FP8_E4M3, 0), exact);
    const std::vector<uint8_t> packed = sweep.run(row, DUALGEMM_DTYPE_NVFP4, 0);
    text += fmt::format("| {}{} | {:.1f} | {:.2f} | {:.3f} | {:.3f} | {} of {} | {} of {} |\n",
                        dualgemm::activation_name(row.activation), row.parameters, approximate, in_fp64, bf16,
                        fp16, fp8, kResults, other_nvfp4(packed, sweep.factors(), exact),
                        kResults + kResults / 16);
  }
  return text;
}

}  // namespace bench
