// validate.cpp -- the rules, one function per group, called in the order in which they are documented: the
// first rule that is violated decides the status. Texts start with the argument and its value.

#include "host/validate.h"

#include <cuda_runtime_api.h>

#include <cinttypes>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "host/select_config.h"
#include "host/sf_layout.h"
#include "host/status.h"
#include "kernel/instances.h"

namespace dualgemm {
namespace {

constexpr dualgemm_status_t kOk = DUALGEMM_STATUS_SUCCESS;

// The structure as the first release knew it. It only ever grows, so a smaller size was never valid.
constexpr uint32_t kFirstReleaseSize = 344;
static_assert(sizeof(dualgemm_args_t) >= kFirstReleaseSize);

constexpr uint32_t kKnownFlags = DUALGEMM_FLAG_PDL | DUALGEMM_FLAG_STATIC_WEIGHTS |
                                 DUALGEMM_FLAG_BATCH_INVARIANT | DUALGEMM_FLAG_CHECK_POINTERS |
                                 DUALGEMM_FLAG_EXACT_ACT | DUALGEMM_FLAG_NO_FALLBACK;

constexpr int kAlignment = 16;   // bytes: TMA addresses and row pitches, and 16-byte stores of C
constexpr int kPitchElems = 32;  // 16 bytes of packed E2M1
constexpr int64_t kMaxTensorBytes = int64_t{1}
                                    << 40;  // TMA strides are below this; kept for a whole operand, too
constexpr int64_t kMaxOutputBytes = int64_t{1}
                                    << 48;  // more than a GPU can address; keeps byte arithmetic in 64 bits

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
      {"reserved0", args.reserved0, 0},
  };
  for (const auto& e : enums)
    if (e.value < 0 || e.value > e.last)
      return fail(DUALGEMM_STATUS_INVALID_VALUE, "%s=%" PRId32 ": must be in [0, %" PRId32 "]", e.name,
                  e.value, e.last);
  return kOk;
}

dualgemm_status_t check_numbers(const dualgemm_args_t& args) {
  const struct {
    const char* name;
    int32_t value;
  } counts[] = {
      {"M", args.m}, {"N", args.n}, {"K", args.k}, {"batch", args.batch}, {"max_sms", args.max_sms}};
  for (const auto& c : counts)
    if (c.value < 0)
      return fail(DUALGEMM_STATUS_INVALID_VALUE, "%s=%" PRId32 ": must not be negative", c.name, c.value);

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

dualgemm_status_t check_shape(const dualgemm_args_t& args) {
  if (args.k % kSfBlock != 0)
    return fail(DUALGEMM_STATUS_INVALID_SHAPE, "K=%" PRId32 ": must be a multiple of %d", args.k, kSfBlock);
  // 16 bytes of a row of C; an NVFP4 output needs whole blocks that share a factor.
  const int multiple =
      args.c_dtype == DUALGEMM_DTYPE_NVFP4 ? kSfBlock : kAlignment * 8 / bits_of(args.c_dtype);
  if (args.n % multiple != 0)
    return fail(DUALGEMM_STATUS_INVALID_SHAPE, "N=%" PRId32 ": must be a multiple of %d", args.n, multiple);
  return kOk;
}

// An input as the checks see it: `rows` rows of `row_bytes`, `pitch` bytes apart.
struct Region {
  const char* name;
  const void* base;
  int64_t rows, row_bytes, pitch;
};

constexpr int kInputCount = 6;
struct Inputs {
  Region regions[kInputCount];
};

Inputs inputs_of(const dualgemm_args_t& args) {
  const auto operand = [&](const char* name, const void* base, int32_t rows, int64_t ld) {
    return Region{name, base, rows, args.k / 2, ld / 2};
  };
  const auto scales = [&](const char* name, const void* base, int32_t rows) {
    return Region{name, base, 1, sf_bytes(rows, args.k), sf_bytes(rows, args.k)};
  };
  return {{operand("a", args.a, args.m, args.lda), operand("b1", args.b1, args.n, args.ldb1),
           operand("b2", args.b2, args.n, args.ldb2), scales("sfa", args.sfa, args.m),
           scales("sfb1", args.sfb1, args.n), scales("sfb2", args.sfb2, args.n)}};
}

Region output_of(const dualgemm_args_t& args) {
  const int bits = bits_of(args.c_dtype);
  return {"c", args.c, args.m, int64_t{args.n} * bits / 8, args.ldc * bits / 8};
}

// K == 0 reads no input: only what is said about the output matters then.
dualgemm_status_t check_pointers_present(const dualgemm_args_t& args) {
  if (args.k > 0)
    for (const Region& input : inputs_of(args).regions)
      if (!input.base)
        return fail(DUALGEMM_STATUS_NULL_POINTER, "%s=NULL: must be a device pointer", input.name);
  if (!args.c) return fail(DUALGEMM_STATUS_NULL_POINTER, "c=NULL: must be a device pointer");
  if (args.c_dtype == DUALGEMM_DTYPE_NVFP4 && !args.sfc)
    return fail(DUALGEMM_STATUS_NULL_POINTER, "sfc=NULL: an NVFP4 output needs scale factors");

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

dualgemm_status_t check_aligned(const char* name, const void* pointer, unsigned alignment) {
  if (reinterpret_cast<uintptr_t>(pointer) % alignment == 0) return kOk;
  return fail(DUALGEMM_STATUS_MISALIGNED, "%s=%p: must be %u-byte aligned", name, pointer, alignment);
}

dualgemm_status_t check_alignment(const dualgemm_args_t& args) {
  if (args.k > 0)
    for (const Region& input : inputs_of(args).regions)
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
      {"workspace", args.workspace, 256},
  };
  for (const auto& o : others)
    if (auto status = check_aligned(o.name, o.pointer, o.alignment)) return status;
  return kOk;
}

// Do two regions share a byte? Regions of equal pitch may interleave, as two halves of one wide matrix do.
// Once their ranges are known to overlap, each row of y that faces x starts r bytes behind the start of a row
// of x: it touches that row if it starts left of its end, and the next one if it reaches past the pitch.
// Regions of unequal pitch are compared as ranges.
bool overlap(const Region& x, const Region& y) {
  const auto span = [](const Region& region) { return (region.rows - 1) * region.pitch + region.row_bytes; };
  const auto distance =
      static_cast<int64_t>(reinterpret_cast<uintptr_t>(y.base) - reinterpret_cast<uintptr_t>(x.base));
  if (distance >= span(x) || -distance >= span(y)) return false;
  if (x.pitch != y.pitch) return true;

  const int64_t r = ((distance % x.pitch) + x.pitch) % x.pitch;
  return r < x.row_bytes || r + y.row_bytes > x.pitch;
}

dualgemm_status_t check_aliasing(const dualgemm_args_t& args) {
  if (args.k == 0) return kOk;
  const Region c = output_of(args);
  for (const Region& input : inputs_of(args).regions)
    if (overlap(c, input))
      return fail(DUALGEMM_STATUS_ALIASING, "c=%p: overlaps %s=%p", c.base, input.name, input.base);
  return kOk;
}

// Requests that the structure can express and the kernels of this release do not compute.
dualgemm_status_t check_supported(const dualgemm_args_t& args) {
  const bool plain_swiglu = args.swiglu_alpha == 1 && args.swiglu_beta == 0 && std::isinf(args.swiglu_limit);
  const struct {
    bool asked;
    const char* text;
  } unsupported[] = {
      {(args.flags & DUALGEMM_FLAG_PDL) != 0, "flags: DUALGEMM_FLAG_PDL"},
      {(args.flags & DUALGEMM_FLAG_STATIC_WEIGHTS) != 0, "flags: DUALGEMM_FLAG_STATIC_WEIGHTS"},
      {(args.flags & DUALGEMM_FLAG_CHECK_POINTERS) != 0, "flags: DUALGEMM_FLAG_CHECK_POINTERS"},
      {(args.flags & DUALGEMM_FLAG_EXACT_ACT) != 0, "flags: DUALGEMM_FLAG_EXACT_ACT"},
      {args.batch > 1, "batch: more than one problem"},
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

dualgemm_status_t check_config(const dualgemm_args_t& args, CType c_type) {
  const int32_t id = args.config_id;
  if (id < 0 || id > kInstanceCount)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "config_id=%" PRId32 ": must be in [0, %d]", id,
                kInstanceCount);
  if (id > 0 && kInstances[id - 1].c_type != c_type)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                "config_id=%" PRId32 ": %s does not write the requested c_dtype", id,
                kInstances[id - 1].name);
  for (int32_t i = 0; i < kInstanceCount; ++i) {
    const bool candidate = id > 0 ? i == id - 1 : kInstances[i].c_type == c_type;
    const int64_t tiles = tile_count(kInstances[i], {args.m, args.n, args.k});
    if (candidate && tiles > std::numeric_limits<int32_t>::max())
      return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                  "M=%" PRId32 ", N=%" PRId32 ": %" PRId64 " tiles, at most 2^31-1", args.m, args.n, tiles);
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

  problem->empty = args.m == 0 || args.n == 0;
  if (problem->empty) return kOk;

  if (auto status = check_shape(args)) return status;
  if (auto status = check_pointers_present(args)) return status;
  if (auto status = check_pitches(&args)) return status;
  if (auto status = check_alignment(args)) return status;
  if (auto status = check_aliasing(args)) return status;
  if (auto status = check_supported(args)) return status;

  problem->c_type = args.c_dtype == DUALGEMM_DTYPE_FP16 ? CType::kFp16 : CType::kBf16;
  return check_config(args, problem->c_type);
}

dualgemm_status_t validate_device(const dualgemm_device_t& device) {
  if (device.sm_count <= 0)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "sm_count=%" PRId32 ": must be above 0", device.sm_count);
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
