// quantize.cpp -- scale-factor layout, quantisation and dequantisation of one matrix on the host. No function
// here makes a CUDA call.

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "host/common/sf_layout.h"
#include "host/common/status.h"
#include "host/common/tensor_rules.h"
#include "host/convert/nvfp4.h"
#include "host/include/dualgemm.h"

namespace dualgemm {
namespace {

// Returns how many elements of a type share a factor; 0: the type has no factors.
int32_t elements_of_factor(dualgemm_dtype_t dtype) {
  switch (dtype) {
    case DUALGEMM_DTYPE_NVFP4: return kSfBlock;
    case DUALGEMM_DTYPE_MXFP4: return kMxBlock;
    default: return 0;
  }
}

// Checks what the three functions on float matrices have in common. Pitches of 0 are resolved in the tensors.
dualgemm_status_t check_matrix(const float* x, int32_t rows, int32_t k, int64_t ldx, Tensor* matrix) {
  if (rows < 0) return fail(DUALGEMM_STATUS_INVALID_VALUE, "rows=%" PRId32 ": must not be negative", rows);
  if (k < 0) return fail(DUALGEMM_STATUS_INVALID_VALUE, "k=%" PRId32 ": must not be negative", k);
  if (k % kSfBlock != 0)
    return fail(DUALGEMM_STATUS_INVALID_SHAPE, "k=%" PRId32 ": must be a multiple of %d", k, kSfBlock);
  if (!x && rows > 0 && k > 0) return fail(DUALGEMM_STATUS_NULL_POINTER, "x=NULL: must point to host memory");
  *matrix = host_matrix("x", "ldx", x, rows, k, 32, ldx);
  return check_pitch(*matrix, "k");
}

// Holds the two tensors of a matrix in NVFP4.
struct Packed {
  Tensor q, sf;
};

dualgemm_status_t check_packed(const void* q, int64_t ldq, const void* sf, int32_t rows, int32_t k,
                               Packed* packed) {
  if (!q && rows > 0 && k > 0) return fail(DUALGEMM_STATUS_NULL_POINTER, "q=NULL: must point to host memory");
  if (!sf && rows > 0 && k > 0)
    return fail(DUALGEMM_STATUS_NULL_POINTER, "sf=NULL: must point to host memory");
  packed->q = host_matrix("q", "ldq", q, rows, k, 4, ldq);
  packed->sf = host_factors("sf", sf, rows, k);
  return check_pitch(packed->q, "k");
}

dualgemm_status_t check_finite(const float* x, int32_t rows, int32_t k, int64_t ldx) {
  if (k == 0) return DUALGEMM_STATUS_SUCCESS;  // however many rows there are
  for (int32_t r = 0; r < rows; ++r)
    for (int32_t i = 0; i < k; ++i)
      if (!std::isfinite(x[r * ldx + i]))
        return fail(DUALGEMM_STATUS_INVALID_VALUE, "x[%" PRId32 "][%" PRId32 "]=%g: must be finite", r, i,
                    static_cast<double>(x[r * ldx + i]));
  return DUALGEMM_STATUS_SUCCESS;
}

dualgemm_status_t check_global_scale(float global_scale) {
  if (global_scale > 0 && global_scale <= std::numeric_limits<float>::max() / 512)
    return DUALGEMM_STATUS_SUCCESS;
  return fail(DUALGEMM_STATUS_INVALID_VALUE,
              "global_scale=%g: must be above 0 and at most the largest float over 512",
              static_cast<double>(global_scale));
}

// Checks the rules that dualgemm_quantize_host and dualgemm_dequantize_host share: all except those about the
// places of tensors.
dualgemm_status_t check_both(const float* x, int32_t rows, int32_t k, int64_t ldx, const void* q, int64_t ldq,
                             const void* sf, float global_scale, Tensor* matrix, Packed* packed) {
  if (auto status = check_matrix(x, rows, k, ldx, matrix)) return status;
  if (auto status = check_packed(q, ldq, sf, rows, k, packed)) return status;
  return check_global_scale(global_scale);
}

}  // namespace
}  // namespace dualgemm

using namespace dualgemm;

size_t dualgemm_sf_size(int32_t rows, int32_t k) noexcept {
  return dualgemm_sf_size_of(DUALGEMM_DTYPE_NVFP4, rows, k);
}

int64_t dualgemm_sf_offset(int32_t rows, int32_t k, int32_t row, int32_t block) noexcept {
  return dualgemm_sf_offset_of(DUALGEMM_DTYPE_NVFP4, rows, k, row, block);
}

size_t dualgemm_sf_size_of(dualgemm_dtype_t dtype, int32_t rows, int32_t k) noexcept {
  const int32_t shared = elements_of_factor(dtype);
  if (shared == 0 || rows < 0 || k < 0) return 0;
  return static_cast<size_t>(sf_bytes(rows, k, shared));
}

int64_t dualgemm_sf_offset_of(dualgemm_dtype_t dtype, int32_t rows, int32_t k, int32_t row,
                              int32_t block) noexcept {
  const int32_t shared = elements_of_factor(dtype);
  if (shared == 0 || rows < 0 || k < 0 || row < 0 || block < 0) return -1;
  if (row >= sf_row_blocks(rows) * kSfAtomRows || block >= sf_atoms(k, shared) * kSfAtomBlocks) return -1;
  return sf_offset(k, row, block, shared);
}

dualgemm_status_t dualgemm_global_scale_host(const float* x, int32_t rows, int32_t k, int64_t ldx,
                                             float* global_scale) noexcept {
  clear_last_error();
  Tensor matrix;
  if (auto status = check_matrix(x, rows, k, ldx, &matrix)) return status;
  if (!global_scale) return fail(DUALGEMM_STATUS_NULL_POINTER, "global_scale=NULL: must point to a float");
  if (auto status = check_finite(x, rows, k, matrix.pitch)) return status;
  float amax = 0;
  for (int32_t r = 0; r < rows && k > 0; ++r)
    for (int32_t i = 0; i < k; ++i) amax = std::max(amax, std::fabs(x[r * matrix.pitch + i]));
  *global_scale = global_scale_of(amax, kNvfp4Max);
  return DUALGEMM_STATUS_SUCCESS;
}

dualgemm_status_t dualgemm_quantize_host(const float* x, int32_t rows, int32_t k, int64_t ldx,
                                         float global_scale, void* q, int64_t ldq, void* sf) noexcept {
  clear_last_error();
  Tensor matrix;
  Packed packed;
  if (auto status = check_both(x, rows, k, ldx, q, ldq, sf, global_scale, &matrix, &packed)) return status;
  if (rows == 0 || k == 0) return DUALGEMM_STATUS_SUCCESS;
  const Tensor written = with_gaps(packed.q);
  if (auto status = check_places({&matrix}, {&written, &packed.sf})) return status;
  if (auto status = check_finite(x, rows, k, matrix.pitch)) return status;

  auto* factors = static_cast<uint8_t*>(sf);
  std::memset(factors, 0, static_cast<size_t>(packed.sf.all_bytes()));
  const int64_t row_bytes = packed.q.bytes(packed.q.pitch);
  for (int32_t r = 0; r < rows; ++r) {
    uint8_t* const codes = static_cast<uint8_t*>(q) + r * row_bytes;
    for (int32_t block = 0; block < k / kSfBlock; ++block)
      factors[sf_offset(k, r, block)] =
          quantize_block(x + r * matrix.pitch + block * kSfBlock, global_scale, codes + block * kSfBlock / 2);
    std::memset(codes + k / 2, 0, static_cast<size_t>(row_bytes - k / 2));
  }
  return DUALGEMM_STATUS_SUCCESS;
}

dualgemm_status_t dualgemm_dequantize_host(const void* q, int64_t ldq, const void* sf, int32_t rows,
                                           int32_t k, float global_scale, float* x, int64_t ldx) noexcept {
  clear_last_error();
  Tensor matrix;
  Packed packed;
  if (auto status = check_both(x, rows, k, ldx, q, ldq, sf, global_scale, &matrix, &packed)) return status;
  if (rows == 0 || k == 0) return DUALGEMM_STATUS_SUCCESS;
  if (auto status = check_places({&packed.q, &packed.sf}, {&matrix})) return status;

  for (int32_t r = 0; r < rows; ++r) {
    const uint8_t* const codes = static_cast<const uint8_t*>(q) + r * packed.q.bytes(packed.q.pitch);
    for (int32_t i = 0; i < k; ++i) {
      const double factor = from_ue4m3(static_cast<const uint8_t*>(sf)[sf_offset(k, r, i / kSfBlock)]);
      const auto code = static_cast<uint8_t>(codes[i / 2] >> (i % 2 * 4) & 0xF);
      x[r * matrix.pitch + i] = static_cast<float>(from_e2m1(code) * factor / global_scale);
    }
  }
  return DUALGEMM_STATUS_SUCCESS;
}
