// moe_launch.cpp -- the exported functions around the launches of a layer of experts, on the device: rules,
// parameters of the kernel, launch. Their twins on the host are in moe_host.cpp.

#include <cuda_runtime_api.h>

#include "host/common/cuda_error.h"
#include "host/common/status.h"
#include "host/common/structure.h"
#include "host/convert/bands.h"
#include "host/convert/moe.h"
#include "kernel/convert/moe_params.h"

namespace dualgemm {
namespace {

template <class Params>
dualgemm_status_t launch(int64_t tiles, uint32_t flags, cudaStream_t stream, void (*kernel)(Params),
                         const Params& params, int32_t ctas_of_sm) {
  const CudaErrorScope errors;
  int32_t sms;
  if (auto status = query_sms(&sms)) return status;
  return launch_bands(BandLaunch{stream, (flags & DUALGEMM_FLAG_PDL) != 0, sms, tiles}, kernel, params,
                      ctas_of_sm);
}

dualgemm_status_t permute(const dualgemm_moe_permute_args_t* user_args, cudaStream_t stream) {
  Permutation permutation;
  if (auto status = validate(user_args, &permutation)) return status;
  if (permutation.empty) return kOk;
  const dualgemm_moe_permute_args_t& args = permutation.args;
  const PermuteParams params{args.topk_ids,  args.topk_weights, permutation.count,
                             args.top_k,     args.experts,      args.group_rows,
                             args.row_token, args.token_row,    args.row_weight};
  return launch(args.experts, args.flags, stream, kPermuteKernel, params, kPermuteCtas);
}

dualgemm_status_t gather(const dualgemm_moe_gather_args_t* user_args, cudaStream_t stream) {
  Gathering gathering;
  if (auto status = validate(user_args, &gathering)) return status;
  if (gathering.empty) return kOk;
  const dualgemm_moe_gather_args_t& args = gathering.args;
  const GatherParams params{args.row_index, args.rows,         args.k,   args.x_rows,
                            args.x,         gathering.x.pitch, args.out, gathering.out.pitch};
  return launch(gathering.tiles, args.flags, stream, kGatherKernel, params, kGatherCtas);
}

dualgemm_status_t combine(const dualgemm_moe_combine_args_t* user_args, cudaStream_t stream) {
  Combination combination;
  if (auto status = validate(user_args, &combination)) return status;
  if (combination.empty) return kOk;
  const dualgemm_moe_combine_args_t& args = combination.args;
  const CombineParams params{args.token_row,
                             args.tokens,
                             args.top_k,
                             args.n,
                             combination.rows,
                             args.c,
                             combination.c.pitch,
                             args.add,
                             combination.add.pitch,
                             args.out,
                             combination.out.pitch,
                             args.topk_weights};
  return launch(combination.tiles, args.flags, stream, kCombineKernels[args.c_dtype][args.out_dtype], params,
                kCombineCtas);
}

}  // namespace
}  // namespace dualgemm

using namespace dualgemm;

void dualgemm_moe_permute_args_init_sized(dualgemm_moe_permute_args_t* args, size_t struct_size) noexcept {
  init_structure(args, struct_size, default_moe_permute_args());
}

void dualgemm_moe_gather_args_init_sized(dualgemm_moe_gather_args_t* args, size_t struct_size) noexcept {
  init_structure(args, struct_size, default_moe_gather_args());
}

void dualgemm_moe_combine_args_init_sized(dualgemm_moe_combine_args_t* args, size_t struct_size) noexcept {
  init_structure(args, struct_size, default_moe_combine_args());
}

dualgemm_status_t dualgemm_moe_permute(const dualgemm_moe_permute_args_t* args,
                                       dualgemm_stream_t stream) noexcept {
  clear_last_error();
  return permute(args, stream);
}

dualgemm_status_t dualgemm_moe_gather(const dualgemm_moe_gather_args_t* args,
                                      dualgemm_stream_t stream) noexcept {
  clear_last_error();
  return gather(args, stream);
}

dualgemm_status_t dualgemm_moe_combine(const dualgemm_moe_combine_args_t* args,
                                       dualgemm_stream_t stream) noexcept {
  clear_last_error();
  return combine(args, stream);
}
