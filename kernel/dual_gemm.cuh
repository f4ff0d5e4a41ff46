// dual_gemm.cuh -- the kernel: C = silu(alpha1 * A * B1^T) * (alpha2 * A * B2^T) with A, B1, B2 in NVFP4. It
// sets the CTA up, gives each warp its role, and takes the CTA down. A persistent CTA computes one tile of C
// after another, and the roles run apart: while the epilogue works on one tile, the others are already at the
// next.
//
//   load A, B1, B2  --.
//                     |--full[s]-->  mma   --acc_full[a]-->   epilogue --> C
//   load SFA, SFB   --'
//                     <--empty[s]--       <--acc_empty[a]--
//
//   s: stage of shared memory, a: accumulator pair in tensor memory
//
// Where K is split over a cluster there is one tile, and reduce.cuh takes the place of the epilogue's work.
//
// shared_storage.cuh has the barriers, tmem_map.cuh the columns of tensor memory, roles.cuh the warps,
// cta.cuh the cluster.
#pragma once

#include "kernel/epilogue.cuh"
#include "kernel/load.cuh"
#include "kernel/mma.cuh"
#include "kernel/reduce.cuh"

namespace dualgemm {

// Barriers, tensor memory and tensor maps. Every warp takes part and leaves converged.
template <class Cfg>
DUALGEMM_DEVICE void prologue(const Params& p, SharedStorage<Cfg>& smem, Role role) {
  if (role == Role::kSetup && ptx::elect_sync())
    for (const CUtensorMap* map : {&p.b1, &p.b2, &p.a, &p.sfb1, &p.sfb2, &p.sfa})
      ptx::prefetch_tensormap(map);
  if (role == Role::kLoadOperands) {
    if (ptx::elect_sync()) {
      for (uint64_t& mbar : smem.full) ptx::mbarrier_init(&mbar, kLoadWarps);
      for (uint64_t& mbar : smem.empty) ptx::mbarrier_init(&mbar, 1);
      for (uint64_t& mbar : smem.acc_full) ptx::mbarrier_init(&mbar, 1);
      for (uint64_t& mbar : smem.acc_empty) ptx::mbarrier_init(&mbar, Cfg::kCtaGroup * kEpilogueWarps);
      ptx::fence_mbarrier_init_release_cluster();  // before TMA and tcgen05.commit arrive on them
    }
  }
  __syncwarp();  // one lane worked above; what follows needs the warp together
  if constexpr (Cta<Cfg>::kPaired) {
    // The other CTA runs, which the allocation for both needs, and its barriers are initialised before
    // anything arrives on them from here. Relaxed: the fence above has released the initialisations, and
    // there is nothing else.
    ptx::cluster_arrive_relaxed();
    ptx::cluster_wait_acquire();
  }
  if (role == Role::kSetup) {
    ptx::tcgen05_alloc<Cfg::kCtaGroup>(&smem.tmem_base, TmemMap<Cfg>::kAllocColumns);
    ptx::tcgen05_relinquish_alloc_permit<Cfg::kCtaGroup>();
  }
  ptx::tcgen05_fence_before_thread_sync();  // the allocation comes before other warps' use of tensor memory
  __syncthreads();                          // barriers and tmem_base are written before anyone reads them
  ptx::tcgen05_fence_after_thread_sync();
}

// Every ring is drained by now (see drain); what remains is to free tensor memory after its last reader.
template <class Cfg>
DUALGEMM_DEVICE void teardown(SharedStorage<Cfg>& smem, Role role) {
  ptx::tcgen05_fence_before_thread_sync();  // the epilogue's loads come before the release of the columns
  if constexpr (Cta<Cfg>::kPaired) {
    // ... of both CTAs. Nor does one exit while the other may still reach its memory.
    ptx::cluster_arrive_release();
    ptx::cluster_wait_acquire();
  } else {
    __syncthreads();
  }
  ptx::tcgen05_fence_after_thread_sync();
  if (role == Role::kSetup) ptx::tcgen05_dealloc<Cfg::kCtaGroup>(smem.tmem_base, TmemMap<Cfg>::kAllocColumns);
}

template <class Cfg>
__global__ void __launch_bounds__(kThreads, 1) dual_gemm_kernel(const __grid_constant__ Params p) {
  static_assert(sizeof(SharedStorage<Cfg>) <= kMaxSmemBytes, "a CTA has this much shared memory");
  extern __shared__ __align__(1024) uint8_t smem_bytes[];
  auto& smem = *reinterpret_cast<SharedStorage<Cfg>*>(smem_bytes);
  // Broadcast from lane 0, so that the compiler sees one value per warp and keeps the roles' arithmetic
  // scalar.
  const int warp = __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) / 32, 0);
  const Role role = role_of(warp);
  const auto cta = Cta<Cfg>::self();
  TileScheduler tiles(p.m_tiles, p.n_tiles, blockIdx.x / Cfg::kClusterSize, gridDim.x / Cfg::kClusterSize);

  prologue<Cfg>(p, smem, role);
  switch (role) {
    case Role::kLoadOperands:
      if (ptx::elect_sync()) load_role<Cfg, Operands>(p, smem, cta, tiles);
      break;
    case Role::kLoadScales:
      if (ptx::elect_sync()) load_role<Cfg, Scales>(p, smem, cta, tiles);
      break;
    case Role::kMma:
      if (cta.leads() && ptx::elect_sync()) mma_role<Cfg>(p, smem, cta, tiles);
      break;
    case Role::kEpilogue:
      if constexpr (Cfg::kSplitK == 1) epilogue_role<Cfg>(p, smem, cta, tiles, EpilogueWarp(warp));
      else wait_for_accumulators(smem.acc_full[0], 0);
      break;
    case Role::kSetup: break;
  }
  __syncwarp();  // a role of one lane ends here: the warp is together again before what all warps do
  if constexpr (Cfg::kSplitK > 1) {  // one tile per cluster
    Tile tile;
    tiles.next(tile);
    reduce<Cfg>(p, smem, cta, tile, role, EpilogueWarp(warp));
  }
  teardown<Cfg>(smem, role);
}

}  // namespace dualgemm
