// zeros.cuh -- a kernel for sm_90a made of the parts that all architectures share: the prologue's barriers,
// the schedulers, the table of groups, the load roles and the epilogue. It loads everything that a dual GEMM
// would, multiplies nothing, and writes zeros from the register fragment that a wgmma would leave.
//
//   load weights, load activations  --full, scale_full-->  consumer, 4 warps: frees every stage, writes zeros
//                                   <-empty, scale_empty-
#pragma once

#include "kernel/common/groups.cuh"
#include "kernel/common/load.cuh"
#include "kernel/epilogue/epilogue.cuh"
#include "test/unit/architecture/plan.h"

namespace zeros {

using namespace dualgemm;

inline constexpr int kConsumerWarps = plan_of_zeros(false).epilogue.warps;

template <bool kGrouped>
struct Zeros {
  static constexpr Plan kPlan = plan_of_zeros(kGrouped);
  using KLoop = dualgemm::KLoop<Zeros>;
  using LoadWeights = dualgemm::LoadWeights<Zeros>;
  using LoadActivations = dualgemm::LoadActivations<Zeros>;
  using Output = Fp16;
  using Arithmetic = PlainSwiglu;
  static constexpr const char* kVariant = "zeros";
};

// These are the accumulators of a wgmma m64nN, of which a lane holds pieces of two rows. Element i lies in
// row 8 ((i / 2) % 2) of the fragment and column 8 (i / 4) + i % 2 (PTX ISA 9.0, 9.7.15.5.1.1, figure of the
// matrix fragment D). The sides are swapped: rows of the fragment are columns of C.
struct WgmmaFragment {
  static constexpr int kElements = 32;  // of a lane, for N = 64
  static constexpr int kLanesAside = 8;
  DUALGEMM_HOST_DEVICE static constexpr int row(int i) { return 8 * (i / 4) + i % 2; }
  DUALGEMM_HOST_DEVICE static constexpr int column(int i) { return 8 * (i / 2 % 2); }
  DUALGEMM_HOST_DEVICE static constexpr bool exists(int rows, int columns) { return rows > 0 && columns > 0; }
};

template <class Traits>
struct SharedStorage {
  Rings<Traits> rings;
  std::conditional_t<Traits::kPlan.tile.grouped, GroupTable<Traits::kPlan.tile.m>, Nothing> groups;
  [[no_unique_address]] typename Traits::Output::Shared output;
};

// Stands in place of the wgmma: waits for what they would wait for, and frees it.
template <class Traits>
DUALGEMM_DEVICE void consume_tile(Rings<Traits>& rings, const KLoop<Traits>& loop,
                                  PipelineState<Rings<Traits>::kStages>& s,
                                  PipelineState<Rings<Traits>::kScaleStages>& q) {
  for (int32_t i = 0; i < loop.length(); ++i) {
    if (loop.in_scale_stage(i) == 0) wait(rings.scale_full[q.index], q.phase);
    wait(rings.full[s.index], s.phase);
    if (ptx::elect_sync()) {
      ptx::mbarrier_arrive(&rings.empty[s.index]);
      if (loop.ends_scale_stage(i)) ptx::mbarrier_arrive(&rings.scale_empty[q.index]);
    }
    __syncwarp();
    if (loop.ends_scale_stage(i)) ++q;
    ++s;
  }
}

template <class Traits, class Scheduler>
DUALGEMM_DEVICE void consumer_role(const Params& p, SharedStorage<Traits>& smem, Scheduler tiles) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const typename Traits::KLoop loop(p.k_tiles, 0);
  auto s = consumer_start<Rings<Traits>::kStages>();
  auto q = consumer_start<Rings<Traits>::kScaleStages>();
  for (Tile tile; tiles.next(tile);) {
    if (warp == 0) consume_tile(smem.rings, loop, s, q);
    const LanePlace at{2 * (lane % 4), tile.n * Traits::kPlan.tile.n + 16 * warp + lane / 4};
    const Epilogue<Traits, WgmmaFragment> epilogue(p, tile, at, smem.output);
    epilogue.finish(Fragment<WgmmaFragment::kElements>{}, 0);
  }
  Traits::Output::complete();
}

template <class Traits>
__global__ void __launch_bounds__(Traits::kPlan.threads, 1) zeros_kernel(const __grid_constant__ Params p) {
  extern __shared__ __align__(1024) uint8_t smem_bytes[];
  auto& smem = *reinterpret_cast<SharedStorage<Traits>*>(smem_bytes);
  const int warp = __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) / 32, 0);
  const auto cta = Cta<Traits>::self();
  if (warp == kConsumerWarps && ptx::elect_sync()) {
    prefetch_tensor_maps(p);
    smem.rings.init_barriers();
    ptx::fence_mbarrier_init_release_cluster();  // before TMA arrives on them
  }
  ptx::griddepcontrol_wait();  // the preceding grid may write anything that is read below, and use C
  if constexpr (Traits::kPlan.tile.grouped)
    if (warp == kConsumerWarps + 1) write_group_table<Traits>(p, smem.groups);
  __syncthreads();  // barriers and table are written before anybody reads them
  const auto tiles = scheduler_of<Traits>(p, smem.groups);
  if (warp == kConsumerWarps) load_role<typename Traits::LoadWeights>(p, smem.rings, cta, tiles);
  else if (warp == kConsumerWarps + 1) load_role<typename Traits::LoadActivations>(p, smem.rings, cta, tiles);
  else consumer_role(p, smem, tiles);
}

}  // namespace zeros
