// rules.cpp -- see rules.h.

#include "host/convert/rules.h"

#include <cinttypes>
#include <limits>

#include "host/common/status.h"

namespace dualgemm {
namespace {

// Numbers of 32 bits.
Tensor vector(const char* name, const char* stride_name, const void* base, int32_t count, int32_t problems,
              int64_t stride) {
  return matrix(count, 32, 4, {name, nullptr, stride_name, base, problems, stride, 1});
}

}  // namespace

dualgemm_status_t check_range(const char* name, int32_t value, int32_t last) {
  if (value >= 0 && value <= last) return kOk;
  return fail(DUALGEMM_STATUS_INVALID_VALUE, "%s=%" PRId32 ": must be in [0, %" PRId32 "]", name, value,
              last);
}

dualgemm_status_t check_count(const char* name, int32_t value) {
  if (value >= 0) return kOk;
  return fail(DUALGEMM_STATUS_INVALID_VALUE, "%s=%" PRId32 ": must not be negative", name, value);
}

dualgemm_status_t check_pdl_flag(uint32_t flags) {
  if ((flags & ~uint32_t{DUALGEMM_FLAG_PDL}) == 0) return kOk;
  return fail(DUALGEMM_STATUS_INVALID_VALUE,
              "flags=0x%" PRIx32 ": must be 0 or DUALGEMM_FLAG_PDL (0x%x), nothing else", flags,
              static_cast<unsigned>(DUALGEMM_FLAG_PDL));
}

dualgemm_status_t check_given(const char* name, const void* pointer) {
  if (pointer) return kOk;
  return fail(DUALGEMM_STATUS_NULL_POINTER, "%s=NULL: must not be NULL", name);
}

dualgemm_status_t check_absent(const char* name, const void* pointer, const char* rule) {
  if (!pointer) return kOk;
  return fail(DUALGEMM_STATUS_INVALID_VALUE, "%s=%p: must be NULL %s", name, pointer, rule);
}

dualgemm_status_t check_size(const Rows& rows, int32_t k, int32_t tiles_of_band) {
  if (rows.m > kMaxExtent)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED, "rows=%" PRId32 ": at most %" PRId32, rows.m, kMaxExtent);
  if (k > kMaxExtent)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED, "k=%" PRId32 ": at most %" PRId32, k, kMaxExtent);
  const int64_t bands = rows.most_blocks() * rows.matrices();
  if (bands > std::numeric_limits<int32_t>::max() / tiles_of_band)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                "rows=%" PRId32 ": %" PRId64 " blocks of 128 rows with %" PRId32
                " tiles each, at most 2^31-1",
                rows.m, bands, tiles_of_band);
  return kOk;
}

Tensor matrix(int32_t row_elements, int32_t bits, int32_t alignment, Tensor t) {
  t.row_elements = row_elements;
  t.bits = bits;
  t.alignment = alignment;
  return resolved(t);
}

Tensor floats(const char* name, const char* stride_name, const float* base, int32_t count, int32_t problems,
              int64_t stride) {
  return vector(name, stride_name, base, count, problems, stride);
}

Tensor integers(const char* name, const int32_t* base, int32_t count) {
  return vector(name, nullptr, base, count, 1, 0);
}

dualgemm_status_t check_tensors(Tensors inputs, Tensors outputs, const char* columns) {
  const auto check_each = [&](const auto& check) {
    for (const Tensors& list : {inputs, outputs})
      for (const Tensor* t : list)
        if (t->given())
          if (auto status = check(*t)) return status;
    return kOk;
  };
  if (auto status = check_each([columns](const Tensor& t) { return check_pitch(t, columns); })) return status;
  for (dualgemm_status_t (*check)(const Tensor&) : {check_stride, check_alignment})
    if (auto status = check_each(check)) return status;
  return check_places(inputs, outputs);
}

}  // namespace dualgemm
