// quantize.cpp -- scale-factor layout, quantisation and dequantisation on the host. These are the library's
// own word on what NVFP4 data look like; the kernel never sees them and they never see the GPU.

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "host/dualgemm.h"
#include "host/sf_layout.h"
#include "host/status.h"

namespace dualgemm {
namespace {

constexpr float kE2m1Max = 6;
constexpr float kUe4m3Max = 448;
constexpr float kSmallestUe4m3 = 0x1p-9f;
constexpr float kE2m1Values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
constexpr uint8_t kUe4m3Nan = 0x7F;

// Returns the nearest code, ties to the even one, saturating at 6. The input is not negative; NaN becomes 6,
// as the instructions of the GPU have it.
uint8_t e2m1_magnitude(float value) {
  for (uint8_t code = 0; code < 7; ++code) {
    const float middle = (kE2m1Values[code] + kE2m1Values[code + 1]) / 2;
    if (value < middle || (value == middle && code % 2 == 0)) return code;
  }
  return 7;
}

uint8_t to_e2m1(float value) {
  const bool negative = std::signbit(value) && !std::isnan(value);
  return static_cast<uint8_t>(e2m1_magnitude(std::fabs(value)) | (negative ? 8 : 0));
}

float from_e2m1(uint8_t code) {
  const float magnitude = kE2m1Values[code & 7];
  return code & 8 ? -magnitude : magnitude;
}

// UE4M3 has 4 exponent bits with bias 7, 3 mantissa bits, and subnormals below 2^-6.
float from_ue4m3(uint8_t byte) {
  const int code = byte & 0x7F;
  if (code == kUe4m3Nan) return std::numeric_limits<float>::quiet_NaN();
  const int exponent = code >> 3, mantissa = code & 7;
  return exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                       : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
}

// Rounds to nearest, ties to even, saturating at 448. The input is not negative and no NaN.
uint8_t to_ue4m3(float value) {
  if (value >= kUe4m3Max) return 0x7E;
  // The spacing is 2^(e-3) in the binade [2^e, 2^(e+1)) and 2^-9 in all below 2^-6. In units of the spacing
  // the value keeps 3 mantissa bits, rounding up to the next binade carries into the exponent by itself. All
  // other operations are exact.
  const int exponent = value < 0x1p-6f ? -6 : std::ilogb(value);
  const float units = std::ldexp(value, 3 - exponent);
  float rounded = std::floor(units);
  const float rest = units - rounded;
  if (rest > 0.5f || (rest == 0.5f && std::fmod(rounded, 2.0f) == 1)) rounded += 1;
  return static_cast<uint8_t>((exponent + 6) * 8 + static_cast<int>(rounded));
}

// These checks are shared by the three functions on float matrices; ldx == 0 is resolved.
dualgemm_status_t check_matrix(const float* x, int32_t rows, int32_t k, int64_t* ldx) {
  if (rows < 0) return fail(DUALGEMM_STATUS_INVALID_VALUE, "rows=%" PRId32 ": must not be negative", rows);
  if (k < 0) return fail(DUALGEMM_STATUS_INVALID_VALUE, "k=%" PRId32 ": must not be negative", k);
  if (k % kSfBlock != 0)
    return fail(DUALGEMM_STATUS_INVALID_SHAPE, "k=%" PRId32 ": must be a multiple of %d", k, kSfBlock);
  if (!x && rows > 0 && k > 0) return fail(DUALGEMM_STATUS_NULL_POINTER, "x=NULL: must point to host memory");
  if (*ldx == 0) *ldx = k;
  if (*ldx < k)
    return fail(DUALGEMM_STATUS_INVALID_STRIDE, "ldx=%" PRId64 ": must be at least k=%" PRId32, *ldx, k);
  return DUALGEMM_STATUS_SUCCESS;
}

dualgemm_status_t check_packed(const void* q, const void* sf, int32_t rows, int32_t k, int64_t* ldq) {
  if (!q && rows > 0 && k > 0) return fail(DUALGEMM_STATUS_NULL_POINTER, "q=NULL: must point to host memory");
  if (!sf && rows > 0 && k > 0)
    return fail(DUALGEMM_STATUS_NULL_POINTER, "sf=NULL: must point to host memory");
  if (*ldq == 0) *ldq = k;
  if (*ldq < k)
    return fail(DUALGEMM_STATUS_INVALID_STRIDE, "ldq=%" PRId64 ": must be at least k=%" PRId32, *ldq, k);
  if (*ldq % 2 != 0) return fail(DUALGEMM_STATUS_INVALID_STRIDE, "ldq=%" PRId64 ": must be even", *ldq);
  return DUALGEMM_STATUS_SUCCESS;
}

dualgemm_status_t check_finite(const float* x, int32_t rows, int32_t k, int64_t ldx) {
  for (int32_t r = 0; r < rows; ++r)
    for (int32_t i = 0; i < k; ++i)
      if (!std::isfinite(x[r * ldx + i]))
        return fail(DUALGEMM_STATUS_INVALID_VALUE, "x[%" PRId32 "][%" PRId32 "]=%g: must be finite", r, i,
                    static_cast<double>(x[r * ldx + i]));
  return DUALGEMM_STATUS_SUCCESS;
}

dualgemm_status_t check_global_scale(float global_scale) {
  if (global_scale > 0 && std::isfinite(global_scale)) return DUALGEMM_STATUS_SUCCESS;
  return fail(DUALGEMM_STATUS_INVALID_VALUE, "global_scale=%g: must be finite and above 0",
              static_cast<double>(global_scale));
}

// Quantises sixteen elements: returns their scale factor and writes eight bytes. The epilogue that writes
// NVFP4 performs the same operations in fp32: what is rounded, and in which order, is part of the interface.
uint8_t quantize_block(const float* x, float global_scale, uint8_t* packed) {
  float amax = 0;
  for (int i = 0; i < kSfBlock; ++i) amax = std::max(amax, std::fabs(x[i]));
  const float sixth = global_scale * (1 / kE2m1Max);
  const uint8_t factor = to_ue4m3(amax * sixth);
  std::memset(packed, 0, kSfBlock / 2);
  if (factor == 0) return 0;
  const float encode = global_scale * (1 / from_ue4m3(factor));
  for (int i = 0; i < kSfBlock; ++i)
    packed[i / 2] = static_cast<uint8_t>(packed[i / 2] | to_e2m1(x[i] * encode) << (i % 2 * 4));
  return factor;
}

}  // namespace
}  // namespace dualgemm

using namespace dualgemm;

size_t dualgemm_sf_size(int32_t rows, int32_t k, dualgemm_sf_layout_t layout) noexcept {
  if (rows < 0 || k < 0 || layout != DUALGEMM_SF_LAYOUT_128X4) return 0;
  return static_cast<size_t>(sf_bytes(rows, k));
}

int64_t dualgemm_sf_offset(int32_t rows, int32_t k, dualgemm_sf_layout_t layout, int32_t row,
                           int32_t block) noexcept {
  if (rows < 0 || k < 0 || row < 0 || block < 0 || layout != DUALGEMM_SF_LAYOUT_128X4) return -1;
  if (row >= sf_row_blocks(rows) * kSfAtomRows || block >= sf_atoms(k) * kSfAtomBlocks) return -1;
  return sf_offset(k, row, block);
}

dualgemm_status_t dualgemm_global_scale_host(const float* x, int32_t rows, int32_t k, int64_t ldx,
                                             float* global_scale) noexcept {
  clear_last_error();
  if (auto status = check_matrix(x, rows, k, &ldx)) return status;
  if (!global_scale) return fail(DUALGEMM_STATUS_NULL_POINTER, "global_scale=NULL: must point to a float");
  if (auto status = check_finite(x, rows, k, ldx)) return status;
  float amax = 0;
  for (int32_t r = 0; r < rows; ++r)
    for (int32_t i = 0; i < k; ++i) amax = std::max(amax, std::fabs(x[r * ldx + i]));
  // A tiny maximum would ask for more than a float can hold, or than it can hold times 1 / factor. The
  // largest scale for which it can loses range, not correctness.
  constexpr float kLargest = std::numeric_limits<float>::max() * kSmallestUe4m3;
  *global_scale = amax > 0 ? std::min(kUe4m3Max * kE2m1Max / amax, kLargest) : 1;
  return DUALGEMM_STATUS_SUCCESS;
}

dualgemm_status_t dualgemm_quantize_host(const float* x, int32_t rows, int32_t k, int64_t ldx,
                                         float global_scale, void* q, int64_t ldq, void* sf) noexcept {
  clear_last_error();
  if (auto status = check_matrix(x, rows, k, &ldx)) return status;
  if (auto status = check_packed(q, sf, rows, k, &ldq)) return status;
  if (auto status = check_global_scale(global_scale)) return status;
  if (auto status = check_finite(x, rows, k, ldx)) return status;
  if (rows == 0 || k == 0) return DUALGEMM_STATUS_SUCCESS;

  auto* factors = static_cast<uint8_t*>(sf);
  std::memset(factors, 0, static_cast<size_t>(sf_bytes(rows, k)));
  for (int32_t r = 0; r < rows; ++r) {
    uint8_t* packed = static_cast<uint8_t*>(q) + r * (ldq / 2);
    for (int32_t block = 0; block < k / kSfBlock; ++block)
      factors[sf_offset(k, r, block)] =
          quantize_block(x + r * ldx + block * kSfBlock, global_scale, packed + block * kSfBlock / 2);
    std::memset(packed + k / 2, 0, static_cast<size_t>((ldq - k) / 2));
  }
  return DUALGEMM_STATUS_SUCCESS;
}

dualgemm_status_t dualgemm_dequantize_host(const void* q, int64_t ldq, const void* sf, int32_t rows,
                                           int32_t k, float global_scale, float* x, int64_t ldx) noexcept {
  clear_last_error();
  if (auto status = check_matrix(x, rows, k, &ldx)) return status;
  if (auto status = check_packed(q, sf, rows, k, &ldq)) return status;
  if (auto status = check_global_scale(global_scale)) return status;

  for (int32_t r = 0; r < rows; ++r) {
    const uint8_t* packed = static_cast<const uint8_t*>(q) + r * (ldq / 2);
    for (int32_t i = 0; i < k; ++i) {
      const double factor = from_ue4m3(static_cast<const uint8_t*>(sf)[sf_offset(k, r, i / kSfBlock)]);
      const auto code = static_cast<uint8_t>(packed[i / 2] >> (i % 2 * 4) & 0xF);
      x[r * ldx + i] = static_cast<float>(from_e2m1(code) * factor / global_scale);
    }
  }
  return DUALGEMM_STATUS_SUCCESS;
}
