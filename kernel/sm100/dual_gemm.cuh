// dual_gemm.cuh -- the kernel for compute capability 10.x: C = f(alpha1 * A * B1^T) * h(alpha2 * A * B2^T)
// with A, B1, B2 in NVFP4. It sets the CTA up, gives each warp its role, and takes the CTA down. The kernel
// is warp-specialized and persistent: a CTA computes one tile of C after another, and the roles work on
// different tiles at a time: while the epilogue finishes one tile, the other roles are already at the next.
//
//   load weights: B1, B2  --.
//                           |--full[s], scale_full[q]-->   mma   --acc_full[a]-->   epilogue --> C
//   load activations: A   --'
//                           <-empty[s], scale_empty[q]--         <--acc_empty[a]--
//
//   s: stage of operands, q: stage of scale factors, both in shared memory
//   a: accumulator pair, in tensor memory
//
// With split-K there is one tile per cluster. The epilogues of its CTAs send each other their parts of the
// sums (reduce.cuh).
//
// Programmatic dependent launch (PDL): the kernel may start before the preceding grid has ended, and that
// grid may still write any of our inputs and use our outputs. So every role that reads an input or writes an
// output first executes griddepcontrol.wait, which returns when that grid has ended and all its writes are
// visible here, to copies of TMA as well, as they are at the boundary of two kernels. There are two
// exceptions. Weights that the caller says to be static are loaded sooner, but not before the sizes of groups
// are known. Any weights may be prefetched to L2 sooner (load.cuh says why).
//
// common/rings.cuh and shared_storage.cuh have the barriers, tmem_map.cuh the columns of tensor memory,
// roles.cuh the warps, common/cta.cuh the cluster, common/groups.cuh the table of groups.
#pragma once

#include "kernel/common/groups.cuh"
#include "kernel/common/load.cuh"
#include "kernel/sm100/epilogue.cuh"
#include "kernel/sm100/mma.cuh"
#include "kernel/sm100/reduce.cuh"

namespace dualgemm::sm100 {

// Returns the tiles of this CTA or cluster.
template <class Traits>
DUALGEMM_DEVICE auto scheduler(const Params& p, const SharedStorage<Traits>& smem) {
  return scheduler_of<Traits>(p, smem.groups);
}

// Prepares what the load roles need: barriers, the table of groups and the first prefetches. Every warp takes
// part and leaves converged.
template <class Traits>
DUALGEMM_DEVICE void prologue(const Params& p, SharedStorage<Traits>& smem, Cta<Traits> cta, Role role) {
  constexpr Plan kPlan = Traits::kPlan;
  if (role == Role::kSetup && ptx::elect_sync()) {
    prefetch_tensor_maps<kPlan.mma.products>(p);
    // A pair loads only after its cluster barrier below; this uses the time until then.
    if constexpr (Cta<Traits>::kPaired && !kPlan.tile.grouped)
      prefetch_weights<Traits>(p, cta, scheduler(p, smem));
  }
  if (role == Role::kLoadWeights && ptx::elect_sync()) {
    smem.rings.init_barriers();
    for (uint64_t& mbar : smem.acc_full) ptx::mbarrier_init(&mbar, 1);
    for (uint64_t& mbar : smem.acc_empty)
      ptx::mbarrier_init(&mbar, kPlan.mma.cta_group * kPlan.epilogue.warps);
    if constexpr (!kPlan.tmem.resident_scales)
      for (uint64_t& mbar : smem.window_free) ptx::mbarrier_init(&mbar, 1);
    if constexpr (kPlan.tile.split_k > 1) ptx::mbarrier_init(&smem.sums_full, 1);
    ptx::fence_mbarrier_init_release_cluster();  // before TMA, tcgen05.commit and st.async arrive on them
  }
  if constexpr (kPlan.tile.grouped) {
    if (role == Role::kLoadActivations) {
      ptx::griddepcontrol_wait();  // the preceding grid may write the sizes of the groups
      write_group_table<Traits>(p, smem.groups);
    }
  }
  __syncwarp();  // one lane worked above; what follows needs the warp together
  if constexpr (Cta<Traits>::kPaired) {
    // After this barrier the other CTA is known to run, which an allocation with cta_group::2 requires, and
    // its mbarriers have been initialised before anything arrives on them from here. The arrival may be
    // relaxed: the fence above has released the initialisations, and the other CTA reads nothing else.
    ptx::cluster_arrive_relaxed();
    ptx::cluster_wait_acquire();
  }
  // The mbarriers and the table are written before anybody in this CTA reads them. In a pair the cluster
  // barrier above has ordered the initialisation of the mbarriers; the table still needs this barrier, since
  // the arrival above was relaxed.
  if constexpr (!Cta<Traits>::kPaired || kPlan.tile.grouped) __syncthreads();
}

// The set-up warp allocates tensor memory while the first copies are under way, and meets the mma and
// epilogue warps here.
template <class Traits>
DUALGEMM_DEVICE void allocate_tensor_memory(SharedStorage<Traits>& smem, Role role) {
  constexpr Plan kPlan = Traits::kPlan;
  if (role == Role::kLoadWeights || role == Role::kLoadActivations) return;
  if (role == Role::kSetup) {
    ptx::tcgen05_alloc<kPlan.mma.cta_group>(&smem.tmem_base, kPlan.tmem.allocated);
    ptx::tcgen05_relinquish_alloc_permit<kPlan.mma.cta_group>();
  }
  constexpr uint32_t kTensorMemoryBarrier = 1, kMmaAndSetupWarps = 2;
  ptx::tcgen05_fence_before_thread_sync();  // the allocation comes before other warps' use of tensor memory
  // The address in tmem_base is written before anyone reads it.
  ptx::barrier_sync(kTensorMemoryBarrier, 32 * (kPlan.epilogue.warps + kMmaAndSetupWarps));
  ptx::tcgen05_fence_after_thread_sync();
}

// Every ring has been drained by now (common/wait.cuh); what remains is to free tensor memory after its last
// reader.
template <class Traits>
DUALGEMM_DEVICE void teardown(SharedStorage<Traits>& smem, Role role) {
  constexpr Plan kPlan = Traits::kPlan;
  ptx::tcgen05_fence_before_thread_sync();  // the epilogue's loads come before the release of the columns
  if constexpr (Cta<Traits>::kPaired) {
    // The loads of both CTAs come before the release of the columns, and neither CTA exits while the other
    // may still reach its memory.
    ptx::cluster_arrive_release();
    ptx::cluster_wait_acquire();
  } else {
    __syncthreads();
  }
  ptx::tcgen05_fence_after_thread_sync();
  if (role == Role::kSetup) ptx::tcgen05_dealloc<kPlan.mma.cta_group>(smem.tmem_base, kPlan.tmem.allocated);
}

// The epilogue role of a general instance is a function of its own, because its length would cost the other
// roles their code: within the kernel, ptxas 13.0 keeps values that all lanes share in registers of each
// lane, which the loops that issue copies and mma move back in every iteration. It is called once, and the
// call does not change the registers of the other roles.
template <class Traits>
__device__ __noinline__ void general_epilogue_role(const Params& p, SharedStorage<Traits>& smem,
                                                   Cta<Traits> cta, int warp) {
  const auto tiles = scheduler<Traits>(p, smem);
  if constexpr (Traits::kPlan.tile.split_k > 1)
    reducing_epilogue_role<Traits>(p, smem, cta, tiles, EpilogueWarp(warp));
  else epilogue_role<Traits>(p, smem, cta, tiles, EpilogueWarp(warp));
}

template <class Traits>
__global__ void __launch_bounds__(Traits::kPlan.threads, 1)
    dual_gemm_kernel(const __grid_constant__ Params p) {
  static_assert(sizeof(SharedStorage<Traits>) <= limits_of(Traits::kPlan.arch).max_smem_bytes,
                "stages, scale_stages: a CTA has this much shared memory");
  constexpr bool kSplit = Traits::kPlan.tile.split_k > 1;
  extern __shared__ __align__(1024) uint8_t smem_bytes[];
  auto& smem = *reinterpret_cast<SharedStorage<Traits>*>(smem_bytes);
  const int warp = warp_index();
  const Role role = role_of<Traits>(warp);
  const auto cta = Cta<Traits>::self();

  prologue<Traits>(p, smem, cta, role);
  allocate_tensor_memory<Traits>(smem, role);
  const auto tiles = scheduler<Traits>(p, smem);
  // The role is computed again: after the branches above the compiler no longer knows that it is the same for
  // all lanes of a warp.
  const Role same_role = role_of<Traits>(warp_index());
  switch (same_role) {
    case Role::kLoadWeights:
      if (!p.static_weights) ptx::griddepcontrol_wait();  // the preceding grid may write B1 and B2
      load_role<typename Traits::LoadWeights>(p, smem.rings, cta, tiles);
      break;
    case Role::kLoadActivations:
      ptx::griddepcontrol_wait();  // the preceding grid may write A
      load_role<typename Traits::LoadActivations>(p, smem.rings, cta, tiles);
      break;
    case Role::kMma:
      if (cta.leads()) mma_role<Traits>(p, smem, cta, tiles);
      break;
    case Role::kSetup: break;
    case Role::kEpilogue:
      ptx::griddepcontrol_wait();  // the preceding grid may write the alphas and use C
      if constexpr (Traits::Arithmetic::kGeneral) general_epilogue_role<Traits>(p, smem, cta, warp);
      else if constexpr (kSplit) reducing_epilogue_role<Traits>(p, smem, cta, tiles, EpilogueWarp(warp));
      else epilogue_role<Traits>(p, smem, cta, tiles, EpilogueWarp(warp));
      break;
  }
  if constexpr (kSplit)
    if (same_role != Role::kEpilogue) leave_rings();
  teardown<Traits>(smem, role);
}

}  // namespace dualgemm::sm100
