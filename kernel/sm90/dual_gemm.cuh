// dual_gemm.cuh -- the kernel for compute capability 9.0: C = f(alpha1 * A * B1^T) * h(alpha2 * A * B2^T)
// with B1, B2 in NVFP4, which are expanded on the way: to fp16, where A is in NVFP4, too, or in fp16, and to
// bf16 where A is. It sets the CTA up, gives each warp its role, and takes the CTA down. The kernel is
// warp-specialized and persistent: a CTA computes one tile of C after another, and while some warps finish a
// tile, the others are already at the next.
//
//   load weights: B1, B2  --.
//                           |--full[s], scale_full[q]-->   multiply, finish --> C
//   load activations: A   --'              |                     ^
//                                          '--> expand A --------'  expanded_full[e]
//
// Where A has 16 bits, load activations fills the stages e itself (load_a.cuh), and the expanders are
// orderers, which put it in order there (order_role.cuh). Where a pass before has done the work of either,
// there are none.
//
//   s: stage of operands, q: stage of scale factors, e: stage of A in 16 bits, all in shared memory; each has
//   an empty barrier for the way back
//
// With split-K there is one tile per cluster, and its CTAs exchange their parts of the sums (exchange.cuh).
//
// Programmatic dependent launch (PDL): the kernel may start before the preceding grid has ended, and that
// grid may still write any of our inputs and use our outputs. So every role that reads an input or writes an
// output first executes griddepcontrol.wait, with one exception: weights that the caller says to be static
// are loaded sooner, but not before the sizes of groups are known. Expanders and orderers read nothing but
// shared memory.
//
// common/rings.cuh and shared_storage.cuh have the barriers, roles.cuh the warps, common/groups.cuh the table
// of groups.
#pragma once

#include "kernel/common/groups.cuh"
#include "kernel/common/load.cuh"
#include "kernel/sm90/expand_role.cuh"
#include "kernel/sm90/load_a.cuh"
#include "kernel/sm90/multiply.cuh"
#include "kernel/sm90/order_role.cuh"
#include "kernel/sm90/traits.cuh"

namespace dualgemm::sm90 {

// Prepares what the roles need: barriers, the table of groups and the first prefetches. Every warp takes part
// and leaves converged.
template <class Traits>
DUALGEMM_DEVICE void prologue(const Params& p, SharedStorage<Traits>& smem, Role role) {
  constexpr Plan kPlan = Traits::kPlan;
  constexpr bool kInRings = kPlan.operands.a_bytes > 0;  // A, for the expanders
  // Arrivals by which a stage of A is full: of all orderers, of the expanders of a half, or of the load role.
  constexpr int kFills = kPlan.orders_a()     ? kPlan.expand.warps
                         : kPlan.expanded_a() ? 1
                                              : kPlan.expand.warps / 2;
  if (role == Role::kLoadActivations && ptx::elect_sync()) {
    prefetch_tensor_maps(p);
    if constexpr (kPlan.expanded_a()) ptx::prefetch_tensormap(&p.expanded);
  }
  if (role == Role::kLoadWeights && ptx::elect_sync()) {
    // Warps that multiply and expanders read both rings. An A that comes in 16 bits is not in them.
    smem.rings.init_barriers(
        kWarpgroupWarps * kPlan.consumers.warpgroups() + (kInRings ? kPlan.expand.warps : 0),
        kInRings ? kLoadRoles : 1);
    for (uint64_t& mbar : smem.expanded_full) ptx::mbarrier_init(&mbar, kFills);
    for (uint64_t& mbar : smem.expanded_empty)
      ptx::mbarrier_init(&mbar,
                         kWarpgroupWarps * kPlan.consumers.column_groups * kPlan.consumers.tile_groups());
    if constexpr (kPlan.orders_a())
      for (uint64_t& mbar : smem.unordered.full) ptx::mbarrier_init(&mbar, 1);
    ptx::fence_mbarrier_init_release_cluster();  // before TMA arrives on them
  }
  if constexpr (kPlan.tile.grouped) {
    if (role == Role::kLoadActivations) {
      ptx::griddepcontrol_wait();  // the preceding grid may write the sizes of the groups
      write_group_table<Traits>(p, smem.groups);
    }
  }
  __syncwarp();     // one lane worked above; what follows needs the warp together
  __syncthreads();  // barriers and table are written before anybody reads them
  // The other CTAs of the cluster run before any of them is sent sums; that they do is waited for there. The
  // arrival may be relaxed: nothing that was written here is read in another CTA.
  if constexpr (kPlan.cluster_size() > 1) ptx::cluster_arrive_relaxed();
}

template <class Traits, class Scheduler>
DUALGEMM_DEVICE void multiply_role(const Params& p, SharedStorage<Traits>& smem, Cta<Traits> cta,
                                   Scheduler tiles, int warp) {
  constexpr Plan kPlan = Traits::kPlan;
  const Consumer<Traits> consumer(warp);
  const typename Traits::KLoop loop(p.k_tiles, cta.slice);
  Multiplier<Traits> multiplier(smem, consumer);
  typename Traits::Finish finish(p, smem, cta, consumer);
  Accumulators<Traits> sums;
  for (Tile tile; tiles.next(tile);) {
    multiplier.multiply(sums, tile, loop);
    // The other CTAs of the cluster run: the prologue says so.
    if constexpr (kPlan.cluster_size() > 1) ptx::cluster_wait_acquire();
    finish.finish(sums, tile);
  }
  Traits::Output::complete();
}

template <class Traits>
__global__ void __launch_bounds__(Traits::kPlan.threads, Traits::kPlan.ctas_per_sm)
    dual_gemm_kernel(const __grid_constant__ Params p) {
  constexpr Plan kPlan = Traits::kPlan;
  static_assert(sizeof(SharedStorage<Traits>) <= smem_limit(kPlan),
                "stages, scale_stages, expanded_stages: a CTA has this much shared memory");
  constexpr bool kSplit = kPlan.tile.split_k > 1;
  extern __shared__ __align__(1024) uint8_t smem_bytes[];
  auto& smem = *reinterpret_cast<SharedStorage<Traits>*>(smem_bytes);
  const int warp = warp_index();
  const auto cta = Cta<Traits>::self();
  const Role role = role_of<Traits>(warp);
  prologue(p, smem, role);
  const auto tiles = scheduler_of<Traits>(p, smem.groups);
  if (role == Role::kMultiply) {
    ptx::setmaxnreg_inc<kPlan.registers.consume>();
    ptx::griddepcontrol_wait();  // the preceding grid may write the alphas and use C
    multiply_role<Traits>(p, smem, cta, tiles, warp);
    return;
  }
  ptx::setmaxnreg_dec<kPlan.registers.feed>();
  if (role == Role::kExpand) {
    const int own = warp - kWarpgroupWarps * kPlan.consumers.warpgroups();
    if constexpr (kPlan.orders_a()) order_role<Traits>(p, smem, cta, tiles, own);
    else if constexpr (!kPlan.expanded_a()) expand_role<Traits>(p, smem, cta, tiles, own);
  } else if (role == Role::kLoadWeights) {
    if (!p.static_weights) ptx::griddepcontrol_wait();  // the preceding grid may write B1 and B2
    load_role<typename Traits::LoadWeights>(p, smem.rings, cta, tiles);
  } else if (role == Role::kLoadActivations) {
    ptx::griddepcontrol_wait();  // the preceding grid may write A
    if constexpr (kPlan.operands.a_bytes > 0)
      load_role<typename Traits::LoadActivations>(p, smem.rings, cta, tiles);
    else load_a_role<Traits>(p, smem, cta, tiles);
  }
  // With split-K all threads meet the cluster twice: before sums are sent, after the arrival of the prologue,
  // and when they have been sent. There is one tile, so that those that multiply do so once.
  if constexpr (kSplit) {
    ptx::cluster_wait_acquire();
    FinishExchanged<Traits>::meet_cluster();
  }
}

}  // namespace dualgemm::sm90
