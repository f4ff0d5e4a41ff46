// prepare_a.cpp -- see prepare_a.h.

#include "host/launch/prepare_a.h"

#include "host/common/device.h"
#include "host/common/rows.h"
#include "host/common/sf_layout.h"
#include "host/convert/bands.h"
#include "kernel/convert/params.h"

namespace dualgemm {

Tensor prepared_a(const Problem& problem) {
  const Tensor& a = problem.inputs[kA];
  Tensor t;
  t.name = "prepared A";
  t.base = problem.args.workspace;
  t.problems = a.problems;
  t.rows = a.rows;
  t.pitch = t.row_elements = ceil_div(problem.args.k, kTileK) * kTileK;
  t.stride = t.rows * t.pitch;
  t.bits = 16;
  return t;
}

size_t prepared_a_bytes(const Problem& problem) {
  const Tensor t = prepared_a(problem);
  return sizeof(uint16_t) * static_cast<size_t>(t.problems * t.stride);
}

size_t workspace_bytes(const Problem& problem, const Plan& plan) {
  return plan.prepared_a() ? prepared_a_bytes(problem) + stream_space(problem, plan).bytes : 0;
}

// Fewer than two tiles for each CTA are shared, and a CTA has parts of at most two tiles. A row of A in the
// workspace takes a multiple of 512 bytes. So the counts and the sums, which follow A, begin at multiples of
// 256.
StreamSpace stream_space(const Problem& problem, const Plan& plan) {
  StreamSpace space{};
  if (!plan.tile.stream_k) return space;
  const auto parts = static_cast<size_t>(kPartsOfCta * most_stream_ctas(tile_bound(problem, plan.tile)));
  const auto sums = static_cast<size_t>(plan.tile.m * plan.tile.n * plan.mma.accumulators);  // of a part
  space.counts = static_cast<int32_t>(parts);
  space.counts_begin = prepared_a_bytes(problem);
  space.sums_begin = space.counts_begin + ceil_div(sizeof(uint32_t) * parts, 256) * 256;
  space.bytes = space.sums_begin + sizeof(float) * parts * sums - space.counts_begin;
  return space;
}

dualgemm_status_t load_prepare_a(const Plan& plan) {
  if (!plan.prepared_a()) return DUALGEMM_STATUS_SUCCESS;
  for (const PrepareKernel kernel : kPrepareKernels[plan.packed_a()])
    if (auto status = load_kernel(reinterpret_cast<const void*>(kernel), 0)) return status;
  return DUALGEMM_STATUS_SUCCESS;
}

dualgemm_status_t prepare_a(const Problem& problem, const Plan& plan, const Machine& machine,
                            cudaStream_t stream) {
  if (!plan.prepared_a()) return DUALGEMM_STATUS_SUCCESS;
  const dualgemm_args_t& args = problem.args;
  const Tensor &a = problem.inputs[kA], &sfa = problem.inputs[kSfa], prepared = prepared_a(problem);
  const Rows rows{args.m, problem.problems, args.group_mode, args.group_rows};
  const auto pieces = static_cast<int32_t>(ceil_div(args.k, kPreparePiece) * (kSfAtomRows / kPrepareRows));
  PrepareParams params{};
  params.rows = band_params(rows, pieces);
  params.a = static_cast<const uint8_t*>(a.base);
  params.a_pitch = a.bytes(a.pitch);
  params.a_stride = a.bytes(a.shared_stride());
  params.factors = static_cast<const uint8_t*>(sfa.base);
  params.factor_stride = sfa.shared_stride();
  params.prepared_a = static_cast<uint16_t*>(args.workspace);
  params.pitch = prepared.pitch;
  params.stride = prepared.stride;
  params.k = args.k;
  const StreamSpace space = stream_space(problem, plan);
  params.zeros = reinterpret_cast<uint32_t*>(static_cast<uint8_t*>(args.workspace) + space.counts_begin);
  params.zero_count = space.counts;
  const PrepareKernel kernel = kPrepareKernels[problem.packed_a()][problem.grouped()];
  return launch_bands(band_launch(rows, pieces, args.flags, machine.sms, stream), kernel, params,
                      machine.limited ? 1 : kPrepareCtas);
}

bool starts_early(const Problem& problem, const Plan& plan, const Machine& machine) {
  return plan.prepared_a() ? !machine.limited : (problem.args.flags & DUALGEMM_FLAG_PDL) != 0;
}

}  // namespace dualgemm
