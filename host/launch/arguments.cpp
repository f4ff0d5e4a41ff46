// arguments.cpp -- the binary interface of dualgemm_args_t, and the one place that describes the tensors of a
// launch: how many problems, rows and elements each tensor has, and how far apart these lie.

#include "host/launch/arguments.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "host/common/sf_layout.h"
#include "host/common/structure.h"
#include "host/common/tensor_rules.h"

namespace dualgemm {
namespace {

// The first release that is supported, 0.2.0, knew the structure up to this field. It only ever grows from
// there; a program that was compiled with an older header, whose fields stand elsewhere, is refused.
constexpr uint32_t kFirstReleaseSize =
    offsetof(dualgemm_args_t, reserved3) + sizeof(dualgemm_args_t::reserved3);
static_assert(kFirstReleaseSize == 440 && sizeof(dualgemm_args_t) >= kFirstReleaseSize);

static_assert(DUALGEMM_DTYPE_BF16 == static_cast<int>(CType::kBf16) &&
              DUALGEMM_DTYPE_FP16 == static_cast<int>(CType::kFp16) &&
              DUALGEMM_DTYPE_FP32 == static_cast<int>(CType::kFp32) &&
              DUALGEMM_DTYPE_NVFP4 == static_cast<int>(CType::kNvfp4) &&
              DUALGEMM_DTYPE_FP8_E4M3 == static_cast<int>(CType::kFp8) &&
              DUALGEMM_DTYPE_FP8_E4M3 + 1 == kCTypes &&
              DUALGEMM_DTYPE_MXFP4 == static_cast<int>(CType::kMxfp4));
static_assert(DUALGEMM_ACTIVATION_SWIGLU == static_cast<int>(ActivationKind::kSwiglu) &&
              DUALGEMM_ACTIVATION_GEGLU_TANH == static_cast<int>(ActivationKind::kGegluTanh) &&
              DUALGEMM_ACTIVATION_GEGLU_ERF == static_cast<int>(ActivationKind::kGegluErf) &&
              DUALGEMM_ACTIVATION_REGLU == static_cast<int>(ActivationKind::kReglu) &&
              DUALGEMM_ACTIVATION_GLU == static_cast<int>(ActivationKind::kGlu) &&
              DUALGEMM_ACTIVATION_SWIGLU_STEP == static_cast<int>(ActivationKind::kSwigluStep) &&
              DUALGEMM_ACTIVATION_SITU == static_cast<int>(ActivationKind::kSitu) &&
              DUALGEMM_ACTIVATION_SITU + 1 == kActivations);
static_assert(DUALGEMM_LINEAR_ACTIVATION_NONE == static_cast<int>(LinearActivation::kNone) &&
              DUALGEMM_LINEAR_ACTIVATION_SILU == static_cast<int>(LinearActivation::kSilu) &&
              DUALGEMM_LINEAR_ACTIVATION_GELU_TANH == static_cast<int>(LinearActivation::kGeluTanh) &&
              DUALGEMM_LINEAR_ACTIVATION_GELU_ERF == static_cast<int>(LinearActivation::kGeluErf) &&
              DUALGEMM_LINEAR_ACTIVATION_RELU == static_cast<int>(LinearActivation::kRelu) &&
              DUALGEMM_LINEAR_ACTIVATION_RELU2 == static_cast<int>(LinearActivation::kRelu2) &&
              DUALGEMM_LINEAR_ACTIVATION_RELU2 + 1 == kLinearActivations);

int32_t bits_of(int32_t dtype) {
  switch (dtype) {
    case DUALGEMM_DTYPE_FP32: return 32;
    case DUALGEMM_DTYPE_FP8_E4M3: return 8;
    case DUALGEMM_DTYPE_NVFP4:
    case DUALGEMM_DTYPE_MXFP4: return 4;
    default: return 16;
  }
}
constexpr int32_t kNumberBits = 32;  // of a float, or of a number of rows
constexpr int32_t kExponentBits = 16;

// An operand or an output, whose rows have `row_elements` elements.
Tensor matrix(int32_t row_elements, int32_t bits, Tensor t) {
  t.row_elements = row_elements;
  t.bits = bits;
  return resolved(t);
}

// Scale factors are bytes in blocks of 128 rows. A block has the atoms that a row of `row_elements` elements
// needs, of which `shared` share a factor.
Tensor scale_factors(int32_t row_elements, int32_t shared, Tensor t) {
  t.row_elements = sf_atoms(row_elements, shared) * kSfAtomBytes;
  t.bits = 8;
  return resolved(t);
}

// A vector is aligned to an element, and so is the vector of each problem.
Tensor vector(int32_t elements, int32_t bits, Tensor t) {
  t.rows = 1;
  t.row_elements = elements;
  t.bits = bits;
  t.alignment = bits / 8;
  return resolved(t);
}

// Groups with offsets share one A and one C, and all other tensors that have a row for each row of these.
// Each group begins at a new block of scale factors, and only the device knows the rows of groups, so the
// host is certain only of the first block.
int32_t row_problems(const Problem& p) { return p.group_offsets() ? 1 : p.problems; }
int64_t row_blocks(const Problem& p) { return p.group_offsets() ? 1 : sf_row_blocks(p.args.m); }

// Sets one tensor of a list, and its bit.
void put(Tensor* list, uint32_t* given, int index, const Tensor& t) {
  list[index] = t;
  *given |= uint32_t{t.given()} << index;
}

// Each entry has the names of the tensor, its pitch and its stride; then base, problems, stride, rows, pitch.
// Vectors have neither rows nor a pitch.
void describe_inputs(Problem& p) {
  const dualgemm_args_t& x = p.args;
  const int32_t own = row_problems(p), all = p.problems;
  const int64_t sfb_blocks = sf_row_blocks(x.n);
  const auto in = [&p](Input i, const Tensor& t) { put(p.inputs, &p.inputs_given, i, t); };
  in(kA,
     matrix(x.k, bits_of(x.a_dtype), {"a", "lda", "batch_stride_a", x.a, own, x.batch_stride_a, x.m, x.lda}));
  const auto operand = [&x](const Tensor& t) { return matrix(x.k, bits_of(x.b_dtype), t); };
  in(kB1, operand({"b1", "ldb1", "batch_stride_b1", x.b1, all, x.batch_stride_b1, x.n, x.ldb1}));
  if (p.products == 2)
    in(kB2, operand({"b2", "ldb2", "batch_stride_b2", x.b2, all, x.batch_stride_b2, x.n, x.ldb2}));

  if (p.packed_a()) {
    in(kSfa,
       scale_factors(x.k, kSfBlock,
                     {"sfa", nullptr, "batch_stride_sfa", x.sfa, own, x.batch_stride_sfa, row_blocks(p)}));
    if (p.group_offsets())
      p.inputs[kSfa].most_rows = (x.m + int64_t{kSfAtomRows - 1} * p.groups_with_rows()) / kSfAtomRows;
  }
  const auto factors = [&x, &p](const Tensor& t) { return scale_factors(x.k, p.b_block(), t); };
  in(kSfb1, factors({"sfb1", nullptr, "batch_stride_sfb1", x.sfb1, all, x.batch_stride_sfb1, sfb_blocks}));
  if (p.products == 2)
    in(kSfb2, factors({"sfb2", nullptr, "batch_stride_sfb2", x.sfb2, all, x.batch_stride_sfb2, sfb_blocks}));

  // With a stride of 0 all problems share one number or bias.
  const auto alike = [all](int64_t stride) { return stride == 0 ? 1 : all; };
  const auto number = [&alike](const char* name, const char* stride_name, const float* base, int32_t stride) {
    return vector(1, kNumberBits, {name, nullptr, stride_name, base, alike(stride), stride});
  };
  // A tensor that the launch does not have keeps its default, which has no address. The two alphas share a
  // stride, and so do the two biases: if a launch has either, both are described.
  if (x.alpha1_dev || x.alpha2_dev) {
    in(kAlpha1, number("alpha1_dev", "alpha_stride", x.alpha1_dev, x.alpha_stride));
    in(kAlpha2, number("alpha2_dev", "alpha_stride", x.alpha2_dev, x.alpha_stride));
  }
  if (x.c_global_scale_dev)
    in(kCGlobalScale,
       number("c_global_scale_dev", "c_global_scale_stride", x.c_global_scale_dev, x.c_global_scale_stride));

  const auto bias = [&x, &alike](const char* name, const void* base) {
    return vector(x.n, bits_of(x.bias_dtype),
                  {name, nullptr, "bias_stride", base, alike(x.bias_stride), x.bias_stride});
  };
  if (x.bias1 || x.bias2) {
    in(kBias1, bias("bias1", x.bias1));
    in(kBias2, bias("bias2", x.bias2));
  }

  const auto row_scale = [&x](const Tensor& t) { return vector(x.m, kNumberBits, t); };
  if (x.a_row_scale)
    in(kARowScale, row_scale({"a_row_scale", nullptr, "batch_stride_a_row_scale", x.a_row_scale, own,
                              x.batch_stride_a_row_scale}));
  const auto exponents = [&x, all](const char* name, const int16_t* base) {
    return vector(x.n, kExponentBits,
                  {name, nullptr, "batch_stride_b_row_exponent", base, all, x.batch_stride_b_row_exponent});
  };
  if (x.b1_row_exponent) in(kB1RowExponent, exponents("b1_row_exponent", x.b1_row_exponent));
  if (x.b2_row_exponent) in(kB2RowExponent, exponents("b2_row_exponent", x.b2_row_exponent));
  if (x.c_row_scale)
    in(kCRowScale, row_scale({"c_row_scale", nullptr, "batch_stride_c_row_scale", x.c_row_scale, own,
                              x.batch_stride_c_row_scale}));
  if (x.c_add)
    in(kCAdd, matrix(x.n, bits_of(x.c_dtype),
                     {"c_add", "ld_c_add", "batch_stride_c_add", x.c_add, own, x.batch_stride_c_add, x.m,
                      x.ld_c_add}));
  if (x.group_rows)
    in(kRowsOfGroups, vector(x.groups + (p.group_offsets() ? 1 : 0), kNumberBits,
                             {"group_rows", nullptr, nullptr, x.group_rows, 1}));
}

void describe_outputs(Problem& p) {
  const dualgemm_args_t& x = p.args;
  const int32_t own = row_problems(p);
  const auto out = [&p](Output i, const Tensor& t) { put(p.outputs, &p.outputs_given, i, t); };
  out(kC, matrix(x.n, bits_of(x.c_dtype),
                 {"c", "ldc", "batch_stride_c", x.c, own, x.batch_stride_c, x.m, x.ldc}));
  if (x.sfc)
    out(kSfc,
        scale_factors(x.n, kSfBlock,
                      {"sfc", nullptr, "batch_stride_sfc", x.sfc, own, x.batch_stride_sfc, row_blocks(p)}));
  const int32_t d_bits = bits_of(x.d_dtype);
  if (x.d1)
    out(kD1,
        matrix(x.n, d_bits, {"d1", "ldd1", "batch_stride_d1", x.d1, own, x.batch_stride_d1, x.m, x.ldd1}));
  if (x.d2)
    out(kD2,
        matrix(x.n, d_bits, {"d2", "ldd2", "batch_stride_d2", x.d2, own, x.batch_stride_d2, x.m, x.ldd2}));
  if (x.amax_out) out(kAmax, vector(1, kNumberBits, {"amax_out", nullptr, nullptr, x.amax_out, 1}));
  p.workspace = {"workspace", nullptr, nullptr, x.workspace, 1};
  p.workspace.rows = 1;
  p.workspace.row_elements = static_cast<int64_t>(x.workspace_size);
  p.workspace.bits = 8;
  p.workspace.alignment = 256;
  p.workspace = resolved(p.workspace);
}

GeneralRequest general_request(const dualgemm_args_t& x) {
  const dualgemm_args_t& plain = default_args();
  if (x.c_dtype != DUALGEMM_DTYPE_FP16 && x.c_dtype != DUALGEMM_DTYPE_BF16)
    return {"c_dtype", static_cast<double>(x.c_dtype)};
  if (x.activation != plain.activation) return {"activation", static_cast<double>(x.activation)};
  if (x.swiglu_alpha != plain.swiglu_alpha) return {"swiglu_alpha", x.swiglu_alpha};
  if (x.swiglu_beta != plain.swiglu_beta) return {"swiglu_beta", x.swiglu_beta};
  if (x.swiglu_limit != plain.swiglu_limit) return {"swiglu_limit", x.swiglu_limit};
  // An A in FP8 mostly has factors of its rows, so plain instances for it have them, too.
  if (x.a_row_scale && x.a_dtype != DUALGEMM_DTYPE_FP8_E4M3) return {"a_row_scale", 0, x.a_row_scale};
  if (x.bias1) return {"bias1", 0, x.bias1};
  if (x.bias2) return {"bias2", 0, x.bias2};
  if (x.c_row_scale) return {"c_row_scale", 0, x.c_row_scale};
  if (x.amax_out) return {"amax_out", 0, x.amax_out};
  if (x.d1) return {"d1", 0, x.d1};
  if (x.linear_activation != plain.linear_activation)
    return {"linear_activation", static_cast<double>(x.linear_activation)};
  if (x.c_add) return {"c_add", 0, x.c_add};
  if (x.flags & DUALGEMM_FLAG_EXACT_ACT) return {"flags", static_cast<double>(x.flags)};
  return {};
}

}  // namespace

namespace {
constexpr dualgemm_args_t make_default_args() {
  dualgemm_args_t args{};
  args.struct_size = sizeof args;
  args.alpha1 = args.alpha2 = 1;
  args.c_global_scale = 1;
  args.swiglu_alpha = 1;
  args.swiglu_limit = std::numeric_limits<float>::infinity();
  args.situ_gate = 4;
  args.situ_up = 25;
  args.activation = DUALGEMM_ACTIVATION_SWIGLU;
  args.c_dtype = args.bias_dtype = args.d_dtype = DUALGEMM_DTYPE_BF16;
  args.a_dtype = args.b_dtype = DUALGEMM_DTYPE_NVFP4;
  return args;
}
}  // namespace

const dualgemm_args_t& default_args() {
  static constexpr dualgemm_args_t kArgs = make_default_args();
  return kArgs;
}

dualgemm_status_t copy_args(const dualgemm_args_t* args, dualgemm_args_t* out) {
  constexpr Structure kStructure = {"args", "dualgemm_args_t", "dualgemm_args_init", kFirstReleaseSize,
                                    sizeof(dualgemm_args_t)};
  // A structure of this release, or of a newer one, sets every field.
  if (!args || args->struct_size < sizeof *args) *out = default_args();
  return read_structure(kStructure, args, out);
}

void describe(Problem& p) {
  const dualgemm_args_t& args = p.args;
  p.a_type = static_cast<CType>(args.a_dtype);
  p.b_type = static_cast<CType>(args.b_dtype);
  p.c_type = static_cast<CType>(args.c_dtype);
  p.products = args.products == 1 ? 1 : 2;
  p.activation = static_cast<ActivationKind>(args.activation);
  p.linear_activation = static_cast<LinearActivation>(args.linear_activation);
  p.general_request = general_request(args);
  p.problems = p.grouped() ? args.groups : std::max(args.batch, 1);
  p.empty = args.m == 0 || args.n == 0;
  describe_inputs(p);
  describe_outputs(p);
}

}  // namespace dualgemm
