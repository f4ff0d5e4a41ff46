// tensor_rules.cpp -- see tensor_rules.h.

#include "host/common/tensor_rules.h"

#include <cinttypes>
#include <cstdint>

#include "host/common/region.h"
#include "host/common/sf_layout.h"
#include "host/common/status.h"

namespace dualgemm {
namespace {

// Addresses, row pitches and strides are multiples of the alignment: TMA, and stores of 16 bytes, need it.
int elements_of_alignment(const Tensor& t) { return t.alignment * 8 / t.bits; }

// A launch calls the next two functions for every tensor. They avoid divisions, which would take longer than
// the rest of them.

// Returns whether this many elements end between two multiples of the alignment. The alignment and the size
// of an element, in bits, are powers of two.
bool misaligned(int64_t elements, const Tensor& t) {
  return (static_cast<uint64_t>(elements) * static_cast<uint64_t>(t.bits) & (8u * t.alignment - 1)) != 0;
}

// Returns whether `count` pieces of `elements` elements take 2^log2_bytes bytes or more. `count` is below
// 2^31.
bool reach(int64_t elements, int64_t count, int32_t bits, int log2_bytes) {
  int64_t all = 0;
  return __builtin_mul_overflow(elements, count * bits, &all) || all >= int64_t{8} << log2_bytes;
}

// Rows without gaps between them count as one.
Region region_of(const Tensor& t) {
  if (!t.has_pitch()) return {t.name, t.base, t.problems, t.bytes(t.stride), 1, 0, t.bytes(t.rows * t.pitch)};
  return {t.name, t.base, t.problems, t.bytes(t.stride), t.rows, t.bytes(t.pitch), t.bytes(t.row_elements)};
}

}  // namespace

dualgemm_status_t check_pitch(const Tensor& t, const char* columns, int log2_bytes) {
  if (!t.has_pitch()) return kOk;
  if (t.compact && misaligned(t.pitch, t)) {
    const int multiple = elements_of_alignment(t);
    return fail(DUALGEMM_STATUS_INVALID_STRIDE,
                "%s=%" PRId64 ": rows must start at multiples of %" PRId32 " bytes, pass %s >= %" PRId64,
                columns, t.pitch, t.alignment, t.pitch_name, ceil_div(t.pitch, multiple) * multiple);
  }
  if (t.pitch < t.row_elements)
    return fail(DUALGEMM_STATUS_INVALID_STRIDE, "%s=%" PRId64 ": must be at least %s=%" PRId64, t.pitch_name,
                t.pitch, columns, t.row_elements);
  if (misaligned(t.pitch, t))
    return fail(DUALGEMM_STATUS_INVALID_STRIDE, "%s=%" PRId64 ": must be a multiple of %d", t.pitch_name,
                t.pitch, elements_of_alignment(t));
  if (reach(t.pitch, t.rows, t.bits, log2_bytes))
    return fail(DUALGEMM_STATUS_INVALID_STRIDE,
                "%s=%" PRId64 ": %" PRId64 " rows must take less than 2^%d bytes", t.pitch_name, t.pitch,
                t.rows, log2_bytes);
  return kOk;
}

dualgemm_status_t check_stride(const Tensor& t) {
  if (t.stride < 0)
    return fail(DUALGEMM_STATUS_INVALID_STRIDE, "%s=%" PRId64 ": must not be negative", t.stride_name,
                t.stride);
  if (t.stride < t.elements())
    return fail(DUALGEMM_STATUS_INVALID_STRIDE, "%s=%" PRId64 ": must be at least %" PRId64 ", one problem",
                t.stride_name, t.stride, t.elements());
  if (misaligned(t.stride, t))
    return fail(DUALGEMM_STATUS_INVALID_STRIDE, "%s=%" PRId64 ": must be a multiple of %d", t.stride_name,
                t.stride, elements_of_alignment(t));
  if (reach(t.stride, t.problems, t.bits, kProblemsBytes))
    return fail(DUALGEMM_STATUS_INVALID_STRIDE,
                "%s=%" PRId64 ": %" PRId32 " problems must take less than 2^%d bytes", t.stride_name,
                t.stride, t.problems, kProblemsBytes);
  return kOk;
}

dualgemm_status_t check_alignment(const Tensor& t) {
  if ((reinterpret_cast<uintptr_t>(t.base) & (static_cast<unsigned>(t.alignment) - 1)) == 0) return kOk;
  return fail(DUALGEMM_STATUS_MISALIGNED, "%s=%p: must be %" PRId32 "-byte aligned", t.name, t.base,
              t.alignment);
}

dualgemm_status_t check_end(const Tensor& t, uintptr_t* last) {
  const int64_t bytes = t.all_bytes();
  *last = reinterpret_cast<uintptr_t>(t.base) + static_cast<uintptr_t>(bytes) - 1;
  if (bytes == 0 || static_cast<uint64_t>(bytes) - 1 <= UINTPTR_MAX - reinterpret_cast<uintptr_t>(t.base))
    return kOk;
  return fail(DUALGEMM_STATUS_INVALID_VALUE, "%s=%p: its %" PRId64 " bytes reach beyond the last address",
              t.name, t.base, bytes);
}

dualgemm_status_t check_overlap(const Tensor& output, const Tensor& other) {
  // Most tensors end before the other one begins.
  if (output.last_byte() < reinterpret_cast<uintptr_t>(other.base) ||
      other.last_byte() < reinterpret_cast<uintptr_t>(output.base))
    return kOk;
  if (!overlap(region_of(output), region_of(other))) return kOk;
  return fail(DUALGEMM_STATUS_ALIASING, "%s=%p: overlaps %s=%p", output.name, output.base, other.name,
              other.base);
}

dualgemm_status_t check_places(Tensors inputs, Tensors outputs) {
  uintptr_t last;
  for (const Tensors& list : {inputs, outputs})
    for (const Tensor* t : list)
      if (t->given())
        if (auto status = check_end(*t, &last)) return status;
  for (const Tensor* const* output = outputs.begin(); output != outputs.end(); ++output) {
    if (!(*output)->given()) continue;
    for (const Tensor* input : inputs)
      if (input->given())
        if (auto status = check_overlap(**output, *input)) return status;
    for (const Tensor* const* other = output + 1; other != outputs.end(); ++other)
      if ((*other)->given())
        if (auto status = check_overlap(**output, **other)) return status;
  }
  return kOk;
}

Tensor host_matrix(const char* name, const char* pitch_name, const void* base, int32_t rows,
                   int64_t row_elements, int32_t bits, int64_t pitch) {
  Tensor t{name, pitch_name, nullptr, base, 1, 0, rows, pitch, row_elements, bits};
  t.alignment = 1;
  return resolved(t);
}

Tensor host_factors(const char* name, const void* base, int32_t rows, int32_t k) {
  return host_matrix(name, nullptr, base, static_cast<int32_t>(sf_row_blocks(rows)),
                     sf_atoms(k) * kSfAtomBytes, 8, 0);
}

Tensor with_gaps(const Tensor& matrix) {
  Tensor t = matrix;
  t.pitch_name = nullptr;
  t.row_elements = t.pitch;
  return t;
}

}  // namespace dualgemm
