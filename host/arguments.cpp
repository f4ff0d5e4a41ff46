// arguments.cpp -- the binary interface of dualgemm_args_t, and the one place that describes the tensors of a
// launch: how many problems, rows and elements each has, and at which distances they lie.

#include "host/arguments.h"

#include <algorithm>
#include <cinttypes>
#include <cstddef>
#include <cstring>
#include <limits>

#include "host/sf_layout.h"
#include "host/status.h"

namespace dualgemm {
namespace {

// The first release knew the structure in this size. It only ever grows, so a smaller size was never valid.
constexpr uint32_t kFirstReleaseSize = 344;
static_assert(sizeof(dualgemm_args_t) >= kFirstReleaseSize);

static_assert(DUALGEMM_DTYPE_BF16 == static_cast<int>(CType::kBf16) &&
              DUALGEMM_DTYPE_FP16 == static_cast<int>(CType::kFp16));
static_assert(DUALGEMM_ACTIVATION_SWIGLU == static_cast<int>(ActivationKind::kSwiglu) &&
              DUALGEMM_ACTIVATION_GEGLU_TANH == static_cast<int>(ActivationKind::kGegluTanh) &&
              DUALGEMM_ACTIVATION_GEGLU_ERF == static_cast<int>(ActivationKind::kGegluErf) &&
              DUALGEMM_ACTIVATION_REGLU == static_cast<int>(ActivationKind::kReglu) &&
              DUALGEMM_ACTIVATION_GLU == static_cast<int>(ActivationKind::kGlu));

int32_t bits_of(int32_t dtype) {
  switch (dtype) {
    case DUALGEMM_DTYPE_FP32: return 32;
    case DUALGEMM_DTYPE_NVFP4: return 4;
    default: return 16;
  }
}

// Fills in what 0 stands for. The stride of a single problem is not looked at. A pitch that no rule has seen
// yet may be so large that the product wraps; it is refused before anything looks at the stride.
Tensor resolved(Tensor t) {
  t.compact = t.pitch == 0;
  if (t.compact) t.pitch = t.row_elements;
  if (t.problems == 1 || t.stride == 0)
    t.stride = static_cast<int64_t>(static_cast<uint64_t>(t.rows) * static_cast<uint64_t>(t.pitch));
  t.most_rows = t.rows;
  return t;
}

// An operand is packed E2M1 in rows of K elements.
Tensor operand(const dualgemm_args_t& args, Tensor t) {
  t.bits = 4;
  t.row_elements = args.k;
  return resolved(t);
}

// Scale factors are UE4M3 in blocks of 128 rows, each of as many atoms as K needs.
Tensor scale_factors(const dualgemm_args_t& args, Tensor t) {
  t.bits = 8;
  t.row_elements = sf_atoms(args.k) * kSfAtomBytes;
  return resolved(t);
}

Tensor output(const dualgemm_args_t& args, Tensor t) {
  t.bits = bits_of(args.c_dtype);
  t.row_elements = args.n;
  return resolved(t);
}

// Groups with offsets share one A, SFA and C. Each begins a block of SFA there, and only the device knows
// their rows: the host is certain of the first block alone, and knows the most that there can be.
void describe_tensors(Problem& p) {
  const dualgemm_args_t& x = p.args;
  const bool shared = p.group_offsets();
  const int32_t all = p.problems, a_problems = shared ? 1 : all;
  const int64_t sfa_blocks = shared ? 1 : sf_row_blocks(x.m), sfb_blocks = sf_row_blocks(x.n);
  const int64_t most_sfa_blocks =
      shared ? (x.m + int64_t{kSfAtomRows - 1} * p.groups_with_rows()) / kSfAtomRows : sfa_blocks;

  // Each entry has the names of the tensor, its pitch and its stride; then base, problems, stride, rows,
  // pitch.
  p.inputs[kA] = operand(x, {"a", "lda", "batch_stride_a", x.a, a_problems, x.batch_stride_a, x.m, x.lda});
  p.inputs[kB1] = operand(x, {"b1", "ldb1", "batch_stride_b1", x.b1, all, x.batch_stride_b1, x.n, x.ldb1});
  p.inputs[kB2] = operand(x, {"b2", "ldb2", "batch_stride_b2", x.b2, all, x.batch_stride_b2, x.n, x.ldb2});
  p.inputs[kSfa] = scale_factors(
      x, {"sfa", nullptr, "batch_stride_sfa", x.sfa, a_problems, x.batch_stride_sfa, sfa_blocks});
  p.inputs[kSfa].most_rows = most_sfa_blocks;
  p.inputs[kSfb1] =
      scale_factors(x, {"sfb1", nullptr, "batch_stride_sfb1", x.sfb1, all, x.batch_stride_sfb1, sfb_blocks});
  p.inputs[kSfb2] =
      scale_factors(x, {"sfb2", nullptr, "batch_stride_sfb2", x.sfb2, all, x.batch_stride_sfb2, sfb_blocks});
  p.output = output(x, {"c", "ldc", "batch_stride_c", x.c, a_problems, x.batch_stride_c, x.m, x.ldc});
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
  return DUALGEMM_STATUS_SUCCESS;
}

Problem problem_of(const dualgemm_args_t& args) {
  Problem p{};
  p.args = args;
  p.c_type = static_cast<CType>(args.c_dtype);
  p.activation = static_cast<ActivationKind>(args.activation);
  p.problems = p.grouped() ? args.groups : std::max(args.batch, 1);
  p.empty = args.m == 0 || args.n == 0;
  describe_tensors(p);
  return p;
}

}  // namespace dualgemm
