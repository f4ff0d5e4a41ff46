// dual_gemm.cuh -- the kernel: C = silu(alpha1 * A * B1^T) * (alpha2 * A * B2^T) with A, B1, B2 in NVFP4. It
// sets the CTA up, gives each warp its role, and takes the CTA down. A persistent CTA computes one tile of C
// after another, and the roles run apart: while the epilogue works on one tile, the others are already at the
// next.
//
//   load weights: B1, B2  --.
//                           |--full[s], scale_full[q]-->  mma   --acc_full[a]-->   epilogue --> C
//   load activations: A   --'
//                           <-empty[s], scale_empty[q]--       <--acc_empty[a]--
//
//   s: stage of operands, q: slot of scale factors, both in shared memory; a: accumulator pair in tensor
//   memory
//
// Where K is split over a cluster there is one tile, and reduce.cuh takes the place of the epilogue's work.
//
// Programmatic dependent launch: the kernel may start before the one that writes A, the factors or the sizes
// of groups has ended. Every role waits for that before it reads them or writes C, which the kernel before
// may still read; only weights that are said to be static are loaded sooner.
//
// shared_storage.cuh has the barriers, tmem_map.cuh the columns of tensor memory, roles.cuh the warps,
// cta.cuh the cluster, groups.cuh the table of groups.
#pragma once

#include "kernel/epilogue.cuh"
#include "kernel/groups.cuh"
#include "kernel/load.cuh"
#include "kernel/mma.cuh"
#include "kernel/reduce.cuh"

namespace dualgemm {

// The tiles of this CTA or cluster.
template <class Cfg>
DUALGEMM_DEVICE auto scheduler(const Params& p, const SharedStorage<Cfg>& smem) {
  const uint32_t first = blockIdx.x / Cfg::kClusterSize, stride = gridDim.x / Cfg::kClusterSize;
  if constexpr (Cfg::kGrouped)
    return GroupedScheduler<Cfg>(smem.groups, p.n_tiles, p.group_offsets != 0, first, stride);
  else return DenseScheduler<Cfg>({p.m_tiles, p.n_tiles, p.problems}, p.m, first, stride);
}

// Barriers, the table of groups and first fetches: what the load roles need. Every warp takes part and leaves
// converged.
template <class Cfg>
DUALGEMM_DEVICE void prologue(const Params& p, SharedStorage<Cfg>& smem, Cta<Cfg> cta, Role role) {
  if (role == Role::kSetup && ptx::elect_sync()) {
    for (const CUtensorMap* map : {&p.b1, &p.b2, &p.a, &p.sfb1, &p.sfb2, &p.sfa})
      ptx::prefetch_tensormap(map);
    // A pair has to meet before it can load.
    if constexpr (Cta<Cfg>::kPaired && !Cfg::kGrouped) prefetch_weights<Cfg>(p, cta, scheduler(p, smem));
  }
  if (role == Role::kLoadWeights && ptx::elect_sync()) {
    for (uint64_t& mbar : smem.full) ptx::mbarrier_init(&mbar, kLoadWarps);
    for (uint64_t& mbar : smem.empty) ptx::mbarrier_init(&mbar, 1);
    for (uint64_t& mbar : smem.scale_full) ptx::mbarrier_init(&mbar, kLoadWarps);
    for (uint64_t& mbar : smem.scale_empty) ptx::mbarrier_init(&mbar, 1);
    for (uint64_t& mbar : smem.acc_full) ptx::mbarrier_init(&mbar, 1);
    for (uint64_t& mbar : smem.acc_empty) ptx::mbarrier_init(&mbar, Cfg::kCtaGroup * kEpilogueWarps);
    if constexpr (!Cfg::kSlotColumnsFit)
      for (uint64_t& mbar : smem.window_free) ptx::mbarrier_init(&mbar, 1);
    ptx::fence_mbarrier_init_release_cluster();  // before TMA and tcgen05.commit arrive on them
  }
  if constexpr (Cfg::kGrouped) {
    if (role == Role::kLoadActivations) {
      ptx::griddepcontrol_wait();  // the kernel before may write the sizes of the groups
      write_group_table<Cfg>(p, smem.groups);
    }
  }
  __syncwarp();  // one lane worked above; what follows needs the warp together
  if constexpr (Cta<Cfg>::kPaired) {
    // The other CTA runs, which the allocation for both needs, and its barriers are initialised before
    // anything arrives on them from here. Relaxed: the fence above has released the initialisations, and
    // there is nothing else that the other CTA reads.
    ptx::cluster_arrive_relaxed();
    ptx::cluster_wait_acquire();
  }
  // Barriers and table are written before anybody in this CTA reads them.
  if constexpr (!Cta<Cfg>::kPaired || Cfg::kGrouped) __syncthreads();
}

// Tensor memory, while the first copies are under way: the set-up warp allocates it, the mma and epilogue
// warps meet it here.
template <class Cfg>
DUALGEMM_DEVICE void allocate_tensor_memory(SharedStorage<Cfg>& smem, Role role) {
  if (role == Role::kLoadWeights || role == Role::kLoadActivations) return;
  if (role == Role::kSetup) {
    ptx::tcgen05_alloc<Cfg::kCtaGroup>(&smem.tmem_base, TmemMap<Cfg>::kAllocColumns);
    ptx::tcgen05_relinquish_alloc_permit<Cfg::kCtaGroup>();
  }
  constexpr uint32_t kTensorMemoryBarrier = 1, kWarps = kEpilogueWarps + 2;
  ptx::tcgen05_fence_before_thread_sync();  // the allocation comes before other warps' use of tensor memory
  ptx::barrier_sync(kTensorMemoryBarrier, 32 * kWarps);  // tmem_base is written before anyone reads it
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
  const int warp = warp_index();
  const Role role = role_of(warp);
  const auto cta = Cta<Cfg>::self();

  prologue<Cfg>(p, smem, cta, role);
  allocate_tensor_memory<Cfg>(smem, role);
  const auto tiles = scheduler<Cfg>(p, smem);
  // Asked anew: the compiler has sent the role through the branches above, and no longer takes it for
  // uniform.
  switch (role_of(warp_index())) {
    case Role::kLoadWeights:
      if (!p.static_weights) ptx::griddepcontrol_wait();
      load_role<Cfg, Weights>(p, smem, cta, tiles);
      break;
    case Role::kLoadActivations:
      ptx::griddepcontrol_wait();  // the kernel before may write A
      load_role<Cfg, Activations>(p, smem, cta, tiles);
      break;
    case Role::kMma:
      if (cta.leads()) mma_role<Cfg>(p, smem, cta, tiles);
      break;
    case Role::kEpilogue:
      ptx::griddepcontrol_wait();  // the kernel before may write the factors and use C
      if constexpr (Cfg::kSplitK == 1) epilogue_role<Cfg>(p, smem, cta, tiles, EpilogueWarp(warp));
      else wait_for_accumulators(smem.acc_full[0], 0);
      break;
    case Role::kSetup: break;
  }
  if constexpr (Cfg::kSplitK > 1) {  // one tile per cluster
    Tile tile;
    auto first = tiles;
    first.next(tile);
    reduce<Cfg>(p, smem, cta, tile, role, EpilogueWarp(warp));
  }
  teardown<Cfg>(smem, role);
}

}  // namespace dualgemm
