// unfused_test.cpp -- the kernels around the GEMMs of the benchmark's baseline against the reference, and the
// verification of what they compute together with a GEMM in float.
#include "bench/unfused.h"

#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "bench/inputs.h"
#include "bench/measure.h"
#include "bench/shapes.h"
#include "ref/activation.h"
#include "ref/dual_gemm.h"
#include "ref/formats.h"
#include "support/catch.hpp"

using namespace dualgemm_test;
using bench::Extents;
using bench::Products;

namespace {

uint16_t bf16_of(float x) {  // nearest, ties to even; x is finite
  const auto bits = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

// Computes D = A B^T of compact bf16 rows in float, element by element, and rounds it to bf16.
std::vector<uint16_t> product(const std::vector<uint16_t>& a, const std::vector<uint16_t>& b, int64_t m,
                              int64_t n, int64_t k) {
  std::vector<float> x(a.size()), y(b.size());
  for (size_t i = 0; i < a.size(); ++i) x[i] = static_cast<float>(ref::bf16_decode(a[i]));
  for (size_t i = 0; i < b.size(); ++i) y[i] = static_cast<float>(ref::bf16_decode(b[i]));
  std::vector<uint16_t> d(static_cast<size_t>(m * n));
  for (int64_t row = 0; row < m; ++row)
    for (int64_t column = 0; column < n; ++column) {
      float sum = 0;
      for (int64_t i = 0; i < k; ++i) sum += x[row * k + i] * y[column * k + i];
      d[row * n + column] = bf16_of(sum);
    }
  return d;
}

std::vector<uint16_t> dequantised(const void* codes, const void* scales, int32_t rows, int32_t k,
                                  dualgemm_dtype_t dtype = DUALGEMM_DTYPE_BF16) {
  const DeviceArray<uint16_t> out(static_cast<size_t>(rows) * static_cast<size_t>(k));
  check_cuda(bench::launch_dequantise(codes, scales, rows, k, dtype, out.data(), nullptr), "dequantise");
  return out.host();
}

}  // namespace

TEST_CASE("unfused: every code with every finite scale factor becomes exactly its fp16 and bf16", "[bench]") {
  // 127 scale factors, each with a block of all codes: four blocks to a row.
  constexpr int32_t kRows = 33, kK = 64;
  std::vector<uint8_t> codes(kRows * kK / 2), scales(ref::sf_bytes(kRows, kK));
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i % 8 * 0x22 + 0x10);
  for (int32_t row = 0; row < kRows; ++row)
    for (int32_t block = 0; block < kK / ref::kBlock; ++block)
      scales[ref::sf_offset(kK, row, block)] = static_cast<uint8_t>((row * 4 + block) % 127);
  const DeviceArray<uint8_t> device_codes(codes), device_scales(scales);
  for (const auto& [dtype, format] : {std::pair(DUALGEMM_DTYPE_FP16, ref::Format::kFp16),
                                      std::pair(DUALGEMM_DTYPE_BF16, ref::Format::kBf16)}) {
    const std::vector<uint16_t> got =
        dequantised(device_codes.data(), device_scales.data(), kRows, kK, dtype);
    for (int32_t row = 0; row < kRows; ++row)
      for (int32_t i = 0; i < kK; ++i) {
        const uint8_t scale = scales[ref::sf_offset(kK, row, i / ref::kBlock)];
        const float expected =
            ref::e2m1_decode(ref::nibble(&codes[row * kK / 2], i)) * ref::ue4m3_decode(scale);
        REQUIRE(ref::decode(format, got[row * kK + i]) == static_cast<double>(expected));
      }
  }
}

TEST_CASE("unfused: scale factors of many rows and blocks are found in their atoms", "[bench]") {
  constexpr int32_t kRows = 300, kK = 160;  // three bands of rows, the last atom of a band half full
  Rng random(5);
  std::vector<uint8_t> codes(kRows * kK / 2), scales(ref::sf_bytes(kRows, kK));
  for (uint8_t& code : codes) code = static_cast<uint8_t>(random.bits());
  for (uint8_t& scale : scales) scale = static_cast<uint8_t>(random.bits() % 127);
  const DeviceArray<uint8_t> device_codes(codes), device_scales(scales);
  const std::vector<uint16_t> got = dequantised(device_codes.data(), device_scales.data(), kRows, kK);
  int wrong = 0;
  for (int32_t row = 0; row < kRows; ++row)
    for (int32_t i = 0; i < kK; ++i)
      wrong += ref::bf16_decode(got[row * kK + i]) !=
               static_cast<double>(ref::e2m1_decode(ref::nibble(&codes[row * kK / 2], i)) *
                                   ref::ue4m3_decode(scales[ref::sf_offset(kK, row, i / ref::kBlock)]));
  CHECK(wrong == 0);
}

TEST_CASE("unfused: every code with every power of two becomes exactly its fp16, bf16 and fp8", "[bench]") {
  // Three bands of rows, whose last atoms have one block out of four. Row exponents are the benchmark's.
  constexpr int32_t kRows = 300, kK = 160, kMore = 5;
  Rng random(6);
  std::vector<uint8_t> codes(kRows * kK / 2), scales(ref::mx_sf_bytes(kRows, kK));
  std::vector<int16_t> exponents;
  for (uint8_t& code : codes) code = static_cast<uint8_t>(random.bits());
  for (uint8_t& scale : scales) scale = static_cast<uint8_t>(126 + random.bits() % 6);
  for (int32_t row = 0; row < kRows; ++row) exponents.push_back(static_cast<int16_t>(-6 - row % 3));
  const DeviceArray<uint8_t> device_codes(codes), device_scales(scales);
  const DeviceArray<int16_t> device_exponents(exponents);
  for (const auto& [dtype, format] : {std::pair(DUALGEMM_DTYPE_FP16, ref::Format::kFp16),
                                      {DUALGEMM_DTYPE_BF16, ref::Format::kBf16},
                                      {DUALGEMM_DTYPE_FP8_E4M3, ref::Format::kE4m3}}) {
    const size_t bytes = dtype == DUALGEMM_DTYPE_FP8_E4M3 ? 1 : 2;
    const DeviceArray<uint8_t> out(kRows * kK * bytes);
    check_cuda(
        bench::launch_dequantise_mxfp4(device_codes.data(), device_scales.data(), device_exponents.data(),
                                       kMore, kRows, kK, dtype, out.data(), nullptr),
        "dequantise");
    const std::vector<uint8_t> got = out.host();
    int wrong = 0;
    for (int32_t row = 0; row < kRows; ++row)
      for (int32_t i = 0; i < kK; ++i) {
        const uint8_t scale = scales[ref::mx_sf_offset(kK, row, i / ref::kMxBlock)];
        const double expected = std::ldexp(double{ref::e2m1_decode(ref::nibble(&codes[row * kK / 2], i))},
                                           scale - 127 + exponents[row] + kMore);
        const size_t at = (row * kK + i) * bytes;
        wrong += ref::decode(format, bytes == 1 ? got[at] : got[at] | uint32_t{got[at + 1]} << 8) != expected;
      }
    CHECK(wrong == 0);
  }
}

TEST_CASE("unfused: every number of FP8 times a power of two is exactly its fp16 and bf16", "[bench]") {
  std::vector<uint8_t> all(256);
  for (int i = 0; i < 256; ++i) all[i] = static_cast<uint8_t>(i);
  const DeviceArray<uint8_t> from(all);
  for (const auto& [dtype, format] :
       {std::pair(DUALGEMM_DTYPE_FP16, ref::Format::kFp16), {DUALGEMM_DTYPE_BF16, ref::Format::kBf16}}) {
    const DeviceArray<uint16_t> out(all.size());
    check_cuda(bench::launch_convert_fp8(from.data(), 256, 0x1p-8f, dtype, out.data(), nullptr), "convert");
    const std::vector<uint16_t> got = out.host();
    for (const uint8_t code : all) {
      const double expected = ref::e4m3_decode(code) * 0x1p-8;
      INFO("code " << int{code});
      if (std::isnan(expected)) CHECK(std::isnan(ref::decode(format, got[code])));
      else CHECK(ref::decode(format, got[code]) == expected);
    }
  }
}

TEST_CASE("unfused: the activation of products side by side, with alphas of each problem", "[bench]") {
  constexpr int32_t kRows = 5, kColumns = 1040, kProblems = 3;  // more columns than a block has threads for
  constexpr int64_t kPitch = 2 * kColumns;
  const ref::Activation swiglu = ref::activation(DUALGEMM_ACTIVATION_SWIGLU);
  Rng random(6);
  std::vector<uint16_t> products(kProblems * kRows * kPitch);
  for (uint16_t& x : products)
    x = bf16_of(static_cast<float>(static_cast<int>(random.bits() % 801) - 400) / 16);
  const std::vector<float> alphas = {1, 0.5f, 0.75f, 2, 1.5f, 1};
  const DeviceArray<uint16_t> device(products), c(kProblems * kRows * kColumns);
  const DeviceArray<float> device_alphas(alphas);
  const Products x{device.data(),       device.data() + kColumns, kPitch,
                   DUALGEMM_DTYPE_BF16, device_alphas.data(),     device_alphas.data() + kProblems};
  for (const auto& [dtype, format] : {std::pair(DUALGEMM_DTYPE_FP16, ref::Format::kFp16),
                                      std::pair(DUALGEMM_DTYPE_BF16, ref::Format::kBf16)}) {
    check_cuda(bench::launch_activation(x, {kRows, kColumns, kProblems}, c.data(), dtype, nullptr),
               "activation");
    const std::vector<uint16_t> got = c.host();
    int wrong = 0;
    for (int64_t row = 0; row < kProblems * kRows; ++row)
      for (int64_t column = 0; column < kColumns; ++column) {
        const auto problem = static_cast<size_t>(row / kRows);
        const double g = alphas[problem] * ref::bf16_decode(products[row * kPitch + column]);
        const double u =
            alphas[kProblems + problem] * ref::bf16_decode(products[row * kPitch + kColumns + column]);
        wrong += !ref::may_become(format, swiglu.f(g) * u, ref::error_bound(swiglu, g, u, 0, 0),
                                  ref::decode(format, got[row * kColumns + column]));
      }
    CHECK(wrong == 0);
  }
}

TEST_CASE("unfused: GEMMs in float between both kernels are verified, and other operands are noticed",
          "[bench]") {
  const bench::Shape shape = bench::parse_shape("2*40x72x320");
  bench::Workload workload(shape, DUALGEMM_DTYPE_FP16, 1, 7);
  const bench::InputSet& set = workload.input_set(0);
  const auto verdict = [&](bool swapped) {
    const bench::Launch unfused = [&](const dualgemm_args_t& args, cudaStream_t stream) {
      const int32_t rows = shape.m, n = shape.n, k = shape.k;
      const auto of = [](const void* from, int64_t bytes) {
        return static_cast<const uint8_t*>(from) + bytes;
      };
      for (int32_t p = 0; p < shape.problems(); ++p) {
        const bench::Place& place = set.place(p);
        const auto factors = static_cast<int64_t>(dualgemm_sf_size(n, k));
        const auto weights = [&](const void* b, const void* scales) {
          return dequantised(of(b, int64_t{p} * n * k / 2), of(scales, p * factors), n, k);
        };
        const auto a = dequantised(of(args.a, place.row * k / 2),
                                   of(args.sfa, static_cast<int64_t>(place.sfa)), rows, k);
        const DeviceArray<uint16_t> first(product(a, weights(args.b1, args.sfb1), rows, n, k));
        const DeviceArray<uint16_t> second(product(a, weights(args.b2, args.sfb2), rows, n, k));
        const Products products{(swapped ? second : first).data(),
                                (swapped ? first : second).data(),
                                n,
                                DUALGEMM_DTYPE_BF16,
                                args.alpha1_dev + p,
                                args.alpha2_dev + p};
        uint16_t* const c = static_cast<uint16_t*>(args.c) + place.row * n;
        check_cuda(bench::launch_activation(products, {rows, n}, c, DUALGEMM_DTYPE_FP16, stream),
                   "activation");
        check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
      }
    };
    return workload.verify(200, unfused, bench::Rounding::kBf16Products);
  };
  CHECK(verdict(false).empty());
  CHECK_THAT(verdict(true), contains("expected"));
}
