// validate.cpp -- the rules, one function per group, called in the order in which they are documented: the
// first rule that is violated decides the status. Texts start with the argument and its value.

#include "host/validate.h"

#include <cinttypes>
#include <cmath>

#include "host/arguments.h"
#include "host/region.h"
#include "host/sf_layout.h"
#include "host/status.h"
#include "host/supported.h"
#include "kernel/plan.h"

namespace dualgemm {
namespace {

constexpr dualgemm_status_t kOk = DUALGEMM_STATUS_SUCCESS;

static_assert(DUALGEMM_MAX_GROUPS == kMaxGroups);

constexpr uint32_t kKnownFlags = DUALGEMM_FLAG_PDL | DUALGEMM_FLAG_STATIC_WEIGHTS |
                                 DUALGEMM_FLAG_BATCH_INVARIANT | DUALGEMM_FLAG_CHECK_POINTERS |
                                 DUALGEMM_FLAG_EXACT_ACT | DUALGEMM_FLAG_NO_FALLBACK;

// TMA addresses, row pitches and strides, and 16-byte stores of C need multiples of this many bytes.
constexpr int kAlignment = 16;
int elements_of_alignment(const Tensor& t) { return kAlignment * 8 / t.bits; }

// Numbers of bytes stay below these powers of two. TMA strides are below the first, which is kept for a whole
// operand, too; the second is more than a GPU can address, and keeps byte arithmetic in 64 bits.
constexpr int kInputBytes = 40;
constexpr int kProblemsBytes = 48;

dualgemm_status_t check_enums(const dualgemm_args_t& args) {
  if (args.flags & ~kKnownFlags)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "flags=0x%" PRIx32 ": unknown bits 0x%" PRIx32, args.flags,
                args.flags & ~kKnownFlags);
  const struct {
    const char* name;
    int32_t value, last;
  } enums[] = {
      {"activation", args.activation, DUALGEMM_ACTIVATION_GLU},
      {"c_dtype", args.c_dtype, DUALGEMM_DTYPE_NVFP4},
      {"bias_dtype", args.bias_dtype, DUALGEMM_DTYPE_NVFP4},
      {"d_dtype", args.d_dtype, DUALGEMM_DTYPE_NVFP4},
      {"sfa_layout", args.sfa_layout, DUALGEMM_SF_LAYOUT_8X4},
      {"group_mode", args.group_mode, DUALGEMM_GROUP_MASKED},
      {"reserved0", args.reserved0, 0},
  };
  for (const auto& e : enums)
    if (e.value < 0 || e.value > e.last)
      return fail(DUALGEMM_STATUS_INVALID_VALUE, "%s=%" PRId32 ": must be in [0, %" PRId32 "]", e.name,
                  e.value, e.last);
  return kOk;
}

dualgemm_status_t check_groups(const dualgemm_args_t& args) {
  if (args.group_mode != DUALGEMM_GROUP_NONE) {
    if (args.groups < 1 || args.groups > kMaxGroups)
      return fail(DUALGEMM_STATUS_INVALID_VALUE, "groups=%" PRId32 ": must be in [1, %d] with a group_mode",
                  args.groups, kMaxGroups);
    if (args.batch > 1)
      return fail(DUALGEMM_STATUS_INVALID_VALUE, "batch=%" PRId32 ": must be 0 or 1 with a group_mode",
                  args.batch);
    return kOk;
  }
  if (args.groups != 0)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "groups=%" PRId32 ": must be 0 without a group_mode",
                args.groups);
  if (args.group_rows)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "group_rows=%p: must be NULL without a group_mode",
                static_cast<const void*>(args.group_rows));
  if (args.expected_rows != 0)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "expected_rows=%" PRId32 ": must be 0 without a group_mode",
                args.expected_rows);
  return kOk;
}

dualgemm_status_t check_numbers(const dualgemm_args_t& args) {
  const struct {
    const char* name;
    int32_t value;
  } counts[] = {{"M", args.m},
                {"N", args.n},
                {"K", args.k},
                {"batch", args.batch},
                {"max_sms", args.max_sms},
                {"expected_rows", args.expected_rows},
                {"alpha_stride", args.alpha_stride}};
  for (const auto& c : counts)
    if (c.value < 0)
      return fail(DUALGEMM_STATUS_INVALID_VALUE, "%s=%" PRId32 ": must not be negative", c.name, c.value);
  if (auto status = check_groups(args)) return status;

  const struct {
    const char* name;
    float value;
  } factors[] = {{"alpha1", args.alpha1},
                 {"alpha2", args.alpha2},
                 {"swiglu_alpha", args.swiglu_alpha},
                 {"swiglu_beta", args.swiglu_beta}};
  for (const auto& f : factors)
    if (!std::isfinite(f.value))
      return fail(DUALGEMM_STATUS_INVALID_VALUE, "%s=%g: must be finite", f.name,
                  static_cast<double>(f.value));
  if (!(args.swiglu_limit > 0))
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "swiglu_limit=%g: must be above 0",
                static_cast<double>(args.swiglu_limit));
  const bool uses_global_scale = args.c_dtype == DUALGEMM_DTYPE_NVFP4 && !args.c_global_scale_dev;
  if (uses_global_scale && !(args.c_global_scale > 0 && std::isfinite(args.c_global_scale)))
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "c_global_scale=%g: must be finite and above 0",
                static_cast<double>(args.c_global_scale));
  return kOk;
}

dualgemm_status_t check_shape(const Problem& problem) {
  const dualgemm_args_t& args = problem.args;
  if (args.k % kSfBlock != 0)
    return fail(DUALGEMM_STATUS_INVALID_SHAPE, "K=%" PRId32 ": must be a multiple of %d", args.k, kSfBlock);
  if (args.k == 0 && problem.grouped())
    return fail(DUALGEMM_STATUS_INVALID_SHAPE, "K=0: must be above 0 with a group_mode");
  // A row of C is stored in pieces of 16 bytes; an NVFP4 output needs whole blocks that share a scale factor.
  const int multiple =
      args.c_dtype == DUALGEMM_DTYPE_NVFP4 ? kSfBlock : elements_of_alignment(problem.output);
  if (args.n % multiple != 0)
    return fail(DUALGEMM_STATUS_INVALID_SHAPE, "N=%" PRId32 ": must be a multiple of %d", args.n, multiple);
  return kOk;
}

dualgemm_status_t check_pointers_present(const Problem& problem) {
  const dualgemm_args_t& args = problem.args;
  for (const Tensor& input : problem.read_inputs())
    if (!input.base)
      return fail(DUALGEMM_STATUS_NULL_POINTER, "%s=NULL: must be a device pointer", input.name);
  if (!args.c) return fail(DUALGEMM_STATUS_NULL_POINTER, "c=NULL: must be a device pointer");
  if (args.c_dtype == DUALGEMM_DTYPE_NVFP4 && !args.sfc)
    return fail(DUALGEMM_STATUS_NULL_POINTER, "sfc=NULL: an NVFP4 output needs scale factors");
  if (problem.grouped() && !args.group_rows)
    return fail(DUALGEMM_STATUS_NULL_POINTER, "group_rows=NULL: must be a device pointer");

  if (args.c_dtype != DUALGEMM_DTYPE_NVFP4 && args.sfc)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "sfc=%p: must be NULL unless c_dtype is NVFP4", args.sfc);
  if (!args.d1 != !args.d2)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "d1=%p, d2=%p: set both or none", args.d1, args.d2);
  return kOk;
}

// `columns` is what the caller calls the elements of a row.
dualgemm_status_t check_pitch(const Tensor& t, const char* columns, int log2_bytes) {
  if (t.pitch < t.row_elements)
    return fail(DUALGEMM_STATUS_INVALID_STRIDE, "%s=%" PRId64 ": must be at least %s=%" PRId64, t.pitch_name,
                t.pitch, columns, t.row_elements);
  if (t.pitch % elements_of_alignment(t) != 0)
    return fail(DUALGEMM_STATUS_INVALID_STRIDE, "%s=%" PRId64 ": must be a multiple of %d", t.pitch_name,
                t.pitch, elements_of_alignment(t));
  if (t.pitch >= (int64_t{1} << log2_bytes) / t.rows * 8 / t.bits)
    return fail(DUALGEMM_STATUS_INVALID_STRIDE,
                "%s=%" PRId64 ": %" PRId64 " rows must take less than 2^%d bytes", t.pitch_name, t.pitch,
                t.rows, log2_bytes);
  return kOk;
}

dualgemm_status_t check_pitches(const Problem& problem) {
  for (const Tensor& t : problem.read_inputs()) {
    if (t.scale_factors()) continue;
    const int multiple = elements_of_alignment(t);
    if (t.compact && t.pitch % multiple != 0)
      return fail(DUALGEMM_STATUS_INVALID_STRIDE,
                  "K=%" PRId32 ": rows must start at multiples of %d bytes, pass %s >= %" PRId64,
                  problem.args.k, kAlignment, t.pitch_name, ceil_div(t.pitch, multiple) * multiple);
    if (auto status = check_pitch(t, "K", kInputBytes)) return status;
  }
  return check_pitch(problem.output, "N", kProblemsBytes);
}

// Checks the step from one problem of a tensor to the next.
dualgemm_status_t check_stride(const Tensor& t) {
  if (t.stride < 0)
    return fail(DUALGEMM_STATUS_INVALID_STRIDE, "%s=%" PRId64 ": must not be negative", t.stride_name,
                t.stride);
  if (t.stride < t.elements())
    return fail(DUALGEMM_STATUS_INVALID_STRIDE, "%s=%" PRId64 ": must be at least %" PRId64 ", one problem",
                t.stride_name, t.stride, t.elements());
  if (t.stride % elements_of_alignment(t) != 0)
    return fail(DUALGEMM_STATUS_INVALID_STRIDE, "%s=%" PRId64 ": must be a multiple of %d", t.stride_name,
                t.stride, elements_of_alignment(t));
  if (t.stride / 8 >= (int64_t{1} << kProblemsBytes) / t.problems / t.bits)
    return fail(DUALGEMM_STATUS_INVALID_STRIDE,
                "%s=%" PRId64 ": %" PRId32 " problems must take less than 2^%d bytes", t.stride_name,
                t.stride, t.problems, kProblemsBytes);
  return kOk;
}

dualgemm_status_t check_strides(const Problem& problem) {
  for (const Tensor& t : problem.read_inputs()) {
    if (auto status = check_stride(t)) return status;
    if (t.stride / 8 >= (int64_t{1} << kInputBytes) / t.bits)
      return fail(DUALGEMM_STATUS_INVALID_STRIDE, "%s=%" PRId64 ": must be less than 2^%d bytes",
                  t.stride_name, t.stride, kInputBytes);
  }
  return check_stride(problem.output);
}

dualgemm_status_t check_aligned(const char* name, const void* pointer, unsigned alignment) {
  if (reinterpret_cast<uintptr_t>(pointer) % alignment == 0) return kOk;
  return fail(DUALGEMM_STATUS_MISALIGNED, "%s=%p: must be %u-byte aligned", name, pointer, alignment);
}

dualgemm_status_t check_alignment(const Problem& problem) {
  const dualgemm_args_t& args = problem.args;
  for (const Tensor& input : problem.read_inputs())
    if (auto status = check_aligned(input.name, input.base, kAlignment)) return status;
  const struct {
    const char* name;
    const void* pointer;
    unsigned alignment;
  } others[] = {
      {"c", args.c, kAlignment},
      {"sfc", args.sfc, kAlignment},
      {"d1", args.d1, kAlignment},
      {"d2", args.d2, kAlignment},
      {"alpha1_dev", args.alpha1_dev, alignof(float)},
      {"alpha2_dev", args.alpha2_dev, alignof(float)},
      {"a_row_scale", args.a_row_scale, alignof(float)},
      {"c_global_scale_dev", args.c_global_scale_dev, alignof(float)},
      {"amax_out", args.amax_out, alignof(float)},
      {"group_rows", args.group_rows, alignof(int32_t)},
      {"workspace", args.workspace, 256},
  };
  for (const auto& o : others)
    if (auto status = check_aligned(o.name, o.pointer, o.alignment)) return status;
  return kOk;
}

// Scale factors follow each other without a gap, so all rows of a problem count as one.
Region region_of(const Tensor& t) {
  if (t.scale_factors())
    return {t.name, t.base, t.problems, t.bytes(t.stride), 1, 0, t.bytes(t.rows * t.pitch)};
  return {t.name, t.base, t.problems, t.bytes(t.stride), t.rows, t.bytes(t.pitch), t.bytes(t.row_elements)};
}

dualgemm_status_t check_aliasing(const Problem& problem) {
  const dualgemm_args_t& args = problem.args;
  if (args.k == 0) return kOk;
  const Region c = region_of(problem.output);
  const auto check = [&c](const Region& input) {
    if (!overlap(c, input)) return kOk;
    return fail(DUALGEMM_STATUS_ALIASING, "c=%p: overlaps %s=%p", c.base, input.name, input.base);
  };
  for (const Tensor& input : problem.read_inputs())
    if (auto status = check(region_of(input))) return status;

  if (!problem.grouped()) return kOk;
  const int64_t entries = args.groups + (problem.group_offsets() ? 1 : 0);
  return check({"group_rows", args.group_rows, 1, 0, 1, 0, entries * int64_t{sizeof(int32_t)}});
}

}  // namespace

dualgemm_status_t validate(const dualgemm_args_t* user_args, Problem* problem) {
  dualgemm_args_t args;
  if (auto status = copy_args(user_args, &args)) return status;
  if (auto status = check_enums(args)) return status;
  if (auto status = check_numbers(args)) return status;

  *problem = problem_of(args);
  if (problem->empty) return kOk;

  if (auto status = check_shape(*problem)) return status;
  if (auto status = check_pointers_present(*problem)) return status;
  if (auto status = check_pitches(*problem)) return status;
  if (auto status = check_strides(*problem)) return status;
  if (auto status = check_alignment(*problem)) return status;
  if (auto status = check_aliasing(*problem)) return status;
  return check_supported(*problem);
}

}  // namespace dualgemm
