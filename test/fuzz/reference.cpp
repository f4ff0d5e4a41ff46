// reference.cpp -- a launch in host memory. The rules about its arguments are those of
// dualgemm_workspace_size, which follows no address.

#include "fuzz/answer.h"
#include "fuzz/memory.h"
#include "fuzz/problems.h"
#include "fuzz/targets.h"

namespace dualgemm_fuzz {
namespace {

int64_t bits_of(int32_t dtype) {
  switch (dtype) {
    case DUALGEMM_DTYPE_FP32: return 32;
    case DUALGEMM_DTYPE_NVFP4: return 4;
    case DUALGEMM_DTYPE_FP8_E4M3: return 8;
    default: return 16;
  }
}

// Replaces the addresses of the tensors that the launch has by blocks.
class Tensors {
 public:
  Tensors(dualgemm_args_t* args, Memory* memory)
      : args_(*args),
        memory_(*memory),
        offsets_(args->group_mode == DUALGEMM_GROUP_OFFSETS),
        problems_(args->group_mode ? args->groups : std::max(args->batch, 1)),
        own_(offsets_ ? 1 : problems_) {}

  void give() {
    dualgemm_args_t& x = args_;
    const void* const before = x.c;
    matrix(&x.a, {own_, x.m, x.k, x.lda, x.batch_stride_a, bits_of(x.a_dtype)});
    matrix(&x.b1, {problems_, x.n, x.k, x.ldb1, x.batch_stride_b1, 4});
    matrix(&x.b2, {problems_, x.n, x.k, x.ldb2, x.batch_stride_b2, 4});
    factors(&x.sfa, {problems_, x.m, x.k, x.batch_stride_sfa, offsets_});
    // MXFP4 has as many factors as NVFP4 of half the elements.
    const int32_t sfb_k = x.b_dtype == DUALGEMM_DTYPE_MXFP4 ? x.k / 2 : x.k;
    factors(&x.sfb1, {problems_, x.n, sfb_k, x.batch_stride_sfb1, false});
    factors(&x.sfb2, {problems_, x.n, sfb_k, x.batch_stride_sfb2, false});
    for (const int16_t** const exponents : {&x.b1_row_exponent, &x.b2_row_exponent})
      matrix(exponents, {problems_, 1, x.n, 0, x.batch_stride_b_row_exponent, 16});
    matrix(&x.c, {own_, x.m, x.n, x.ldc, x.batch_stride_c, bits_of(x.c_dtype)});
    factors(&x.sfc, {problems_, x.m, x.n, x.batch_stride_sfc, offsets_});
    if (x.c_add != before)
      matrix(&x.c_add, {own_, x.m, x.n, x.ld_c_add, x.batch_stride_c_add, bits_of(x.c_dtype)});
    else x.c_add = x.c;
    matrix(&x.d1, {own_, x.m, x.n, x.ldd1, x.batch_stride_d1, bits_of(x.d_dtype)});
    matrix(&x.d2, {own_, x.m, x.n, x.ldd2, x.batch_stride_d2, bits_of(x.d_dtype)});
    vector(&x.bias1, problems_, x.n, x.bias_stride, bits_of(x.bias_dtype));
    vector(&x.bias2, problems_, x.n, x.bias_stride, bits_of(x.bias_dtype));
    matrix(&x.a_row_scale, {own_, 1, x.m, 0, x.batch_stride_a_row_scale, 32});
    matrix(&x.c_row_scale, {own_, 1, x.m, 0, x.batch_stride_c_row_scale, 32});
    vector(&x.alpha1_dev, problems_, 1, x.alpha_stride, 32);
    vector(&x.alpha2_dev, problems_, 1, x.alpha_stride, 32);
    vector(&x.c_global_scale_dev, problems_, 1, x.c_global_scale_stride, 32);
    if (x.amax_out) memory_.give(&x.amax_out, sizeof *x.amax_out);
    memory_.give_rows(&x.group_rows, x.group_mode, x.groups, x.m);
  }
  // C before its conversion.
  size_t doubles() const { return bytes_of(Wide{args_.m} * args_.n * std::max<int64_t>(own_, 0) * 8); }
  // The reference is slow.
  bool small() const { return Wide{args_.m} * args_.n * args_.k * problems_ <= 5000; }

 private:
  template <class Pointer>
  void matrix(Pointer* pointer, const Rows& rows) {
    if (*pointer) memory_.give(pointer, rows.bytes());
  }
  template <class Pointer>
  void factors(Pointer* pointer, const Factors& factors) {
    if (*pointer) memory_.give(pointer, factors.bytes());
  }
  // One for all problems where the stride is 0.
  template <class Pointer>
  void vector(Pointer* pointer, int64_t problems, int64_t count, int64_t stride, int64_t bits) {
    matrix(pointer, {stride == 0 ? 1 : problems, 1, count, 0, stride, bits});
  }

  dualgemm_args_t& args_;
  Memory& memory_;
  bool offsets_;
  int64_t problems_, own_;
};

dualgemm_args_t small_launch(Bytes& bytes) {
  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.m = 1 + bytes.below(bytes.one_of({4, 20}));
  args.n = 32 * (1 + bytes.below(2));
  args.k = 32 * bytes.one_of({1, 2, 3, 0});
  args.a = args.b1 = args.b2 = args.sfa = args.sfb1 = args.sfb2 = args.c = far_address(0);
  if (bytes.one_in(4)) choose_mxfp4(bytes, &args);
  choose_epilogue(bytes, &args);
  choose_rows(bytes, &args.batch, &args.group_mode, &args.groups);
  args.batch %= 8;
  args.groups %= 8;
  if (args.group_mode) args.groups += args.groups == 0;
  if (bytes.one_in(4)) args.lda = args.k + 32 * bytes.below(3);
  if (bytes.one_in(4)) args.ldc = args.n + 32 * bytes.below(3);
  if (bytes.one_in(2)) spoil(bytes, &args, false);
  args.struct_size = sizeof args;
  return args;
}

}  // namespace

void compute_reference(Bytes& bytes) {
  dualgemm_args_t args = small_launch(bytes);
  Memory memory(bytes);
  Tensors tensors(&args, &memory);
  tensors.give();
  double* y = nullptr;
  if (bytes.one_in(4)) memory.give(&y, tensors.doubles());
  if (reinterpret_cast<uintptr_t>(y) % alignof(double) != 0) y = nullptr;

  size_t size;
  const Answer rules = answer_of(dualgemm_workspace_size(&args, &size));
  if (rules.good() && !(memory.fits() && tensors.small())) return;
  require_same(rules, answer_of(dualgemm_reference_host(&args, y)), "workspace_size and reference_host");
  if (!rules.good()) return require(memory.unchanged(), "a refusal writes: \"%s\"", rules.text.c_str());
  const auto first = memory.contents();
  memory.restore();
  require_same(rules, answer_of(dualgemm_reference_host(&args, y)), "the same call again");
  require(first == memory.contents(), "the same call writes something else");
}

}  // namespace dualgemm_fuzz
