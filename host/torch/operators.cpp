// operators.cpp -- the operators of torch.ops.dualgemm: their schemas, and the functions that compute them.
// Most arguments have the names of dualgemm.h. But the `out` of a launch is `c` in dualgemm.h, and with one
// product `b`, `sfb`, `alpha`, `alpha_dev`, `bias` and `b_row_exponent` are `b1`, `sfb1`, `alpha1`,
// `alpha1_dev`, `bias1` and `b1_row_exponent`.
//
// torch.ops.dualgemm_meta has the same operators for tensors without memory. They check their arguments and
// make their results, but compute nothing. The fake kernels of the Python package call them.

#include "host/torch/operators.h"

#include "host/torch/convert.h"
#include "host/torch/launch.h"
#include "host/torch/stack.h"

namespace dualgemm::torch_ops {
namespace {

#define FACTORS "Tensor? a_row_scale=None, Tensor? c_row_scale=None, "
#define C_SCALE "Tensor? c_global_scale_dev=None, float c_global_scale=1, "
#define LAST "Tensor? group_rows=None, int expected_rows=0, int flags=0, int instance_id=0, int max_sms=0"
#define TWO "Tensor a, Tensor b1, Tensor b2, Tensor? sfa, Tensor sfb1, Tensor sfb2, "
#define ALPHAS "float alpha1=1, float alpha2=1, "
#define ALPHAS_DEV "Tensor? alpha1_dev=None, Tensor? alpha2_dev=None"
#define OF_TWO                                                                                           \
  ", *, " FACTORS                                                                                        \
  "Tensor? bias1=None, Tensor? bias2=None, Tensor? b1_row_exponent=None, Tensor? b2_row_exponent=None, " \
  "int b_dtype=3, " C_SCALE                                                                              \
  "int activation=0, float swiglu_alpha=1, float swiglu_beta=0, float? swiglu_limit=None, "              \
  "float situ_gate=4, float situ_up=25, " LAST
#define ONE "Tensor a, Tensor b, Tensor? sfa, Tensor sfb, "
#define ALPHA "float alpha=1, "
#define ALPHA_DEV "Tensor? alpha_dev=None"
#define OF_ONE                                                                              \
  ", *, " FACTORS "Tensor? bias=None, Tensor? b_row_exponent=None, int b_dtype=3, " C_SCALE \
  "int activation=0, Tensor? c_add=None, " LAST
#define C_TYPE "ScalarType out_dtype=bfloat16, "
#define SCALE "float global_scale=1, Tensor? global_scale_dev=None, *, "
#define OF_QUANTIZE \
  "int scale_mode=0, Tensor? row_index=None, Tensor? group_rows=None, int flags=0, int q_dtype=3"
#define OF_FACTORS "*, Tensor? group_rows=None, int flags=0"

struct Operator {
  const char* name;
  const char* schema;
  Compute compute;
  void (*boxed)(StableIValue*, uint64_t, uint64_t);
};

template <void compute(Call&)>
constexpr Operator of(const char* name, const char* schema) {
  return {name, schema, compute, boxed<compute>};
}

constexpr Operator kOperators[] = {
    of<swiglu<Form::kFunctional, false>>("swiglu",
                                         "swiglu(" TWO ALPHAS C_TYPE ALPHAS_DEV OF_TWO ") -> Tensor"),
    of<swiglu<Form::kFunctional, true>>("swiglu.plain",
                                        "swiglu.plain(" TWO ALPHAS C_TYPE ALPHAS_DEV ") -> Tensor"),
    of<swiglu<Form::kNvfp4, false>>("swiglu_nvfp4",
                                    "swiglu_nvfp4(" TWO ALPHAS ALPHAS_DEV OF_TWO ") -> (Tensor, Tensor)"),
    of<swiglu<Form::kNvfp4, true>>("swiglu_nvfp4.plain",
                                   "swiglu_nvfp4.plain(" TWO ALPHAS ALPHAS_DEV ") -> (Tensor, Tensor)"),
    of<swiglu<Form::kOut, false>>(
        "swiglu_out",
        "swiglu_out(" TWO "Tensor(a!) out, " ALPHAS ALPHAS_DEV OF_TWO
        ", Tensor(b!)? sfc=None, Tensor(c!)? d1=None, Tensor(d!)? d2=None, Tensor(e!)? amax_out=None) -> ()"),
    of<swiglu<Form::kOut, true>>("swiglu_out.plain",
                                 "swiglu_out.plain(" TWO "Tensor(a!) out, " ALPHAS ALPHAS_DEV ") -> ()"),
    of<linear<Form::kFunctional, false>>("linear", "linear(" ONE ALPHA C_TYPE ALPHA_DEV OF_ONE ") -> Tensor"),
    of<linear<Form::kFunctional, true>>("linear.plain",
                                        "linear.plain(" ONE ALPHA C_TYPE ALPHA_DEV ") -> Tensor"),
    of<linear<Form::kNvfp4, false>>("linear_nvfp4",
                                    "linear_nvfp4(" ONE ALPHA ALPHA_DEV OF_ONE ") -> (Tensor, Tensor)"),
    of<linear<Form::kNvfp4, true>>("linear_nvfp4.plain",
                                   "linear_nvfp4.plain(" ONE ALPHA ALPHA_DEV ") -> (Tensor, Tensor)"),
    of<linear<Form::kOut, false>>(
        "linear_out", "linear_out(" ONE "Tensor(a!) out, " ALPHA ALPHA_DEV OF_ONE
                      ", Tensor(b!)? sfc=None, Tensor(c!)? d1=None, Tensor(d!)? amax_out=None) -> ()"),
    of<linear<Form::kOut, true>>("linear_out.plain",
                                 "linear_out.plain(" ONE "Tensor(a!) out, " ALPHA ALPHA_DEV ") -> ()"),
    of<quantize<false>>("quantize", "quantize(Tensor x, " SCALE OF_QUANTIZE ") -> (Tensor, Tensor, Tensor)"),
    of<quantize<true>>("quantize_out",
                       "quantize_out(Tensor x, Tensor(a!) q, Tensor(b!) sf, " SCALE OF_QUANTIZE
                       ", Tensor(c!)? scales=None) -> ()"),
    of<sf_swizzle<false>>("sf_swizzle", "sf_swizzle(Tensor src, " OF_FACTORS ") -> Tensor"),
    of<sf_swizzle<true>>("sf_swizzle_out",
                         "sf_swizzle_out(Tensor src, Tensor(a!) dst, " OF_FACTORS ") -> ()"),
    of<sf_unswizzle<false>>("sf_unswizzle",
                            "sf_unswizzle(Tensor src, int rows, int k, " OF_FACTORS ") -> Tensor"),
    of<sf_unswizzle<true>>("sf_unswizzle_out",
                           "sf_unswizzle_out(Tensor src, Tensor(a!) dst, int rows, int k, " OF_FACTORS
                           ") -> ()"),
    of<prepare_mxfp4<false>>(
        "prepare_mxfp4",
        "prepare_mxfp4(Tensor q, Tensor scales, *, int flags=0) -> (Tensor, Tensor, Tensor)"),
    of<prepare_mxfp4<true>>(
        "prepare_mxfp4_out",
        "prepare_mxfp4_out(Tensor q, Tensor scales, Tensor(a!) sf, Tensor(b!) row_exponent, "
        "Tensor(c!)? counts=None, *, int flags=0) -> ()"),
    of<moe_permute<false>>(
        "moe_permute",
        "moe_permute(Tensor topk_ids, Tensor? topk_weights, int experts, *, int flags=0) -> (Tensor, Tensor, Tensor, Tensor)"),
    of<moe_permute<true>>(
        "moe_permute_out",
        "moe_permute_out(Tensor topk_ids, Tensor? topk_weights, int experts, Tensor(a!) group_rows, Tensor(b!) row_token, "
        "Tensor(c!) token_row, Tensor(d!)? row_weight=None, *, int flags=0) -> ()"),
    of<moe_gather<false>>("moe_gather", "moe_gather(Tensor x, Tensor row_index, *, int flags=0) -> Tensor"),
    of<moe_gather<true>>("moe_gather_out",
                         "moe_gather_out(Tensor x, Tensor row_index, Tensor(a!) out, *, int flags=0) -> ()"),
    of<moe_combine<false>>(
        "moe_combine",
        "moe_combine(Tensor c, Tensor token_row, Tensor? add=None, ScalarType? out_dtype=None, *, "
        "Tensor? topk_weights=None, int flags=0) -> Tensor"),
    of<moe_combine<true>>(
        "moe_combine_out",
        "moe_combine_out(Tensor c, Tensor token_row, Tensor(a!) out, Tensor? add=None, *, Tensor? topk_weights=None, "
        "int flags=0) -> ()"),
};

void define(torch::stable::detail::StableLibrary& library) {
  for (const Operator& x : kOperators) library.def(x.schema);
}

void implement(torch::stable::detail::StableLibrary& library) {
  for (const Operator& x : kOperators) library.impl(x.name, x.boxed);
}

}  // namespace

Compute find_operator(std::string_view name) {
  for (const Operator& x : kOperators)
    if (name == x.name) return x.compute;
  return nullptr;
}

}  // namespace dualgemm::torch_ops

STABLE_TORCH_LIBRARY(dualgemm, library) { dualgemm::torch_ops::define(library); }
STABLE_TORCH_LIBRARY(dualgemm_meta, library) { dualgemm::torch_ops::define(library); }
STABLE_TORCH_LIBRARY_IMPL(dualgemm, CUDA, library) { dualgemm::torch_ops::implement(library); }
STABLE_TORCH_LIBRARY_IMPL(dualgemm, CPU, library) { dualgemm::torch_ops::implement(library); }
STABLE_TORCH_LIBRARY_IMPL(dualgemm_meta, Meta, library) { dualgemm::torch_ops::implement(library); }
