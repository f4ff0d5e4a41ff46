// experts.cpp -- the operators around the launches of a layer of experts: moe_permute, moe_gather and
// moe_combine (convert.h).

#include "host/torch/convert.h"
#include "host/torch/twin.h"

namespace dualgemm::torch_ops {
namespace {

constexpr int kColumns = 8;  // of which rows are multiples

struct Permute {
  Tensor topk_ids, topk_weights, group_rows, row_token, token_row, row_weight;
  int64_t experts = 0;
  dualgemm_moe_permute_args_t args;
};

// Checks that a tensor is [tokens, top_k] of a type, without gaps.
void check_choices(const Tensor& tensor, int32_t type) {
  if (tensor.dims != 2)
    refuse("%s: has %lld dimensions, and must be [tokens, top_k]", tensor.name,
           static_cast<long long>(tensor.dims));
  check_type(tensor, {type});
  check_array(tensor, type, tensor.count());
}

// Checks optional weights of these choices.
void check_weights(const Tensor& weights, const Tensor& choices) {
  if (!weights) return;
  check_choices(weights, kFp32);
  if (weights.size(0) != choices.size(0) || weights.size(1) != choices.size(1))
    refuse("%s: must be [%lld, %lld], as %s is", weights.name, static_cast<long long>(choices.size(0)),
           static_cast<long long>(choices.size(1)), choices.name);
}

void make_outputs(Call& call, Permute& x) {
  const int64_t tokens = x.topk_ids.size(0), top_k = x.topk_ids.size(1);
  x.group_rows = new_array(call, "group_rows", x.topk_ids, kInt32, {x.experts + 1});
  x.row_token = new_array(call, "row_token", x.topk_ids, kInt32, {tokens * top_k});
  x.token_row = new_array(call, "token_row", x.topk_ids, kInt32, {tokens, top_k});
  x.row_weight = new_array(call, "row_weight", x.topk_ids, kFp32, {x.topk_weights ? tokens * top_k : 0});
}

void put(Permute& x) {
  dualgemm_moe_permute_args_t& args = x.args;
  check_choices(x.topk_ids, kInt32);
  const int64_t choices = x.topk_ids.count();
  args.tokens = extent("tokens", x.topk_ids.size(0));
  args.top_k = extent("top_k", x.topk_ids.size(1));
  args.experts = extent("experts", x.experts);
  check_weights(x.topk_weights, x.topk_ids);
  check_array(x.group_rows, kInt32, x.experts + 1);
  check_array(x.row_token, kInt32, choices);
  check_array(x.token_row, kInt32, choices);
  if (x.topk_weights && !x.row_weight) refuse("row_weight: must be given with topk_weights");
  if (x.topk_weights) check_array(x.row_weight, kFp32, choices);
  args.topk_ids = static_cast<const int32_t*>(x.topk_ids.data);
  args.topk_weights = static_cast<const float*>(x.topk_weights.data);
  args.group_rows = static_cast<int32_t*>(x.group_rows.data);
  args.row_token = static_cast<int32_t*>(x.row_token.data);
  args.token_row = static_cast<int32_t*>(x.token_row.data);
  if (x.topk_weights) args.row_weight = static_cast<float*>(x.row_weight.data);
}

int32_t dtype(int32_t type) {
  return type == kBf16 ? DUALGEMM_DTYPE_BF16 : type == kFp16 ? DUALGEMM_DTYPE_FP16 : DUALGEMM_DTYPE_FP32;
}

void check_shape(const Tensor& tensor, const Rows& rows, int64_t wanted, int64_t columns) {
  if (tensor.dims != 2 || rows.rows != wanted || rows.columns != columns)
    refuse("%s: must be [%lld, %lld]", tensor.name, static_cast<long long>(wanted),
           static_cast<long long>(columns));
}

struct Gather {
  Tensor x, row_index, out;
  dualgemm_moe_gather_args_t args;
};

void put(Gather& x) {
  dualgemm_moe_gather_args_t& args = x.args;
  const Rows in = check_matrix(x.x, {kBf16, kFp16}), out = check_matrix(x.out, {x.x.type});
  check_shape(x.out, out, x.row_index.count(), in.columns);
  if (in.columns % kColumns != 0)
    refuse("x: has %lld columns, which must be a multiple of %d", static_cast<long long>(in.columns),
           kColumns);
  if (in.rows == 0 && out.rows > 0) refuse("x: has no rows, of which row_index names some");
  args.rows = extent("rows", x.row_index.count());
  args.k = extent("k", in.columns);
  args.x_rows = extent("x_rows", in.rows);
  args.x_dtype = dtype(x.x.type);
  args.ldx = in.pitch;
  args.ld_out = out.pitch;
  args.row_index = static_cast<const int32_t*>(x.row_index.data);
  args.x = x.x.data;
  args.out = x.out.data;
}

struct Combine {
  Tensor c, token_row, add, topk_weights, out;
  int32_t out_type = 0;
  dualgemm_moe_combine_args_t args;
};

void put(Combine& x) {
  dualgemm_moe_combine_args_t& args = x.args;
  check_choices(x.token_row, kInt32);
  check_weights(x.topk_weights, x.token_row);
  args.tokens = extent("tokens", x.token_row.size(0));
  args.top_k = extent("top_k", x.token_row.size(1));
  if (args.top_k == 0 && args.tokens > 0) refuse("token_row: has no choices of %d tokens", args.tokens);
  const Rows c = check_matrix(x.c, {kBf16, kFp16, kFp32}), out = check_matrix(x.out, {kBf16, kFp16, kFp32});
  check_shape(x.c, c, x.token_row.count(), c.columns);
  check_shape(x.out, out, args.tokens, c.columns);
  if (c.columns % kColumns != 0)
    refuse("c: has %lld columns, which must be a multiple of %d", static_cast<long long>(c.columns),
           kColumns);
  args.n = extent("n", c.columns);
  args.c_dtype = dtype(x.c.type);
  args.out_dtype = dtype(x.out.type);
  args.ldc = c.pitch;
  args.ld_out = out.pitch;
  if (x.add) {
    const Rows add = check_matrix(x.add, {x.out.type});
    check_shape(x.add, add, args.tokens, c.columns);
    args.ld_add = add.pitch;
  }
  args.token_row = static_cast<const int32_t*>(x.token_row.data);
  args.topk_weights = static_cast<const float*>(x.topk_weights.data);
  args.c = x.c.data;
  args.add = x.add.data;
  args.out = x.out.data;
}

}  // namespace

template <bool out>
void moe_permute(Call& call) {
  Permute x;
  dualgemm_moe_permute_args_init(&x.args);
  x.topk_ids = call.tensor("topk_ids");
  x.topk_weights = call.optional_tensor("topk_weights");
  x.experts = call.integer();
  if (out) {
    x.group_rows = call.output("group_rows");
    x.row_token = call.output("row_token");
    x.token_row = call.output("token_row");
    x.row_weight = call.optional_output("row_weight");
  }
  x.args.flags = static_cast<uint32_t>(extent("flags", call.integer()));
  for (const Tensor* tensor : {&x.topk_weights, &x.group_rows, &x.row_token, &x.token_row, &x.row_weight})
    if (*tensor) check_beside(*tensor, x.topk_ids);
  if (x.experts < 1 || x.experts > DUALGEMM_MAX_GROUPS)
    refuse("experts=%lld: must be 1 to %d", static_cast<long long>(x.experts), DUALGEMM_MAX_GROUPS);
  check_choices(x.topk_ids, kInt32);
  if (!out) make_outputs(call, x);
  put(x);
  run_twin(x.topk_ids, x.args, dualgemm_moe_permute, dualgemm_moe_permute_host);
  if (x.topk_ids.count() == 0) clear(x.group_rows);  // which the library has not written
}

template <bool out>
void moe_gather(Call& call) {
  Gather x;
  dualgemm_moe_gather_args_init(&x.args);
  x.x = call.tensor("x");
  x.row_index = call.tensor("row_index");
  if (out) x.out = call.output("out");
  x.args.flags = static_cast<uint32_t>(extent("flags", call.integer()));
  for (const Tensor* tensor : {&x.row_index, &x.out})
    if (*tensor) check_beside(*tensor, x.x);
  check_type(x.row_index, {kInt32});
  check_array(x.row_index, kInt32, x.row_index.count());
  check_type(x.x, {kBf16, kFp16});
  if (x.x.dims != 2) refuse("x: has %lld dimensions, and must have 2", static_cast<long long>(x.x.dims));
  if (!out) x.out = new_matrix(call, "out", x.x, x.x.type, std::nullopt, x.row_index.count(), x.x.size(1));
  put(x);
  run_twin(x.x, x.args, dualgemm_moe_gather, dualgemm_moe_gather_host);
}

template <bool out>
void moe_combine(Call& call) {
  Combine x;
  dualgemm_moe_combine_args_init(&x.args);
  x.c = call.tensor("c");
  x.token_row = call.tensor("token_row");
  if (out) x.out = call.output("out");
  x.add = call.optional_tensor("add");
  if (!out) x.out_type = call.optional_type(x.c.type);
  x.topk_weights = call.optional_tensor("topk_weights");
  x.args.flags = static_cast<uint32_t>(extent("flags", call.integer()));
  for (const Tensor* tensor : {&x.token_row, &x.out, &x.add, &x.topk_weights})
    if (*tensor) check_beside(*tensor, x.c);
  check_choices(x.token_row, kInt32);
  if (!out) {
    if (x.out_type != kBf16 && x.out_type != kFp16 && x.out_type != kFp32)
      refuse("out_dtype=%s: must be one of torch.bfloat16, torch.float16, torch.float32",
             type_name(x.out_type).c_str());
    if (x.c.dims != 2) refuse("c: has %lld dimensions, and must have 2", static_cast<long long>(x.c.dims));
    x.out = new_matrix(call, "out", x.c, x.out_type, std::nullopt, x.token_row.size(0), x.c.size(1));
  }
  put(x);
  run_twin(x.c, x.args, dualgemm_moe_combine, dualgemm_moe_combine_host);
}

template void moe_permute<false>(Call&);
template void moe_permute<true>(Call&);
template void moe_gather<false>(Call&);
template void moe_gather<true>(Call&);
template void moe_combine<false>(Call&);
template void moe_combine<true>(Call&);

}  // namespace dualgemm::torch_ops
