// mxfp4.cpp -- the operator that prepares weights in MXFP4 (convert.h).

#include "host/torch/convert.h"
#include "host/torch/twin.h"

namespace dualgemm::torch_ops {
namespace {

constexpr int64_t kMxBlock = 32;  // elements of a factor
constexpr int64_t kCounts = 4;    // numbers that a preparation counts

struct Mxfp4 {
  Tensor q, scales, sf, row_exponent, counts;
  dualgemm_prepare_mxfp4_args_t args;
};

void put_inputs(Mxfp4& x) {
  dualgemm_prepare_mxfp4_args_t& args = x.args;
  const Rows q = check_matrix(x.q, {kUint8, kInt8, kE2m1}, 2);
  const Rows scales = check_matrix(x.scales, {kUint8, kInt8, kE8m0}, 1, 1);
  if (scales.problems != q.problems || scales.rows != q.rows || scales.columns != q.columns / kMxBlock)
    refuse("scales: must have a factor for each %lld of q's elements, [%lld, %lld, %lld]",
           static_cast<long long>(kMxBlock), static_cast<long long>(q.problems),
           static_cast<long long>(q.rows), static_cast<long long>(q.columns / kMxBlock));
  args.rows = extent("rows", q.rows);
  args.k = extent("k", q.columns);
  args.batch = extent("batch", q.problems);
  args.ldq = q.pitch;
  args.batch_stride_q = q.stride;
  args.pitch = scales.pitch;
  args.batch_stride_scales = scales.stride;
}

void make_outputs(Call& call, Mxfp4& x) {
  const std::optional<int64_t> in_front = x.q.in_front();
  const int64_t rows = x.args.rows, bytes = factor_bytes(blocks_of(rows, 0), x.args.k, DUALGEMM_DTYPE_MXFP4);
  x.sf = in_front ? new_array(call, "sf", x.q, kE8m0, {*in_front, bytes})
                  : new_array(call, "sf", x.q, kE8m0, {bytes});
  x.row_exponent = in_front ? new_array(call, "row_exponent", x.q, kInt16, {*in_front, rows})
                            : new_array(call, "row_exponent", x.q, kInt16, {rows});
  x.counts = new_array(call, "counts", x.q, kInt32, {kCounts});
  clear(x.counts);
}

void put_outputs(Mxfp4& x) {
  dualgemm_prepare_mxfp4_args_t& args = x.args;
  const int64_t problems = x.q.problems();
  args.batch_stride_sf = check_factors(x.sf, problems, blocks_of(args.rows, 0), args.k, DUALGEMM_DTYPE_MXFP4);
  check_array(x.row_exponent, kInt16, problems * args.rows);
  if (x.counts) check_array(x.counts, kInt32, kCounts);
  args.q = x.q.data;
  args.scales = x.scales.data;
  args.sf = x.sf.data;
  args.row_exponent = static_cast<int16_t*>(x.row_exponent.data);
  args.counts = static_cast<uint32_t*>(x.counts.data);
}

}  // namespace

template <bool out>
void prepare_mxfp4(Call& call) {
  Mxfp4 x;
  dualgemm_prepare_mxfp4_args_init(&x.args);
  x.q = call.tensor("q");
  x.scales = call.tensor("scales");
  if (out) x.sf = call.output("sf");
  if (out) x.row_exponent = call.output("row_exponent");
  if (out) x.counts = call.optional_output("counts");
  x.args.flags = static_cast<uint32_t>(extent("flags", call.integer()));
  for (const Tensor* tensor : {&x.scales, &x.sf, &x.row_exponent, &x.counts})
    if (*tensor) check_beside(*tensor, x.q);
  put_inputs(x);
  if (!out) make_outputs(call, x);
  put_outputs(x);
  if (x.q.problems() == 0) drop_rows(x.args);
  run_twin(x.q, x.args, dualgemm_prepare_mxfp4, dualgemm_prepare_mxfp4_host);
}

template void prepare_mxfp4<false>(Call&);
template void prepare_mxfp4<true>(Call&);

}  // namespace dualgemm::torch_ops
