// validate.cpp -- the rules, one function per group, called in the order in which they are documented: the
// first rule that is violated decides the status. Texts start with the argument and its value.

#include "host/launch/validate.h"

#include <cinttypes>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "host/common/names.h"
#include "host/common/sf_layout.h"
#include "host/common/status.h"
#include "host/common/tensor_rules.h"
#include "host/common/text.h"
#include "host/launch/arguments.h"
#include "host/launch/supported.h"
#include "kernel/plan.h"

namespace dualgemm {
namespace {

static_assert(DUALGEMM_MAX_GROUPS == kMaxGroups);

constexpr uint32_t kKnownFlags = DUALGEMM_FLAG_PDL | DUALGEMM_FLAG_STATIC_WEIGHTS |
                                 DUALGEMM_FLAG_BATCH_INVARIANT | DUALGEMM_FLAG_CHECK_POINTERS |
                                 DUALGEMM_FLAG_EXACT_ACT | DUALGEMM_FLAG_NO_FALLBACK;

// TMA strides, in bytes, have to be below this power of two. The limit also holds for a whole operand.
constexpr int kInputBytes = 40;

dualgemm_status_t check_enums(const dualgemm_args_t& args) {
  if (args.flags & ~kKnownFlags)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "flags=0x%" PRIx32 ": unknown bits 0x%" PRIx32, args.flags,
                args.flags & ~kKnownFlags);
  static constexpr struct {
    const char* name;
    int32_t dualgemm_args_t::*value;
    int32_t last;
  } kEnums[] = {
      {"activation", &dualgemm_args_t::activation, DUALGEMM_ACTIVATION_SITU},
      {"c_dtype", &dualgemm_args_t::c_dtype, DUALGEMM_DTYPE_FP8_E4M3},
      {"d_dtype", &dualgemm_args_t::d_dtype, DUALGEMM_DTYPE_FP32},
      {"group_mode", &dualgemm_args_t::group_mode, DUALGEMM_GROUP_MASKED},
      {"products", &dualgemm_args_t::products, 2},
      {"linear_activation", &dualgemm_args_t::linear_activation, DUALGEMM_LINEAR_ACTIVATION_RELU2},
  };
  for (const auto& e : kEnums)
    if (const int32_t value = args.*e.value; value < 0 || value > e.last)
      return fail(DUALGEMM_STATUS_INVALID_VALUE, "%s=%" PRId32 ": must be in [0, %" PRId32 "]", e.name, value,
                  e.last);
  if (args.a_dtype != DUALGEMM_DTYPE_NVFP4 && args.a_dtype != DUALGEMM_DTYPE_BF16 &&
      args.a_dtype != DUALGEMM_DTYPE_FP16 && args.a_dtype != DUALGEMM_DTYPE_FP8_E4M3)
    return fail(DUALGEMM_STATUS_INVALID_VALUE,
                "a_dtype=%" PRId32 " (%s): must be %d (%s), %d (%s), %d (%s) or %d (%s)", args.a_dtype,
                dtype_name(args.a_dtype), DUALGEMM_DTYPE_BF16, dtype_name(DUALGEMM_DTYPE_BF16),
                DUALGEMM_DTYPE_FP16, dtype_name(DUALGEMM_DTYPE_FP16), DUALGEMM_DTYPE_NVFP4,
                dtype_name(DUALGEMM_DTYPE_NVFP4), DUALGEMM_DTYPE_FP8_E4M3,
                dtype_name(DUALGEMM_DTYPE_FP8_E4M3));
  if (args.b_dtype != DUALGEMM_DTYPE_NVFP4 && args.b_dtype != DUALGEMM_DTYPE_MXFP4)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "b_dtype=%" PRId32 " (%s): must be %d (%s) or %d (%s)",
                args.b_dtype, dtype_name(args.b_dtype), DUALGEMM_DTYPE_NVFP4,
                dtype_name(DUALGEMM_DTYPE_NVFP4), DUALGEMM_DTYPE_MXFP4, dtype_name(DUALGEMM_DTYPE_MXFP4));
  if (args.bias_dtype != DUALGEMM_DTYPE_BF16 && args.bias_dtype != DUALGEMM_DTYPE_FP32)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "bias_dtype=%" PRId32 " (%s): must be %d (%s) or %d (%s)",
                args.bias_dtype, dtype_name(args.bias_dtype), DUALGEMM_DTYPE_BF16,
                dtype_name(DUALGEMM_DTYPE_BF16), DUALGEMM_DTYPE_FP32, dtype_name(DUALGEMM_DTYPE_FP32));
  const struct {
    const char* name;
    int32_t value;
  } reserved[] = {{"reserved0", args.reserved0},
                  {"reserved1", args.reserved1},
                  {"reserved2", args.reserved2},
                  {"reserved3", args.reserved3},
                  {"reserved4", args.reserved4}};
  for (const auto& r : reserved)
    if (r.value != 0)
      return fail(DUALGEMM_STATUS_INVALID_VALUE, "%s=%" PRId32 ": must be 0", r.name, r.value);
  return kOk;
}

// With one product `activation` has to keep its default, with two products `linear_activation`.
dualgemm_status_t check_products(const dualgemm_args_t& args) {
  if (args.products != 1 && args.linear_activation != 0)
    return fail(DUALGEMM_STATUS_INVALID_VALUE,
                "linear_activation=%" PRId32 " (%s): must be 0 (%s) unless products is 1",
                args.linear_activation, linear_activation_name(args.linear_activation),
                linear_activation_name(0));
  if (args.products == 1 && args.activation != 0)
    return fail(DUALGEMM_STATUS_INVALID_VALUE,
                "activation=%" PRId32 " (%s): must be 0 with products=1, which takes linear_activation",
                args.activation, activation_name(args.activation));
  return kOk;
}

dualgemm_status_t check_groups(const dualgemm_args_t& args) {
  if (args.group_mode != DUALGEMM_GROUP_NONE) {
    if (args.groups < 1 || args.groups > kMaxGroups)
      return fail(DUALGEMM_STATUS_INVALID_VALUE,
                  "groups=%" PRId32 ": must be in [1, %d] with group_mode=%" PRId32 " (%s)", args.groups,
                  kMaxGroups, args.group_mode, group_mode_name(args.group_mode));
    if (args.batch > 1)
      return fail(DUALGEMM_STATUS_INVALID_VALUE,
                  "batch=%" PRId32 ": must be 0 or 1 with group_mode=%" PRId32 " (%s)", args.batch,
                  args.group_mode, group_mode_name(args.group_mode));
    return kOk;
  }
  if (args.groups != 0)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "groups=%" PRId32 ": must be 0 without a group_mode",
                args.groups);
  if (args.expected_rows != 0)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "expected_rows=%" PRId32 ": must be 0 without a group_mode",
                args.expected_rows);
  return kOk;
}

// The values that a number may have.
struct Range {
  bool (*holds)(float);
  const char* text;
};
constexpr Range kFinite{[](float x) { return std::isfinite(x); }, "finite"};
constexpr Range kAboveZero{[](float x) { return x > 0; }, "above 0"};
// The kernel multiplies swiglu_alpha by log2 e.
constexpr Range kExponent{[](float x) { return std::fabs(x) <= 0x1p127f; },
                          "finite, and at most 2^127 in magnitude"};
// For an NVFP4 C the kernel divides by a factor of at least 2^-9; FP8 has the same limit.
constexpr Range kEncode{[](float x) { return x > 0 && x <= std::numeric_limits<float>::max() / 512; },
                        "above 0, and at most the largest float over 512"};
// The kernel multiplies by the reciprocal of a bound, which has to be finite.
constexpr Range kBound{[](float x) { return x > 0 && std::isnormal(x); }, "finite, normal and above 0"};

bool always(const dualgemm_args_t&) { return true; }
bool of_two_products(const dualgemm_args_t& args) { return args.products != 1; }
bool is_swiglu(const dualgemm_args_t& args) {
  return of_two_products(args) && (args.activation == DUALGEMM_ACTIVATION_SWIGLU ||
                                   args.activation == DUALGEMM_ACTIVATION_SWIGLU_STEP);
}
bool is_situ(const dualgemm_args_t& args) { return args.activation == DUALGEMM_ACTIVATION_SITU; }
bool encodes(const dualgemm_args_t& args) {
  return args.c_dtype == DUALGEMM_DTYPE_NVFP4 || args.c_dtype == DUALGEMM_DTYPE_FP8_E4M3;
}

// A parameter that the activation or the output does not take has to keep its default: nothing that a caller
// asks for is ignored.
dualgemm_status_t check_parameters(const dualgemm_args_t& args) {
  static constexpr struct {
    const char* name;
    float dualgemm_args_t::*value;
    Range range;
    bool (*taken)(const dualgemm_args_t&);
    const char* rule;
  } kParameters[] = {
      {"alpha1", &dualgemm_args_t::alpha1, kFinite, always, nullptr},
      {"alpha2", &dualgemm_args_t::alpha2, kFinite, of_two_products, "1 with products=1"},
      {"swiglu_alpha", &dualgemm_args_t::swiglu_alpha, kExponent, is_swiglu,
       "1 unless activation is SWIGLU or SWIGLU_STEP"},
      {"swiglu_beta", &dualgemm_args_t::swiglu_beta, kFinite, is_swiglu,
       "0 unless activation is SWIGLU or SWIGLU_STEP"},
      {"swiglu_limit", &dualgemm_args_t::swiglu_limit, kAboveZero, is_swiglu,
       "infinity unless activation is SWIGLU or SWIGLU_STEP"},
      {"situ_gate", &dualgemm_args_t::situ_gate, kBound, is_situ, "4 unless activation is SITU"},
      {"situ_up", &dualgemm_args_t::situ_up, kBound, is_situ, "25 unless activation is SITU"},
      {"c_global_scale", &dualgemm_args_t::c_global_scale, kEncode, encodes,
       "1 unless c_dtype is NVFP4 or FP8_E4M3"},
  };
  const dualgemm_args_t& initial = default_args();
  for (const auto& p : kParameters) {
    const float value = args.*p.value;
    if (value == initial.*p.value) continue;
    const bool in_range = p.range.holds(value);
    if (!in_range || !p.taken(args))
      return fail(DUALGEMM_STATUS_INVALID_VALUE, "%s=%g: must be %s", p.name, static_cast<double>(value),
                  in_range ? p.rule : p.range.text);
  }
  return kOk;
}

dualgemm_status_t check_numbers(const dualgemm_args_t& args) {
  static constexpr struct {
    const char* name;
    int32_t dualgemm_args_t::*value;
  } kCounts[] = {{"m", &dualgemm_args_t::m},
                 {"n", &dualgemm_args_t::n},
                 {"k", &dualgemm_args_t::k},
                 {"batch", &dualgemm_args_t::batch},
                 {"max_sms", &dualgemm_args_t::max_sms},
                 {"expected_rows", &dualgemm_args_t::expected_rows},
                 {"alpha_stride", &dualgemm_args_t::alpha_stride},
                 {"c_global_scale_stride", &dualgemm_args_t::c_global_scale_stride}};
  for (const auto& c : kCounts)
    if (args.*c.value < 0)
      return fail(DUALGEMM_STATUS_INVALID_VALUE, "%s=%" PRId32 ": must not be negative", c.name,
                  args.*c.value);
  if (auto status = check_groups(args)) return status;
  if (auto status = check_products(args)) return status;
  return check_parameters(args);
}

// Rows are written in pieces of 16 bytes, FP8 of 8, and NVFP4 in whole blocks that share a scale factor.
int column_multiple(int32_t dtype) {
  switch (dtype) {
    case DUALGEMM_DTYPE_NVFP4: return kSfBlock;
    case DUALGEMM_DTYPE_FP32: return 4;
    default: return 8;
  }
}

dualgemm_status_t check_shape(const dualgemm_args_t& args) {
  if (args.k % kSfBlock != 0)
    return fail(DUALGEMM_STATUS_INVALID_SHAPE, "k=%" PRId32 ": must be a multiple of %d", args.k, kSfBlock);
  if (args.b_dtype == DUALGEMM_DTYPE_MXFP4 && args.k % kMxBlock != 0)
    return fail(DUALGEMM_STATUS_INVALID_SHAPE,
                "k=%" PRId32 ": must be a multiple of %d with b_dtype=%" PRId32 " (%s)", args.k, kMxBlock,
                args.b_dtype, dtype_name(args.b_dtype));
  const struct {
    const char* name;
    int32_t dtype;
    bool written;
  } outputs[] = {{"c_dtype", args.c_dtype, true}, {"d_dtype", args.d_dtype, args.d1 || args.d2}};
  for (const auto& output : outputs)
    if (const int multiple = column_multiple(output.dtype); output.written && args.n % multiple != 0)
      return fail(DUALGEMM_STATUS_INVALID_SHAPE,
                  "n=%" PRId32 ": must be a multiple of %d with %s=%" PRId32 " (%s)", args.n, multiple,
                  output.name, output.dtype, dtype_name(output.dtype));
  return kOk;
}

// With one product there is no second B, and no argument that belongs to it.
dualgemm_status_t check_second_absent(const dualgemm_args_t& args) {
  const struct {
    const char* name;
    const void* pointer;
  } second[] = {{"b2", args.b2},
                {"sfb2", args.sfb2},
                {"alpha2_dev", args.alpha2_dev},
                {"b2_row_exponent", args.b2_row_exponent},
                {"bias2", args.bias2},
                {"d2", args.d2}};
  for (const auto& s : second)
    if (s.pointer)
      return fail(DUALGEMM_STATUS_INVALID_VALUE, "%s=%p: must be NULL with products=1", s.name, s.pointer);
  return kOk;
}

dualgemm_status_t check_pointers_present(const Problem& problem) {
  const dualgemm_args_t& args = problem.args;
  for (const Tensor& input : std::span(problem.inputs, args.k > 0 ? size_t{kMaps} : 0)) {
    if (&input == &problem.inputs[kSfa] && !problem.packed_a()) continue;
    if (problem.products == 1 && (&input == &problem.inputs[kB2] || &input == &problem.inputs[kSfb2]))
      continue;
    if (!input.given())
      return fail(DUALGEMM_STATUS_NULL_POINTER, "%s=NULL: must be a device pointer", input.name);
  }
  if (!args.c) return fail(DUALGEMM_STATUS_NULL_POINTER, "c=NULL: must be a device pointer");
  if (args.c_dtype == DUALGEMM_DTYPE_NVFP4 && !args.sfc)
    return fail(DUALGEMM_STATUS_NULL_POINTER,
                "sfc=NULL: must be a device pointer with c_dtype=%" PRId32 " (%s)", args.c_dtype,
                dtype_name(args.c_dtype));
  if (problem.grouped() && !args.group_rows)
    return fail(DUALGEMM_STATUS_NULL_POINTER,
                "group_rows=NULL: must be a device pointer with group_mode=%" PRId32 " (%s)", args.group_mode,
                group_mode_name(args.group_mode));

  if (!problem.packed_a() && args.sfa)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "sfa=%p: must be NULL unless a_dtype is NVFP4", args.sfa);
  for (const auto& [name, exponents] :
       {std::pair{"b1_row_exponent", args.b1_row_exponent}, {"b2_row_exponent", args.b2_row_exponent}})
    if (exponents && args.b_dtype != DUALGEMM_DTYPE_MXFP4)
      return fail(DUALGEMM_STATUS_INVALID_VALUE, "%s=%p: must be NULL unless b_dtype is MXFP4", name,
                  static_cast<const void*>(exponents));
  if (args.c_dtype != DUALGEMM_DTYPE_NVFP4 && args.sfc)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "sfc=%p: must be NULL unless c_dtype is NVFP4", args.sfc);
  if (!encodes(args) && args.c_global_scale_dev)
    return fail(DUALGEMM_STATUS_INVALID_VALUE,
                "c_global_scale_dev=%p: must be NULL unless c_dtype is NVFP4 or FP8_E4M3",
                static_cast<const void*>(args.c_global_scale_dev));
  if (!problem.grouped() && args.group_rows)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "group_rows=%p: must be NULL without a group_mode",
                static_cast<const void*>(args.group_rows));
  if (args.c_add && of_two_products(args))
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "c_add=%p: must be NULL unless products is 1", args.c_add);
  if (args.c_add && encodes(args))
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "c_add=%p: must be NULL with c_dtype=%" PRId32 " (%s)",
                args.c_add, args.c_dtype, dtype_name(args.c_dtype));
  if (!of_two_products(args)) return check_second_absent(args);
  if (!args.d1 != !args.d2)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "d1=%s, d2=%s: set both or none", pointer_text(args.d1).get(),
                pointer_text(args.d2).get());
  return kOk;
}

// Pitches, strides and sizes of a tensor are 0 where the launch does not have the tensor.
dualgemm_status_t check_absent(const dualgemm_args_t& args) {
  using Args = dualgemm_args_t;
  static constexpr struct {
    const char* name;
    int64_t Args::*value;
    bool (*there)(const Args&);
    const char* missing;
  } kParts[] = {
      {"batch_stride_sfa", &Args::batch_stride_sfa,
       [](const Args& x) { return x.a_dtype == DUALGEMM_DTYPE_NVFP4; }, "a_dtype is not NVFP4"},
      {"ldb2", &Args::ldb2, of_two_products, "products is 1"},
      {"batch_stride_b2", &Args::batch_stride_b2, of_two_products, "products is 1"},
      {"batch_stride_sfb2", &Args::batch_stride_sfb2, of_two_products, "products is 1"},
      {"ld_c_add", &Args::ld_c_add, [](const Args& x) { return x.c_add != nullptr; }, "c_add is NULL"},
      {"batch_stride_c_add", &Args::batch_stride_c_add, [](const Args& x) { return x.c_add != nullptr; },
       "c_add is NULL"},
      {"ldd1", &Args::ldd1, [](const Args& x) { return x.d1 != nullptr; }, "d1 is NULL"},
      {"ldd2", &Args::ldd2, [](const Args& x) { return x.d2 != nullptr; }, "d2 is NULL"},
      {"batch_stride_d1", &Args::batch_stride_d1, [](const Args& x) { return x.d1 != nullptr; },
       "d1 is NULL"},
      {"batch_stride_d2", &Args::batch_stride_d2, [](const Args& x) { return x.d2 != nullptr; },
       "d2 is NULL"},
      {"batch_stride_sfc", &Args::batch_stride_sfc, [](const Args& x) { return x.sfc != nullptr; },
       "sfc is NULL"},
      {"bias_stride", &Args::bias_stride, [](const Args& x) { return x.bias1 || x.bias2; },
       "bias1 and bias2 are NULL"},
      {"batch_stride_a_row_scale", &Args::batch_stride_a_row_scale,
       [](const Args& x) { return x.a_row_scale != nullptr; }, "a_row_scale is NULL"},
      {"batch_stride_c_row_scale", &Args::batch_stride_c_row_scale,
       [](const Args& x) { return x.c_row_scale != nullptr; }, "c_row_scale is NULL"},
      {"batch_stride_b_row_exponent", &Args::batch_stride_b_row_exponent,
       [](const Args& x) { return x.b1_row_exponent || x.b2_row_exponent; },
       "b1_row_exponent and b2_row_exponent are NULL"},
  };
  for (const auto& part : kParts)
    if (args.*part.value != 0 && !part.there(args))
      return fail(DUALGEMM_STATUS_INVALID_VALUE, "%s=%" PRId64 ": must be 0 where %s", part.name,
                  args.*part.value, part.missing);
  if (args.alpha_stride != 0 && !args.alpha1_dev && !args.alpha2_dev)
    return fail(DUALGEMM_STATUS_INVALID_VALUE,
                "alpha_stride=%" PRId32 ": must be 0 where alpha1_dev and alpha2_dev are NULL",
                args.alpha_stride);
  if (args.c_global_scale_stride != 0 && !args.c_global_scale_dev)
    return fail(DUALGEMM_STATUS_INVALID_VALUE,
                "c_global_scale_stride=%" PRId32 ": must be 0 where c_global_scale_dev is NULL",
                args.c_global_scale_stride);
  if (!args.workspace && args.workspace_size != 0)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "workspace_size=%zu: must be 0 where workspace is NULL",
                args.workspace_size);
  if (args.workspace_size >> kProblemsBytes)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "workspace_size=%zu: must be less than 2^%d",
                args.workspace_size, kProblemsBytes);
  return kOk;
}

// With OFFSETS all groups share one tensor of each kind that has a row for each row of A or of C.
dualgemm_status_t check_shared_rows(const dualgemm_args_t& args) {
  if (args.group_mode != DUALGEMM_GROUP_OFFSETS) return kOk;
  const struct {
    const char* name;
    int64_t value;
  } strides[] = {
      {"batch_stride_a", args.batch_stride_a},
      {"batch_stride_sfa", args.batch_stride_sfa},
      {"batch_stride_a_row_scale", args.batch_stride_a_row_scale},
      {"batch_stride_c_row_scale", args.batch_stride_c_row_scale},
      {"batch_stride_c", args.batch_stride_c},
      {"batch_stride_c_add", args.batch_stride_c_add},
      {"batch_stride_sfc", args.batch_stride_sfc},
      {"batch_stride_d1", args.batch_stride_d1},
      {"batch_stride_d2", args.batch_stride_d2},
  };
  for (const auto& stride : strides)
    if (stride.value != 0)
      return fail(DUALGEMM_STATUS_INVALID_VALUE,
                  "%s=%" PRId64 ": must be 0 with group_mode=%" PRId32
                  " (%s), where the rows of all groups follow each other",
                  stride.name, stride.value, args.group_mode, group_mode_name(args.group_mode));
  return kOk;
}

dualgemm_status_t check_pitches(const Problem& problem) {
  for (const Tensor& t : problem.read_inputs())
    if (auto status = &t == &problem.inputs[kCAdd] ? check_pitch(t, "n") : check_pitch(t, "k", kInputBytes))
      return status;
  for (const Tensor& t : problem.written_outputs())
    if (auto status = check_pitch(t, "n")) return status;
  return kOk;
}

dualgemm_status_t check_strides(const Problem& problem) {
  for (const Tensor& t : problem.read_inputs()) {
    if (auto status = check_stride(t)) return status;
    if (t.bytes(t.stride) >= int64_t{1} << kInputBytes)
      return fail(DUALGEMM_STATUS_INVALID_STRIDE, "%s=%" PRId64 ": must be less than 2^%d bytes",
                  t.stride_name, t.stride, kInputBytes);
  }
  for (const Tensor& t : problem.written_outputs())
    if (auto status = check_stride(t)) return status;
  return kOk;
}

dualgemm_status_t check_alignments(const Problem& problem) {
  for (const Tensor& t : problem.read_inputs())
    if (auto status = check_alignment(t)) return status;
  for (const Tensor& t : problem.written_outputs())
    if (auto status = check_alignment(t)) return status;
  return check_alignment(problem.workspace);
}

// Holds the first and the last byte of every tensor of a launch; inputs come before outputs.
struct Places {
  struct Place {
    uintptr_t first, last;
    const Tensor* tensor;
  } all[size_t{kInputs} + kOutputs];
  size_t count = 0, inputs = 0;

  dualgemm_status_t add(const Tensor& t) {
    Place& place = all[count++];
    place.first = reinterpret_cast<uintptr_t>(t.base);
    place.tensor = &t;
    return check_end(t, &place.last);
  }
};

dualgemm_status_t check_ends(const Problem& problem, Places* places) {
  for (const Tensor& input : problem.read_inputs())
    if (auto status = places->add(input)) return status;
  places->inputs = places->count;
  for (const Tensor& output : problem.written_outputs())
    if (auto status = places->add(output)) return status;
  uintptr_t last;
  return check_end(problem.workspace, &last);
}

// Returns whether a tensor is C itself: then each of its elements is read by the lane that writes it.
bool is_c(const Problem& problem, const Tensor& t) {
  const Tensor& c = problem.outputs[kC];
  return t.base == c.base && t.pitch == c.pitch && t.shared_stride() == c.shared_stride();
}

// Nothing may overlap an output, or the workspace, except a c_add that is C itself. Most tensors end before
// the other one begins.
dualgemm_status_t check_aliasing(const Problem& problem, const Places& places) {
  const auto check = [&](size_t x, size_t y) {
    const Places::Place &left = places.all[x], &right = places.all[y];
    if (left.last < right.first || right.last < left.first) return kOk;
    if (left.tensor == &problem.outputs[kC] && right.tensor == &problem.inputs[kCAdd] &&
        is_c(problem, *right.tensor))
      return kOk;
    return check_overlap(*left.tensor, *right.tensor);
  };
  for (size_t output = places.inputs; output < places.count; ++output) {
    for (size_t input = 0; input < places.inputs; ++input)
      if (auto status = check(output, input)) return status;
    for (size_t other = output + 1; other < places.count; ++other)
      if (auto status = check(output, other)) return status;
  }
  if (problem.args.workspace_size == 0) return kOk;
  for (size_t i = 0; i < places.count; ++i)
    if (auto status = check_overlap(problem.workspace, *places.all[i].tensor)) return status;
  return kOk;
}

}  // namespace

dualgemm_status_t validate(const dualgemm_args_t* user_args, Problem* problem) {
  const dualgemm_args_t& args = problem->args;
  if (auto status = copy_args(user_args, &problem->args)) return status;
  if (auto status = check_enums(args)) return status;
  if (auto status = check_numbers(args)) return status;

  describe(*problem);
  if (problem->empty) return kOk;

  if (auto status = check_shape(args)) return status;
  if (auto status = check_pointers_present(*problem)) return status;
  if (auto status = check_absent(args)) return status;
  if (auto status = check_shared_rows(args)) return status;
  if (auto status = check_pitches(*problem)) return status;
  if (auto status = check_strides(*problem)) return status;
  if (auto status = check_alignments(*problem)) return status;
  Places places;
  if (auto status = check_ends(*problem, &places)) return status;
  if (auto status = check_aliasing(*problem, places)) return status;
  return check_supported(*problem);
}

}  // namespace dualgemm
