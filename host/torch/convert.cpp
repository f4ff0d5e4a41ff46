// convert.cpp -- the operators for quantisation and for scale factors (convert.h).

#include "host/torch/convert.h"

#include "host/torch/twin.h"

namespace dualgemm::torch_ops {
namespace {

constexpr int64_t kBlock = 16;  // elements of a factor

struct Quantize {
  Tensor x, q, sf, scales, global_scale_dev, row_index, group_rows;
  dualgemm_quantize_args_t args;

  bool fp8() const { return args.q_dtype == DUALGEMM_DTYPE_FP8_E4M3; }
  bool offsets() const { return group_rows && x.dims == 2; }
  int64_t rows() const { return row_index ? row_index.count() : x.size(-2); }
  int64_t blocks() const { return blocks_of(rows(), offsets() ? args.groups : 0); }
};

// Sets group_mode, groups and batch of a structure of conversions.
template <typename Args>
void put_problems(Args& args, const Tensor& group_rows, bool offsets, int64_t problems) {
  args.batch = 1;
  if (!group_rows) {
    args.batch = extent("batch", problems);
    return;
  }
  args.group_mode = offsets ? DUALGEMM_GROUP_OFFSETS : DUALGEMM_GROUP_MASKED;
  if (offsets && group_rows.count() < 2)
    refuse("group_rows: has %lld numbers, and needs one more than there are groups",
           static_cast<long long>(group_rows.count()));
  args.groups = extent("groups", offsets ? group_rows.count() - 1 : problems);
  check_array(group_rows, kInt32, args.groups + (offsets ? 1 : 0));
  args.group_rows = static_cast<const int32_t*>(group_rows.data);
}

// Returns how many numbers the computed scales have: none, three for the whole tensor, or one for each row.
int64_t scales_of(const Quantize& x) {
  if (x.args.scale_mode == DUALGEMM_SCALE_TENSOR) return 3;
  return x.args.scale_mode == DUALGEMM_SCALE_ROW ? x.x.problems() * x.rows() : 0;
}

void put_x(Quantize& x) {
  dualgemm_quantize_args_t& args = x.args;
  const Rows in = check_matrix(x.x, {kBf16, kFp16, kFp32});
  put_problems(args, x.group_rows, x.offsets(), in.problems);
  args.x_dtype = x.x.type == kBf16   ? DUALGEMM_DTYPE_BF16
                 : x.x.type == kFp16 ? DUALGEMM_DTYPE_FP16
                                     : DUALGEMM_DTYPE_FP32;
  args.rows = extent("rows", x.rows());
  args.k = extent("k", in.columns);
  args.ldx = in.pitch;
  args.batch_stride_x = in.stride;
  if (args.k % kBlock != 0) refuse("k=%d: must be a multiple of 16", args.k);
  if (x.row_index) {
    if (x.x.dims == 3) refuse("row_index: must be None with an x of 3 dimensions");
    if (in.rows == 0 && args.rows > 0) refuse("x: has no rows, of which row_index names some");
    check_array(x.row_index, kInt32, args.rows);
    check_type(x.row_index, {kInt32});
    args.row_index = static_cast<const int32_t*>(x.row_index.data);
    args.x_rows = extent("x_rows", in.rows);
  }
  if (scales_of(x) > 0 && (x.x.problems() * args.rows == 0 || args.k == 0))
    refuse("x: has no elements, and scale_mode=%d asks for their maximum", args.scale_mode);
  if (x.global_scale_dev && args.scale_mode != DUALGEMM_SCALE_GIVEN)
    refuse("global_scale_dev: must be None with scale_mode=%d", args.scale_mode);
  const int64_t problems = args.groups > 0 ? args.groups : in.problems;
  args.global_scale_stride = check_numbers(x.global_scale_dev, problems);
  args.global_scale_dev = static_cast<const float*>(x.global_scale_dev.data);
}

void make_outputs(Call& call, Quantize& x) {
  const std::optional<int64_t> in_front = x.x.in_front();
  const int64_t bytes = x.fp8() ? 0 : factor_bytes(x.blocks(), x.args.k);
  x.q = x.fp8() ? new_matrix(call, "q", x.x, kE4m3, in_front, x.rows(), x.args.k)
                : new_matrix(call, "q", x.x, kUint8, in_front, x.rows(), x.args.k / 2);
  x.sf = in_front ? new_array(call, "sf", x.x, kUint8, {*in_front, bytes})
                  : new_array(call, "sf", x.x, kUint8, {bytes});
  const bool by_problem = in_front && x.args.scale_mode == DUALGEMM_SCALE_ROW;
  x.scales = by_problem ? new_array(call, "scales", x.x, kFp32, {*in_front, x.rows()})
                        : new_array(call, "scales", x.x, kFp32, {scales_of(x)});
}

void put_outputs(Quantize& x) {
  dualgemm_quantize_args_t& args = x.args;
  const Rows q = check_matrix(x.q, {kUint8, kInt8, x.fp8() ? kE4m3 : kE2m1}, x.fp8() ? 1 : 2);
  if (q.problems != x.x.problems() || q.rows != args.rows || q.columns != args.k)
    refuse("q: must hold [%lld, %d, %d] elements", static_cast<long long>(x.x.problems()), args.rows, args.k);
  args.ldq = q.pitch;
  args.batch_stride_q = q.stride;
  args.x = x.x.data;
  args.q = x.q.data;
  if (!x.fp8()) {
    args.batch_stride_sf = check_factors(x.sf, x.x.problems(), x.blocks(), args.k);
    args.sf = x.sf.data;
  } else if (x.sf.count() > 0) {
    refuse("sf: has %lld elements, and FP8 has no factors", static_cast<long long>(x.sf.count()));
  }
  const int64_t scales = scales_of(x);
  if (scales > 0 && !x.scales) refuse("scales: must be given with scale_mode=%d", args.scale_mode);
  if (scales > 0) check_array(x.scales, kFp32, scales);
  if (args.scale_mode == DUALGEMM_SCALE_TENSOR) args.tensor_scales = static_cast<float*>(x.scales.data);
  if (args.scale_mode == DUALGEMM_SCALE_ROW) args.row_scale = static_cast<float*>(x.scales.data);
}

template <bool out>
void take(Call& call, Quantize& x) {
  x.x = call.tensor("x");
  if (out) x.q = call.output("q");
  if (out) x.sf = call.output("sf");
  x.args.global_scale = static_cast<float>(call.number());
  x.global_scale_dev = call.optional_tensor("global_scale_dev");
  const int64_t mode = call.integer();
  x.row_index = call.optional_tensor("row_index");
  x.group_rows = call.optional_tensor("group_rows");
  const int64_t flags = call.integer(), q_dtype = call.integer();
  if (out) x.scales = call.optional_output("scales");
  x.args.scale_mode = extent("scale_mode", mode);
  x.args.q_dtype = extent("q_dtype", q_dtype);
  x.args.flags = static_cast<uint32_t>(extent("flags", flags));
}

// Scale factors in rows, and in atoms.
struct Factors {
  Tensor linear, atoms, group_rows;
  dualgemm_sf_args_t args;
};

int64_t blocks_of(const Factors& x, bool offsets) {
  return torch_ops::blocks_of(x.args.rows, offsets ? x.args.groups : 0);
}

void put_linear(Factors& x) {
  const Rows rows = check_matrix(x.linear, {kUint8, kInt8, kE4m3}, 1, 1);
  if (rows.rows != x.args.rows || rows.columns * kBlock != x.args.k)
    refuse("%s: must have %d rows of %d factors", x.linear.name, x.args.rows, x.args.k / 16);
  x.args.pitch = rows.pitch;
}

Tensor new_atoms(Call& call, const char* name, const Factors& x, bool offsets) {
  const int64_t bytes = factor_bytes(blocks_of(x, offsets), x.args.k);
  return x.linear.dims == 3 ? new_array(call, name, x.linear, kUint8, {x.linear.sizes[0], bytes})
                            : new_array(call, name, x.linear, kUint8, {bytes});
}

}  // namespace

template <bool out>
void quantize(Call& call) {
  Quantize x;
  dualgemm_quantize_args_init(&x.args);
  take<out>(call, x);
  for (const Tensor* tensor : {&x.q, &x.sf, &x.scales, &x.global_scale_dev, &x.row_index, &x.group_rows})
    if (*tensor) check_beside(*tensor, x.x);
  put_x(x);
  if (!out) make_outputs(call, x);
  put_outputs(x);
  if (x.x.problems() == 0) drop_rows(x.args);
  run_twin(x.x, x.args, dualgemm_quantize, dualgemm_quantize_host_ex);
}

template <bool out>
void sf_swizzle(Call& call) {
  Factors x;
  dualgemm_sf_args_init(&x.args);
  x.linear = call.tensor("src");
  if (out) x.atoms = call.output("dst");
  x.group_rows = call.optional_tensor("group_rows");
  x.args.flags = static_cast<uint32_t>(extent("flags", call.integer()));
  for (const Tensor* tensor : {&x.atoms, &x.group_rows})
    if (*tensor) check_beside(*tensor, x.linear);
  const Rows rows = check_matrix(x.linear, {kUint8, kInt8, kE4m3}, 1, 1);
  const bool offsets = x.group_rows && x.linear.dims == 2;
  x.args.rows = extent("rows", rows.rows);
  x.args.k = extent("k", rows.columns * kBlock);
  put_problems(x.args, x.group_rows, offsets, rows.problems);
  put_linear(x);
  x.args.batch_stride_src = rows.stride;
  if (!out) x.atoms = new_atoms(call, "dst", x, offsets);
  x.args.batch_stride_dst = check_factors(x.atoms, rows.problems, blocks_of(x, offsets), x.args.k);
  x.args.src = x.linear.data;
  x.args.dst = x.atoms.data;
  if (rows.problems == 0) drop_rows(x.args);
  run_twin(x.linear, x.args, dualgemm_sf_swizzle, dualgemm_sf_swizzle_host);
}

template <bool out>
void sf_unswizzle(Call& call) {
  Factors x;
  dualgemm_sf_args_init(&x.args);
  x.atoms = call.tensor("src");
  if (out) x.linear = call.output("dst");
  const int64_t rows = call.integer(), k = call.integer();
  x.group_rows = call.optional_tensor("group_rows");
  x.args.flags = static_cast<uint32_t>(extent("flags", call.integer()));
  for (const Tensor* tensor : {&x.linear, &x.group_rows})
    if (*tensor) check_beside(*tensor, x.atoms);
  if (x.atoms.dims != 1 && x.atoms.dims != 2)
    refuse("src: has %lld dimensions, and factors in atoms have 1, or 2 with one for problems",
           static_cast<long long>(x.atoms.dims));
  const int64_t problems = x.atoms.dims == 2 ? x.atoms.sizes[0] : 1;
  const bool offsets = x.group_rows && x.atoms.dims == 1;
  x.args.rows = extent("rows", rows);
  x.args.k = extent("k", k);
  if (k % kBlock != 0) refuse("k=%d: must be a multiple of 16", x.args.k);
  put_problems(x.args, x.group_rows, offsets, problems);
  if (!out)
    x.linear = x.atoms.dims == 2 ? new_array(call, "dst", x.atoms, kUint8, {problems, rows, k / kBlock})
                                 : new_array(call, "dst", x.atoms, kUint8, {rows, k / kBlock});
  put_linear(x);
  if (x.linear.problems() != problems)
    refuse("dst: must have %lld problems", static_cast<long long>(problems));
  x.args.batch_stride_dst = problems > 1 ? x.linear.stride(0) : 0;
  x.args.batch_stride_src = check_factors(x.atoms, problems, blocks_of(x, offsets), k);
  x.args.src = x.atoms.data;
  x.args.dst = x.linear.data;
  if (problems == 0) drop_rows(x.args);
  run_twin(x.atoms, x.args, dualgemm_sf_unswizzle, dualgemm_sf_unswizzle_host);
}

template void quantize<false>(Call&);
template void quantize<true>(Call&);
template void sf_swizzle<false>(Call&);
template void sf_swizzle<true>(Call&);
template void sf_unswizzle<false>(Call&);
template void sf_unswizzle<true>(Call&);

}  // namespace dualgemm::torch_ops
