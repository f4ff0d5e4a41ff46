// launch.cpp -- see launch.h.

#include "host/torch/launch.h"

#include <limits>

namespace dualgemm::torch_ops {
namespace {

// Holds all tensors of a launch, under the names of the schema.
struct Launch {
  int products = 2;
  Form form = Form::kFunctional;
  bool plain = false;  // without keyword-only arguments: the C interface's defaults hold for these
  Tensor a, b1, b2, sfa, sfb1, sfb2, out, sfc, d1, d2;
  Tensor alpha1_dev, alpha2_dev, a_row_scale, c_row_scale, bias1, bias2, c_global_scale_dev, c_add,
      group_rows, b1_row_exponent, b2_row_exponent;
  Tensor amax_out;
  int32_t out_type = kUint8;  // of a C that is made here; NVFP4 is packed in bytes
  int64_t expected_rows = 0, flags = 0, instance_id = 0, max_sms = 0, activation = 0;
  int64_t b_dtype = DUALGEMM_DTYPE_NVFP4;  // factors of E8M0 say MXFP4, too
  dualgemm_args_t args;

  bool offsets() const { return group_rows && a.dims == 2; }
};

float number(Call& call) { return static_cast<float>(call.number()); }

void take_last(Call& call, Launch& x) {
  x.group_rows = call.optional_tensor("group_rows");
  x.expected_rows = call.integer();
  x.flags = call.integer();
  x.instance_id = call.integer();
  x.max_sms = call.integer();
  if (x.form != Form::kOut) return;
  x.sfc = call.optional_output("sfc");
  x.d1 = call.optional_output("d1");
  if (x.products == 2) x.d2 = call.optional_output("d2");
  x.amax_out = call.optional_output("amax_out");
}

void take_swiglu(Call& call, Launch& x) {
  x.a = call.tensor("a");
  x.b1 = call.tensor("b1");
  x.b2 = call.tensor("b2");
  x.sfa = call.optional_tensor("sfa");
  x.sfb1 = call.tensor("sfb1");
  x.sfb2 = call.tensor("sfb2");
  if (x.form == Form::kOut) x.out = call.output("out");
  x.args.alpha1 = number(call);
  x.args.alpha2 = number(call);
  if (x.form == Form::kFunctional) x.out_type = call.type();
  x.alpha1_dev = call.optional_tensor("alpha1_dev");
  x.alpha2_dev = call.optional_tensor("alpha2_dev");
  if (x.plain) return;
  x.a_row_scale = call.optional_tensor("a_row_scale");
  x.c_row_scale = call.optional_tensor("c_row_scale");
  x.bias1 = call.optional_tensor("bias1");
  x.bias2 = call.optional_tensor("bias2");
  x.b1_row_exponent = call.optional_tensor("b1_row_exponent");
  x.b2_row_exponent = call.optional_tensor("b2_row_exponent");
  x.b_dtype = call.integer();
  x.c_global_scale_dev = call.optional_tensor("c_global_scale_dev");
  x.args.c_global_scale = number(call);
  x.activation = call.integer();
  x.args.swiglu_alpha = number(call);
  x.args.swiglu_beta = number(call);
  x.args.swiglu_limit = static_cast<float>(call.optional_number(std::numeric_limits<double>::infinity()));
  x.args.situ_gate = number(call);
  x.args.situ_up = number(call);
  take_last(call, x);
}

void take_linear(Call& call, Launch& x) {
  x.a = call.tensor("a");
  x.b1 = call.tensor("b");
  x.sfa = call.optional_tensor("sfa");
  x.sfb1 = call.tensor("sfb");
  if (x.form == Form::kOut) x.out = call.output("out");
  x.args.alpha1 = number(call);
  if (x.form == Form::kFunctional) x.out_type = call.type();
  x.alpha1_dev = call.optional_tensor("alpha_dev");
  if (x.plain) return;
  x.a_row_scale = call.optional_tensor("a_row_scale");
  x.c_row_scale = call.optional_tensor("c_row_scale");
  x.bias1 = call.optional_tensor("bias");
  x.b1_row_exponent = call.optional_tensor("b_row_exponent");
  x.b_dtype = call.integer();
  x.c_global_scale_dev = call.optional_tensor("c_global_scale_dev");
  x.args.c_global_scale = number(call);
  x.activation = call.integer();
  x.c_add = call.optional_tensor("c_add");
  take_last(call, x);
}

// ---- from tensors to dualgemm_args_t ----

int32_t dtype(int32_t type) {
  switch (type) {
    case kBf16: return DUALGEMM_DTYPE_BF16;
    case kFp16: return DUALGEMM_DTYPE_FP16;
    case kFp32: return DUALGEMM_DTYPE_FP32;
    case kE4m3: return DUALGEMM_DTYPE_FP8_E4M3;
    default: return DUALGEMM_DTYPE_NVFP4;  // packed in bytes
  }
}

void check_out_type(const Launch& x) {
  if (x.form != Form::kFunctional || x.out_type == kBf16 || x.out_type == kFp16 || x.out_type == kFp32 ||
      x.out_type == kE4m3)
    return;
  refuse("out_dtype=%s: must be one of torch.bfloat16, torch.float16, torch.float32, torch.float8_e4m3fn",
         type_name(x.out_type).c_str());
}

void check_places(const Launch& x) {
  const auto check_all = [&](std::initializer_list<const Tensor*> tensors) {
    for (const Tensor* tensor : tensors)
      if (*tensor) check_beside(*tensor, x.a);
  };
  check_all({&x.b1, &x.b2, &x.sfa, &x.sfb1, &x.sfb2, &x.b1_row_exponent, &x.b2_row_exponent});
  check_all({&x.out, &x.sfc, &x.d1, &x.d2, &x.alpha1_dev, &x.alpha2_dev, &x.a_row_scale, &x.c_row_scale,
             &x.bias1, &x.bias2, &x.c_global_scale_dev, &x.c_add, &x.group_rows, &x.amax_out});
}

// Puts the extents, pitches and strides of A and of the weights into the arguments.
void put_operands(Launch& x) {
  dualgemm_args_t& args = x.args;
  const bool wide = x.a.type == kBf16 || x.a.type == kFp16 || x.a.type == kE4m3;  // it has no factors
  const Rows a = check_matrix(x.a, {kUint8, kInt8, kE2m1, kBf16, kFp16, kE4m3}, wide ? 1 : 2);
  const Rows b = check_matrix(x.b1, {kUint8, kInt8, kE2m1}, 2);
  args.a_dtype = wide ? dtype(x.a.type) : DUALGEMM_DTYPE_NVFP4;
  args.b_dtype = x.sfb1.type == kE8m0 ? DUALGEMM_DTYPE_MXFP4 : extent("b_dtype", x.b_dtype);
  args.m = extent("m", a.rows);
  args.n = extent("n", b.rows);
  args.k = extent("k", a.columns);
  args.lda = a.pitch;
  args.batch_stride_a = a.stride;
  args.ldb1 = b.pitch;
  args.batch_stride_b1 = b.stride;
  bool agree = a.columns == b.columns;
  if (x.products == 2) {
    const Rows b2 = check_matrix(x.b2, {kUint8, kInt8, kE2m1}, 2);
    args.ldb2 = b2.pitch;
    args.batch_stride_b2 = b2.stride;
    agree = agree && b2.rows == b.rows && b2.columns == b.columns && b2.problems == b.problems;
  }
  if (!agree)
    refuse("%s", x.products == 2 ? "a, b1 and b2 have one k, b1 and b2 one n" : "a and b have one k");
  if (!x.offsets() && a.problems != b.problems)
    refuse("a has %lld problems, %s %lld", static_cast<long long>(a.problems),
           x.products == 2 ? "b1 and b2 have" : "b has", static_cast<long long>(b.problems));
  if (static_cast<bool>(x.sfa) == wide)
    refuse("sfa: must be %s with an a of %s", wide ? "None" : "given", type_name(x.a.type).c_str());
  args.batch = x.group_rows ? 1 : extent("batch", b.problems);
  args.groups = x.group_rows ? extent("groups", b.problems) : 0;
  args.group_mode = !x.group_rows ? DUALGEMM_GROUP_NONE
                    : x.offsets() ? DUALGEMM_GROUP_OFFSETS
                                  : DUALGEMM_GROUP_MASKED;
  if (x.group_rows) check_array(x.group_rows, kInt32, args.groups + (x.offsets() ? 1 : 0));
}

int64_t problems(const Launch& x) { return x.b1.problems(); }
// Returns how many matrices a tensor has whose rows are those of A or C: one for each problem, but with
// OFFSETS a single one, which has the rows of all groups.
int64_t problems_by_row(const Launch& x) { return x.offsets() ? 1 : problems(x); }
int64_t row_blocks(const Launch& x) { return blocks_of(x.args.m, x.offsets() ? problems(x) : 0); }

void put_factors(Launch& x) {
  dualgemm_args_t& args = x.args;
  if (x.sfa) args.batch_stride_sfa = check_factors(x.sfa, problems_by_row(x), row_blocks(x), args.k);
  const int64_t blocks = blocks_of(args.n, 0);
  args.batch_stride_sfb1 = check_factors(x.sfb1, problems(x), blocks, args.k, args.b_dtype);
  if (x.sfb2) args.batch_stride_sfb2 = check_factors(x.sfb2, problems(x), blocks, args.k, args.b_dtype);
  for (const Tensor* exponents : {&x.b1_row_exponent, &x.b2_row_exponent})
    if (*exponents) check_array(*exponents, kInt16, problems(x) * args.n);
}

// Returns the stride of two vectors, which have one field for it. Refuses vectors of different lengths.
int64_t check_pair(const Tensor& first, const Tensor& second, int64_t stride1, int64_t stride2) {
  if (first && second && stride1 != stride2)
    refuse("%s: must have as many numbers as %s", second.name, first.name);
  return first ? stride1 : stride2;
}

int64_t check_bias(const Launch& x, const Tensor& bias) {
  if (!bias) return 0;
  check_type(bias, {kBf16, kFp32});
  const bool each = problems(x) > 1 && bias.dims == 2;
  check_array(bias, bias.type, (each ? problems(x) : 1) * x.args.n);
  return each ? x.args.n : 0;
}

void put_vectors(Launch& x) {
  dualgemm_args_t& args = x.args;
  const int64_t count = problems(x);
  args.alpha_stride = static_cast<int32_t>(check_pair(
      x.alpha1_dev, x.alpha2_dev, check_numbers(x.alpha1_dev, count), check_numbers(x.alpha2_dev, count)));
  args.c_global_scale_stride = static_cast<int32_t>(check_numbers(x.c_global_scale_dev, count));
  for (const Tensor* scale : {&x.a_row_scale, &x.c_row_scale})
    if (*scale) check_array(*scale, kFp32, problems_by_row(x) * args.m);
  args.bias_stride = check_pair(x.bias1, x.bias2, check_bias(x, x.bias1), check_bias(x, x.bias2));
  if (x.bias1 && x.bias2 && x.bias1.type != x.bias2.type)
    refuse("bias2: must have the type of bias1, %s", type_name(x.bias1.type).c_str());
  const Tensor& bias = x.bias1 ? x.bias1 : x.bias2;
  if (bias) args.bias_dtype = dtype(bias.type);
  if (x.amax_out) check_array(x.amax_out, kFp32, 1);
}

Rows check_like_c(const Launch& x, const Tensor& tensor, std::initializer_list<int32_t> types, int64_t per) {
  const Rows rows = check_matrix(tensor, types, per);
  if (rows.problems != problems_by_row(x) || rows.rows != x.args.m || rows.columns != x.args.n)
    refuse("%s: must be [%lld, %d, %d], and is [%lld, %lld, %lld]", tensor.name,
           static_cast<long long>(problems_by_row(x)), x.args.m, x.args.n,
           static_cast<long long>(rows.problems), static_cast<long long>(rows.rows),
           static_cast<long long>(rows.columns));
  return rows;
}

// Puts C, SFC, D1, D2 and c_add into the arguments. An operator that is not given its outputs makes C and SFC
// here.
void put_outputs(Call& call, Launch& x) {
  dualgemm_args_t& args = x.args;
  if (x.form != Form::kOut) {
    const bool packed = x.form == Form::kNvfp4;
    if (packed && args.n % 16 != 0) refuse("n=%d: must be a multiple of 16 with an NVFP4 C", args.n);
    const std::optional<int64_t> in_front = x.a.in_front();
    x.out = new_matrix(call, "out", x.a, x.out_type, in_front, args.m, packed ? args.n / 2 : args.n);
    const int64_t bytes = factor_bytes(row_blocks(x), args.n);
    if (packed)
      x.sfc = in_front ? new_array(call, "sfc", x.a, kUint8, {*in_front, bytes})
                       : new_array(call, "sfc", x.a, kUint8, {bytes});
  }
  args.c_dtype = dtype(x.out.type);
  const bool packed = args.c_dtype == DUALGEMM_DTYPE_NVFP4;
  const Rows c = check_like_c(x, x.out, {kBf16, kFp16, kFp32, kE4m3, kUint8, kInt8, kE2m1}, packed ? 2 : 1);
  args.ldc = c.pitch;
  args.batch_stride_c = c.stride;
  if (packed != static_cast<bool>(x.sfc))
    refuse("sfc: must be %s with an out of %s", packed ? "given" : "None", type_name(x.out.type).c_str());
  if (x.sfc) args.batch_stride_sfc = check_factors(x.sfc, problems_by_row(x), row_blocks(x), args.n);
  if (x.d1) {
    const Rows d1 = check_like_c(x, x.d1, {kBf16, kFp16, kFp32}, 1);
    args.d_dtype = dtype(x.d1.type);
    args.ldd1 = d1.pitch;
    args.batch_stride_d1 = d1.stride;
  }
  if (x.d2) {
    const Rows d2 = check_like_c(x, x.d2, {x.d1 ? x.d1.type : kBf16}, 1);
    args.ldd2 = d2.pitch;
    args.batch_stride_d2 = d2.stride;
  }
  if (x.c_add) {
    const Rows add = check_like_c(x, x.c_add, {x.out.type}, 1);
    args.ld_c_add = add.pitch;
    args.batch_stride_c_add = add.stride;
  }
}

void put_numbers(Launch& x) {
  dualgemm_args_t& args = x.args;
  args.products = x.products;
  (x.products == 1 ? args.linear_activation : args.activation) = extent("activation", x.activation);
  args.flags = static_cast<uint32_t>(extent("flags", x.flags));
  args.expected_rows = extent("expected_rows", x.expected_rows);
  args.instance_id = extent("instance_id", x.instance_id);
  args.max_sms = extent("max_sms", x.max_sms);
}

// A batch without problems is launched as one problem without rows. The library checks what it can, and
// computes nothing.
void put_empty_batch(Launch& x) {
  x.args.m = x.args.groups = x.args.expected_rows = 0;
  x.args.group_mode = DUALGEMM_GROUP_NONE;
  x.group_rows = {};
}

template <typename Address>
void put_addresses(Launch& x, Address address) {
  dualgemm_args_t& args = x.args;
  args.a = address(x.a);
  args.b1 = address(x.b1);
  args.b2 = address(x.b2);
  args.sfa = address(x.sfa);
  args.sfb1 = address(x.sfb1);
  args.sfb2 = address(x.sfb2);
  args.c = address(x.out);
  args.sfc = address(x.sfc);
  args.d1 = address(x.d1);
  args.d2 = address(x.d2);
  args.c_add = address(x.c_add);
  args.bias1 = address(x.bias1);
  args.bias2 = address(x.bias2);
  args.alpha1_dev = static_cast<const float*>(address(x.alpha1_dev));
  args.alpha2_dev = static_cast<const float*>(address(x.alpha2_dev));
  args.a_row_scale = static_cast<const float*>(address(x.a_row_scale));
  args.c_row_scale = static_cast<const float*>(address(x.c_row_scale));
  args.c_global_scale_dev = static_cast<const float*>(address(x.c_global_scale_dev));
  args.amax_out = static_cast<float*>(address(x.amax_out));
  args.group_rows = static_cast<const int32_t*>(address(x.group_rows));
  args.b1_row_exponent = static_cast<const int16_t*>(address(x.b1_row_exponent));
  args.b2_row_exponent = static_cast<const int16_t*>(address(x.b2_row_exponent));
}

// ---- where it runs ----

void launch(Launch& x) {
  put_addresses(x, [](const Tensor& tensor) { return tensor.data; });
  const OnDevice device(x.a);
  size_t bytes = 0;
  const dualgemm_status_t status = dualgemm_try_launch(&x.args, &bytes, device.stream());
  if (status != DUALGEMM_STATUS_WORKSPACE_TOO_SMALL) return check(status);
  // The allocator gives this memory to nobody else before the work that is queued on this stream has ended.
  const int64_t size = static_cast<int64_t>(bytes), stride = 1;
  const Handle workspace = allocate(x.a, kUint8, 1, &size, &stride);
  x.args.workspace = describe("workspace", workspace).data;
  x.args.workspace_size = bytes;
  check(dualgemm_launch_ex(&x.args, device.stream()));
}

void compute_on_host(Launch& x) {
  put_addresses(x, [](const Tensor& tensor) { return tensor.data; });
  check(dualgemm_reference_host(&x.args, nullptr));
}

// Checks, for tensors without memory, the rules that need neither a device nor an address. They are asked for
// an H100, which takes all that there is.
void ask_only(Launch& x) {
  uintptr_t place = 0;
  put_addresses(x, [&place](const Tensor& tensor) {
    constexpr int kApart = 50;  // more bits than any tensor's size has
    return tensor ? reinterpret_cast<void*>(++place << kApart) : nullptr;
  });
  x.args.max_sms = 0;
  if (x.args.instance_id <= dualgemm_instance_count()) x.args.instance_id = 0;  // it may be another GPU's
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  device.cc_major = 9;
  device.sm_count = 132;
  device.driver_version = 13000;
  const dualgemm_status_t status = dualgemm_can_implement_on(&x.args, &device);
  if (status != DUALGEMM_STATUS_ARCH_MISMATCH) check(status);  // the build may be for other GPUs alone
}

void run(Call& call, Launch& x) {
  check_out_type(x);
  check_places(x);
  put_operands(x);
  put_factors(x);
  put_vectors(x);
  put_numbers(x);
  put_outputs(call, x);
  if (problems_by_row(x) == 0) put_empty_batch(x);
  const Place place = place_of(x.a);
  if (place == Place::kMeta) return ask_only(x);
  return place == Place::kCuda ? launch(x) : compute_on_host(x);
}

template <Form form, bool plain, int products, void take(Call&, Launch&)>
void operate(Call& call) {
  Launch x;
  x.products = products;
  x.form = form;
  x.plain = plain;
  dualgemm_args_init(&x.args);
  take(call, x);
  run(call, x);
}

}  // namespace

template <Form form, bool plain>
void swiglu(Call& call) {
  operate<form, plain, 2, take_swiglu>(call);
}

template <Form form, bool plain>
void linear(Call& call) {
  operate<form, plain, 1, take_linear>(call);
}

#define INSTANTIATE(name, form)           \
  template void name<form, false>(Call&); \
  template void name<form, true>(Call&)
INSTANTIATE(swiglu, Form::kFunctional);
INSTANTIATE(swiglu, Form::kNvfp4);
INSTANTIATE(swiglu, Form::kOut);
INSTANTIATE(linear, Form::kFunctional);
INSTANTIATE(linear, Form::kNvfp4);
INSTANTIATE(linear, Form::kOut);

}  // namespace dualgemm::torch_ops
