// moe_host.cpp -- the exported functions around the launches of a layer of experts, in host memory: the same
// bits as the kernels give, written down plainly.

#include <algorithm>
#include <cmath>

#include "host/common/status.h"
#include "host/convert/floats.h"
#include "host/convert/moe.h"

namespace dualgemm {
namespace {

void permute(const Permutation& permutation) {
  const dualgemm_moe_permute_args_t& args = permutation.args;
  std::fill_n(args.token_row, permutation.count, -1);
  int32_t row = 0;
  for (int32_t expert = 0; expert < args.experts; ++expert) {
    args.group_rows[expert] = row;
    for (int32_t i = 0; i < permutation.count; ++i) {
      if (args.topk_ids[i] != expert) continue;
      args.token_row[i] = row;
      args.row_token[row] = i / args.top_k;
      if (args.row_weight) args.row_weight[row] = args.topk_weights[i];
      ++row;
    }
  }
  args.group_rows[args.experts] = row;
  std::fill(args.row_token + row, args.row_token + permutation.count, -1);
  if (args.row_weight) std::fill(args.row_weight + row, args.row_weight + permutation.count, 0.0f);
}

void gather(const Gathering& gathering) {
  const dualgemm_moe_gather_args_t& args = gathering.args;
  const auto* const x = static_cast<const uint16_t*>(args.x);
  auto* const out = static_cast<uint16_t*>(args.out);
  for (int64_t row = 0; row < args.rows; ++row) {
    const int32_t from = args.row_index[row];
    if (from >= 0 && from < args.x_rows)
      std::copy_n(x + from * gathering.x.pitch, args.k, out + row * gathering.out.pitch);
  }
}

void combine(const Combination& combination) {
  const dualgemm_moe_combine_args_t& args = combination.args;
  for (int64_t token = 0; token < args.tokens; ++token)
    for (int32_t column = 0; column < args.n; ++column) {
      float sum = 0;
      for (int32_t slot = 0; slot < args.top_k; ++slot) {
        const int64_t choice = token * args.top_k + slot;
        const int32_t row = args.token_row[choice];
        if (row < 0 || row >= combination.rows) continue;
        const float weight = args.topk_weights ? args.topk_weights[choice] : 1;
        sum = std::fma(weight, float_of(args.c_dtype, args.c, row * combination.c.pitch + column), sum);
      }
      if (args.add) sum += float_of(args.out_dtype, args.add, token * combination.add.pitch + column);
      store_nearest(args.out_dtype, args.out, token * combination.out.pitch + column, double{sum});
    }
}

template <class Checked, class Args>
dualgemm_status_t on_host(const Args* args, void (*run)(const Checked&)) {
  clear_last_error();
  Checked checked;
  if (auto status = validate(args, &checked)) return status;
  if (!checked.empty) run(checked);
  return DUALGEMM_STATUS_SUCCESS;
}

}  // namespace
}  // namespace dualgemm

using namespace dualgemm;

dualgemm_status_t dualgemm_moe_permute_host(const dualgemm_moe_permute_args_t* args) noexcept {
  return on_host(args, permute);
}
dualgemm_status_t dualgemm_moe_gather_host(const dualgemm_moe_gather_args_t* args) noexcept {
  return on_host(args, gather);
}
dualgemm_status_t dualgemm_moe_combine_host(const dualgemm_moe_combine_args_t* args) noexcept {
  return on_host(args, combine);
}
