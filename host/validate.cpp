// validate.cpp -- the rules, one function per group, called in the order in which they are documented: the
// first rule that is violated decides the status. Texts start with the argument and its value.

#include "host/validate.h"

#include <cuda_runtime_api.h>

#include <cinttypes>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "host/region.h"
#include "host/sf_layout.h"
#include "host/status.h"

namespace dualgemm {
namespace {

constexpr dualgemm_status_t kOk = DUALGEMM_STATUS_SUCCESS;

// The structure as the first release knew it. It only ever grows, so a smaller size was never valid.
constexpr uint32_t kFirstReleaseSize = 344;
static_assert(sizeof(dualgemm_args_t) >= kFirstReleaseSize);
static_assert(DUALGEMM_MAX_GROUPS == kMaxGroups);

constexpr uint32_t kKnownFlags = DUALGEMM_FLAG_PDL | DUALGEMM_FLAG_STATIC_WEIGHTS |
                                 DUALGEMM_FLAG_BATCH_INVARIANT | DUALGEMM_FLAG_CHECK_POINTERS |
                                 DUALGEMM_FLAG_EXACT_ACT | DUALGEMM_FLAG_NO_FALLBACK;

constexpr int kAlignment = 16;   // bytes: TMA addresses and row pitches, and 16-byte stores of C
constexpr int kPitchElems = 32;  // 16 bytes of packed E2M1
constexpr int64_t kMaxTensorBytes = int64_t{1}
                                    << 40;  // TMA strides are below this; kept for a whole operand, too
constexpr int64_t kMaxOutputBytes = int64_t{1}
                                    << 48;  // more than a GPU can address; keeps byte arithmetic in 64 bits

// A tile of a group may start at any row: the kernel's 32-bit arithmetic goes up to the end of that tile.
constexpr int32_t kMaxGroupedRows = std::numeric_limits<int32_t>::max() - 1023;

int bits_of(int32_t dtype) {
  switch (dtype) {
    case DUALGEMM_DTYPE_FP32: return 32;
    case DUALGEMM_DTYPE_NVFP4: return 4;
    default: return 16;
  }
}

// Copies what the caller has of the structure; fields that are younger than the caller keep their defaults.
dualgemm_status_t copy_args(const dualgemm_args_t* args, dualgemm_args_t* out) {
  if (!args) return fail(DUALGEMM_STATUS_NULL_POINTER, "args=NULL: must point to a dualgemm_args_t");
  const uint32_t size = args->struct_size;
  if (size < kFirstReleaseSize)
    return fail(DUALGEMM_STATUS_VERSION_MISMATCH,
                "struct_size=%" PRIu32 ": below %" PRIu32
                ", the first release's; call dualgemm_args_init first",
                size, kFirstReleaseSize);
  *out = default_args();
  const size_t shared = size < sizeof *out ? size : sizeof *out;
  std::memcpy(out, args, shared);
  const auto* bytes = reinterpret_cast<const unsigned char*>(args);
  for (size_t i = shared; i < size; ++i)
    if (bytes[i] != 0)
      return fail(DUALGEMM_STATUS_VERSION_MISMATCH,
                  "struct_size=%" PRIu32 ": byte %zu is set, but this library knows only %zu bytes", size, i,
                  sizeof *out);
  return kOk;
}

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
  // 16 bytes of a row of C; an NVFP4 output needs whole blocks that share a factor.
  const int multiple =
      args.c_dtype == DUALGEMM_DTYPE_NVFP4 ? kSfBlock : kAlignment * 8 / bits_of(args.c_dtype);
  if (args.n % multiple != 0)
    return fail(DUALGEMM_STATUS_INVALID_SHAPE, "N=%" PRId32 ": must be a multiple of %d", args.n, multiple);
  return kOk;
}

constexpr int kInputCount = 6;
struct Inputs {
  Region regions[kInputCount];
};

Inputs inputs_of(const Problem& problem) {
  const dualgemm_args_t& args = problem.args;
  const auto operand = [&](const char* name, const void* base, int32_t problems, int64_t stride, int32_t rows,
                           int64_t ld) {
    return Region{name, base, problems, stride / 2, rows, ld / 2, args.k / 2};
  };
  const auto scales = [&](const char* name, const void* base, int32_t problems, int64_t stride,
                          int32_t rows) {
    return Region{name, base, problems, stride, 1, 0, sf_bytes(rows, args.k)};
  };
  // With offsets only the device knows how many bands of 128 rows there are; the first one is compared.
  const int32_t sfa_rows = problem.group_offsets() ? kSfAtomRows : args.m;
  return {{operand("a", args.a, problem.a_problems, args.batch_stride_a, args.m, args.lda),
           operand("b1", args.b1, problem.problems, args.batch_stride_b1, args.n, args.ldb1),
           operand("b2", args.b2, problem.problems, args.batch_stride_b2, args.n, args.ldb2),
           scales("sfa", args.sfa, problem.a_problems, args.batch_stride_sfa, sfa_rows),
           scales("sfb1", args.sfb1, problem.problems, args.batch_stride_sfb1, args.n),
           scales("sfb2", args.sfb2, problem.problems, args.batch_stride_sfb2, args.n)}};
}

Region output_of(const Problem& problem) {
  const dualgemm_args_t& args = problem.args;
  const int bits = bits_of(args.c_dtype);
  return {"c",
          args.c,
          problem.a_problems,
          args.batch_stride_c * bits / 8,
          args.m,
          args.ldc * bits / 8,
          int64_t{args.n} * bits / 8};
}

// K == 0 reads no input: only what is said about the output matters then.
dualgemm_status_t check_pointers_present(const Problem& problem) {
  const dualgemm_args_t& args = problem.args;
  if (args.k > 0)
    for (const Region& input : inputs_of(problem).regions)
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

// Resolves ld = 0 and checks the pitch of one packed operand.
dualgemm_status_t check_operand_pitch(const char* name, int64_t* ld, int32_t rows, int32_t k) {
  const bool compact = *ld == 0;
  if (compact) *ld = k;
  if (*ld < k)
    return fail(DUALGEMM_STATUS_INVALID_STRIDE, "%s=%" PRId64 ": must be at least K=%" PRId32, name, *ld, k);
  if (*ld % kPitchElems != 0) {
    if (compact)
      return fail(DUALGEMM_STATUS_INVALID_STRIDE,
                  "K=%" PRId32 ": rows must start at multiples of 16 bytes, pass %s >= %" PRId64, k, name,
                  ceil_div(k, kPitchElems) * kPitchElems);
    return fail(DUALGEMM_STATUS_INVALID_STRIDE, "%s=%" PRId64 ": must be a multiple of %d", name, *ld,
                kPitchElems);
  }
  if (*ld / 2 >= kMaxTensorBytes / rows)
    return fail(DUALGEMM_STATUS_INVALID_STRIDE,
                "%s=%" PRId64 ": %" PRId32 " rows must take less than 2^40 bytes", name, *ld, rows);
  return kOk;
}

dualgemm_status_t check_pitches(dualgemm_args_t* args) {
  if (args->k > 0) {
    const struct {
      const char* name;
      int64_t* ld;
      int32_t rows;
    } operands[] = {
        {"lda", &args->lda, args->m}, {"ldb1", &args->ldb1, args->n}, {"ldb2", &args->ldb2, args->n}};
    for (const auto& o : operands)
      if (auto status = check_operand_pitch(o.name, o.ld, o.rows, args->k)) return status;
  }
  if (args->ldc == 0) args->ldc = args->n;
  if (args->ldc < args->n)
    return fail(DUALGEMM_STATUS_INVALID_STRIDE, "ldc=%" PRId64 ": must be at least N=%" PRId32, args->ldc,
                args->n);
  const int bits = bits_of(args->c_dtype);
  const int multiple = kAlignment * 8 / bits;
  if (args->ldc % multiple != 0)
    return fail(DUALGEMM_STATUS_INVALID_STRIDE, "ldc=%" PRId64 ": must be a multiple of %d", args->ldc,
                multiple);
  if (args->ldc >= kMaxOutputBytes / args->m * 8 / bits)
    return fail(DUALGEMM_STATUS_INVALID_STRIDE,
                "ldc=%" PRId64 ": %" PRId32 " rows must take less than 2^48 bytes", args->ldc, args->m);
  return kOk;
}

// Resolves a stride of 0 and checks the step from one problem of a tensor to the next.
struct Stride {
  const char* name;
  int64_t* elements;  // of `bits` bits
  int32_t problems;
  int64_t compact, least;
  int multiple, bits;
};

dualgemm_status_t check_stride(const Stride& s) {
  if (s.problems == 1 || *s.elements == 0) *s.elements = s.compact;
  const int64_t stride = *s.elements;
  if (stride < 0)
    return fail(DUALGEMM_STATUS_INVALID_STRIDE, "%s=%" PRId64 ": must not be negative", s.name, stride);
  if (stride < s.least)
    return fail(DUALGEMM_STATUS_INVALID_STRIDE, "%s=%" PRId64 ": must be at least %" PRId64 ", one problem",
                s.name, stride, s.least);
  if (stride % s.multiple != 0)
    return fail(DUALGEMM_STATUS_INVALID_STRIDE, "%s=%" PRId64 ": must be a multiple of %d", s.name, stride,
                s.multiple);
  if (stride / 8 >= kMaxOutputBytes / s.problems / s.bits)
    return fail(DUALGEMM_STATUS_INVALID_STRIDE,
                "%s=%" PRId64 ": %" PRId32 " problems must take less than 2^48 bytes", s.name, stride,
                s.problems);
  return kOk;
}

dualgemm_status_t check_strides(Problem* problem) {
  dualgemm_args_t& args = problem->args;
  if (args.k > 0) {
    const auto operand = [&](const char* name, int64_t* stride, int32_t problems, int32_t rows, int64_t ld) {
      return Stride{name, stride, problems, rows * ld, (rows - 1) * ld + args.k, kPitchElems, 4};
    };
    const auto scales = [&](const char* name, int64_t* stride, int32_t problems, int32_t rows) {
      const int64_t bytes = sf_bytes(rows, args.k);
      return Stride{name, stride, problems, bytes, bytes, kAlignment, 8};
    };
    const Stride inputs[] = {
        operand("batch_stride_a", &args.batch_stride_a, problem->a_problems, args.m, args.lda),
        operand("batch_stride_b1", &args.batch_stride_b1, problem->problems, args.n, args.ldb1),
        operand("batch_stride_b2", &args.batch_stride_b2, problem->problems, args.n, args.ldb2),
        scales("batch_stride_sfa", &args.batch_stride_sfa, problem->a_problems, args.m),
        scales("batch_stride_sfb1", &args.batch_stride_sfb1, problem->problems, args.n),
        scales("batch_stride_sfb2", &args.batch_stride_sfb2, problem->problems, args.n)};
    for (const Stride& s : inputs) {
      if (auto status = check_stride(s)) return status;
      if (*s.elements / 8 >= kMaxTensorBytes / s.bits)
        return fail(DUALGEMM_STATUS_INVALID_STRIDE, "%s=%" PRId64 ": must be less than 2^40 bytes", s.name,
                    *s.elements);
    }
  }
  const int bits = bits_of(args.c_dtype);
  return check_stride({"batch_stride_c", &args.batch_stride_c, problem->a_problems, args.m * args.ldc,
                       (args.m - 1) * args.ldc + args.n, kAlignment * 8 / bits, bits});
}

dualgemm_status_t check_aligned(const char* name, const void* pointer, unsigned alignment) {
  if (reinterpret_cast<uintptr_t>(pointer) % alignment == 0) return kOk;
  return fail(DUALGEMM_STATUS_MISALIGNED, "%s=%p: must be %u-byte aligned", name, pointer, alignment);
}

dualgemm_status_t check_alignment(const Problem& problem) {
  const dualgemm_args_t& args = problem.args;
  if (args.k > 0)
    for (const Region& input : inputs_of(problem).regions)
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

dualgemm_status_t check_aliasing(const Problem& problem) {
  const dualgemm_args_t& args = problem.args;
  if (args.k == 0) return kOk;
  const Region c = output_of(problem);
  const auto check = [&c](const Region& input) {
    if (!overlap(c, input)) return kOk;
    return fail(DUALGEMM_STATUS_ALIASING, "c=%p: overlaps %s=%p", c.base, input.name, input.base);
  };
  for (const Region& input : inputs_of(problem).regions)
    if (auto status = check(input)) return status;

  if (!problem.grouped()) return kOk;
  const int64_t entries = args.groups + (problem.group_offsets() ? 1 : 0);
  return check({"group_rows", args.group_rows, 1, 0, 1, 0, entries * int64_t{sizeof(int32_t)}});
}

// Requests that the structure can express and the kernels of this release do not compute.
dualgemm_status_t check_supported(const dualgemm_args_t& args) {
  const bool plain_swiglu = args.swiglu_alpha == 1 && args.swiglu_beta == 0 && std::isinf(args.swiglu_limit);
  const struct {
    bool asked;
    const char* text;
  } unsupported[] = {
      {(args.flags & DUALGEMM_FLAG_CHECK_POINTERS) != 0, "flags: DUALGEMM_FLAG_CHECK_POINTERS"},
      {(args.flags & DUALGEMM_FLAG_EXACT_ACT) != 0, "flags: DUALGEMM_FLAG_EXACT_ACT"},
      {args.activation != DUALGEMM_ACTIVATION_SWIGLU, "activation: anything but SWIGLU"},
      {args.c_dtype == DUALGEMM_DTYPE_FP32, "c_dtype: FP32 output"},
      {args.c_dtype == DUALGEMM_DTYPE_NVFP4, "c_dtype: NVFP4 output"},
      {args.sfa_layout != DUALGEMM_SF_LAYOUT_128X4, "sfa_layout: anything but 128X4"},
      {args.a_row_scale != nullptr, "a_row_scale: a factor per row of A"},
      {args.bias1 != nullptr, "bias1: a bias"},
      {args.bias2 != nullptr, "bias2: a bias"},
      {args.c_global_scale_dev != nullptr, "c_global_scale_dev: a global scale of C"},
      {!plain_swiglu, "swiglu_alpha, swiglu_beta, swiglu_limit: values other than 1, 0, infinity"},
      {args.amax_out != nullptr, "amax_out: the largest output"},
      {args.d1 != nullptr, "d1, d2: the products before the activation"},
  };
  for (const auto& u : unsupported)
    if (u.asked) return fail(DUALGEMM_STATUS_NOT_SUPPORTED, "%s: not supported by this release", u.text);
  return kOk;
}

dualgemm_status_t check_config(const Problem& problem) {
  const int32_t id = problem.args.config_id;
  if (problem.grouped() && problem.args.m > kMaxGroupedRows)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED, "M=%" PRId32 ": at most %" PRId32 " with a group_mode",
                problem.args.m, kMaxGroupedRows);
  if (id < 0 || id > kInstanceCount)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "config_id=%" PRId32 ": must be in [0, %d]", id,
                kInstanceCount);
  if (id > 0 && kInstances[id - 1].c_type != problem.c_type)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                "config_id=%" PRId32 ": %s does not write the requested c_dtype", id,
                kInstances[id - 1].name);
  if (id > 0 && (kInstances[id - 1].grouped != 0) != problem.grouped())
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED, "config_id=%" PRId32 ": %s is for launches %s a group_mode",
                id, kInstances[id - 1].name, problem.grouped() ? "without" : "with");
  for (int32_t i = 0; i < kInstanceCount; ++i) {
    const Instance& instance = kInstances[i];
    const bool fits = instance.c_type == problem.c_type && (instance.grouped != 0) == problem.grouped();
    const int64_t tiles = tile_bound(problem, instance);
    if ((id > 0 ? i == id - 1 : fits) && tiles > std::numeric_limits<int32_t>::max())
      return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                  "M=%" PRId32 ", N=%" PRId32 ": %" PRId64 " tiles, at most 2^31-1", problem.args.m,
                  problem.args.n, tiles);
  }
  return kOk;
}

}  // namespace

dualgemm_args_t default_args() {
  dualgemm_args_t args{};
  args.struct_size = sizeof args;
  args.alpha1 = args.alpha2 = 1;
  args.c_global_scale = 1;
  args.swiglu_alpha = 1;
  args.swiglu_limit = std::numeric_limits<float>::infinity();
  args.c_dtype = DUALGEMM_DTYPE_BF16;
  return args;
}

dualgemm_status_t validate(const dualgemm_args_t* user_args, Problem* problem) {
  dualgemm_args_t& args = problem->args;
  if (auto status = copy_args(user_args, &args)) return status;
  if (auto status = check_enums(args)) return status;
  if (auto status = check_numbers(args)) return status;

  if (args.batch == 0) args.batch = 1;
  problem->problems = problem->grouped() ? args.groups : args.batch;
  problem->a_problems = problem->group_offsets() ? 1 : problem->problems;
  problem->empty = args.m == 0 || args.n == 0;
  if (problem->empty) return kOk;

  if (auto status = check_shape(*problem)) return status;
  if (auto status = check_pointers_present(*problem)) return status;
  if (auto status = check_pitches(&args)) return status;
  if (auto status = check_strides(problem)) return status;
  if (auto status = check_alignment(*problem)) return status;
  if (auto status = check_aliasing(*problem)) return status;
  if (auto status = check_supported(args)) return status;

  problem->c_type = args.c_dtype == DUALGEMM_DTYPE_FP16 ? CType::kFp16 : CType::kBf16;
  return check_config(*problem);
}

int64_t tile_bound(const Problem& problem, const Instance& instance) {
  const int64_t n_tiles = ceil_div(problem.args.n, instance.tile_n);
  // Each group with rows ends in one tile that may be partly filled; all others are full.
  if (problem.group_offsets())
    return n_tiles * (problem.args.m / instance.tile_m + problem.groups_with_rows());
  return n_tiles * ceil_div(problem.args.m, instance.tile_m) * problem.problems;
}

dualgemm_status_t validate_device(const dualgemm_device_t& device) {
  if (device.sm_count <= 0)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "sm_count=%" PRId32 ": must be above 0", device.sm_count);
  if (device.clusters_of_2 < 0 || device.clusters_of_4 < 0)
    return fail(DUALGEMM_STATUS_INVALID_VALUE,
                "clusters_of_2=%" PRId32 ", clusters_of_4=%" PRId32 ": must not be negative",
                device.clusters_of_2, device.clusters_of_4);
  // CUDA's minor-version compatibility: machine code of toolkit x.y runs on every driver of x or newer.
  constexpr int kDriverNeeded = CUDART_VERSION / 1000 * 1000;
  if (device.driver_version < kDriverNeeded)
    return fail(DUALGEMM_STATUS_DRIVER_TOO_OLD,
                "driver supports CUDA %d.%d; the library is built with CUDA %d.%d",
                device.driver_version / 1000, device.driver_version % 1000 / 10, CUDART_VERSION / 1000,
                CUDART_VERSION % 1000 / 10);
  // The family target sm_100f: one image for all of 10.x, and for nothing else.
  if (device.cc_major != 10) {
    const int name_length = static_cast<int>(strnlen(device.name, sizeof device.name));
    return fail(DUALGEMM_STATUS_ARCH_MISMATCH,
                "library is built for compute capability 10.x; device %" PRId32 " is %" PRId32 ".%" PRId32
                " (%.*s)",
                device.ordinal, device.cc_major, device.cc_minor, name_length ? name_length : 7,
                name_length ? device.name : "unnamed");
  }
  return kOk;
}

}  // namespace dualgemm
