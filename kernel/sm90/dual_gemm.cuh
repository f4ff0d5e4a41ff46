// dual_gemm.cuh -- the kernel for compute capability 9.0: C = f(alpha1 * A * B1^T) * h(alpha2 * A * B2^T)
// with B1, B2 in NVFP4, which the kernel expands: to bf16 where A is bf16, else to fp16; or with B1, B2 in
// MXFP4, which it expands to FP8 for an A in FP8. It sets the CTA up, gives each warp its role, and takes the
// CTA down. The kernel is warp-specialized and persistent: a CTA computes one tile of C after another, and
// while some warps finish a tile, the others are already at the next.
//
//   load weights: B1, B2  ----full[s]--->   multiply, finish --> C
//                                                 ^
//   load activations: A   --a_full[s]--> prepare A '  ready[s]
//
// To prepare A is to expand it to fp16 (expand_role.cuh), or to put an A of 16 bits in order where it lies
// (order_role.cuh). Where a pass before the kernel has prepared A, there are no warps for that, and an A of
// many rows comes by panels, in a ring of its own (load_a.cuh).
//
//   s: stage of operands and scale factors, in shared memory; it has an empty barrier for the way back
//
// With split-K there is one tile per cluster, and its CTAs send each other their parts of the sums
// (reduce.cuh). With stream-K CTAs share tiles through global memory (stream_parts.cuh).
//
// Programmatic dependent launch (PDL): the kernel may start before the preceding grid has ended, and that
// grid may still write any of our inputs and use our outputs. So every role that reads an input or writes an
// output first executes griddepcontrol.wait, with two exceptions. Static weights (Params::static_weights),
// which no work that may still run writes, are loaded sooner, but not before the sizes of groups are known.
// Other weights are brought into L2 sooner, where a later write reaches them (prefetch_weights,
// common/load.cuh). Weights are static where the caller says so, and in every launch without PDL: there all
// preceding work has ended, except the launch's own pass over A, which writes no weights
// (host/launch/prepare_a.h). Expanders and orderers read nothing but shared memory.
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
#include "kernel/sm90/reduce.cuh"
#include "kernel/sm90/stream_parts.cuh"
#include "kernel/sm90/traits.cuh"

namespace dualgemm::sm90 {

// One thread calls this.
template <class Traits>
DUALGEMM_DEVICE void init_barriers(SharedStorage<Traits>& smem, Cta<Traits> cta) {
  constexpr Plan kPlan = Traits::kPlan;
  constexpr int kReaders = kWarpgroupWarps * kPlan.consumers.warpgroups();
  smem.rings.init_barriers(kReaders);
  if constexpr (kPlan.a16.stages > 0) {
    for (uint64_t& mbar : smem.panel_full) ptx::mbarrier_init(&mbar, 1);
    for (uint64_t& mbar : smem.panel_empty) ptx::mbarrier_init(&mbar, kReaders);
  }
  if constexpr (kPlan.a16.warps > 0)
    for (uint64_t& mbar : smem.ready) ptx::mbarrier_init(&mbar, kPlan.a16.warps);
  if constexpr (Reduction<Traits>::kThere) {
    ptx::mbarrier_init(&smem.sums_full[0], 1);
    // Bytes may land before the other threads see the barrier initialised: the phase cannot end without this
    // arrival.
    ptx::mbarrier_arrive_expect_tx(&smem.sums_full[0],
                                   Reduction<Traits>::received_bytes(static_cast<int>(cta.slice)));
  }
  ptx::fence_mbarrier_init_release_cluster();  // before TMA, or sums of another CTA, arrive on them
}

// Prepares what the roles need: barriers, the table of groups and the tensor maps. Every warp takes part and
// leaves converged. The warp that loads the weights initialises the barriers and does not wait for the other
// warps, since all of them wait for its first bytes from DRAM. It waits only for the table of groups, which
// tells it what to load.
template <class Traits>
DUALGEMM_DEVICE void prologue(const Params& p, SharedStorage<Traits>& smem, Cta<Traits> cta, Role role) {
  constexpr Plan kPlan = Traits::kPlan;
  if (role == Role::kLoadWeights && ptx::elect_sync()) init_barriers(smem, cta);
  if (role == Role::kLoadActivations && ptx::elect_sync()) {
    // Copies of weights begin so soon that a prefetch of the weights' maps would gain nothing.
    if constexpr (kPlan.prepared_a()) ptx::prefetch_tensormap(&p.prepared_a);
    else ptx::prefetch_tensormap(&p.a);
    if constexpr (kPlan.operands.a_bytes > 0) ptx::prefetch_tensormap(&p.sfa);
  }
  if constexpr (kPlan.tile.grouped) {
    if (role == Role::kLoadActivations) {
      ptx::griddepcontrol_wait();  // the preceding grid may write the sizes of the groups
      write_group_table<Traits>(p, smem.groups);
    }
  }
  if constexpr (kPlan.mxfp4_b())
    if (role == Role::kMultiply)
      smem.magnitudes.write(static_cast<int>(threadIdx.x), Consumer<Traits>::kThreads);
  __syncwarp();  // one lane worked above; what follows needs the warp together
  arrive_before_loop<Traits>();
  // Barriers and tables are written before anybody reads them.
  if (!kPlan.tile.grouped && role == Role::kLoadWeights) ptx::barrier_arrive(kCtaBarrier, kPlan.threads);
  else ptx::barrier_sync(kCtaBarrier, kPlan.threads);
}

// What a thread of the multiply role keeps from one tile to the next.
template <class Traits>
class TileComputation {
  static constexpr Plan kPlan = Traits::kPlan;

 public:
  DUALGEMM_DEVICE TileComputation(const Params& p, SharedStorage<Traits>& smem, Cta<Traits> cta, int warp)
      : p_(p),
        smem_(smem),
        cta_(cta),
        consumer_(warp),
        loop_(p.k_tiles, cta.slice),
        multiplier_(smem, consumer_),
        finish_(p, smem, cta, consumer_) {}

  // Computes the first kRows rows of a tile.
  template <int kRows>
  DUALGEMM_DEVICE void compute(const Tile& tile) {
    loop_.enter(tile);
    Sums<Traits, kRows> sums;
    // The loads of these exponents are hidden behind the multiplication.
    const RowPowers<Traits> powers(p_, consumer_, tile);
    multiplier_.multiply(sums.of_loop[0], tile, loop_);
    if constexpr (kPlan.mma.main_loops() == 2) multiplier_.multiply(sums.of_loop[1], tile, loop_);
    powers.apply(sums.of_loop[0]);
    if constexpr (Reduction<Traits>::kThere) Reducer<Traits>(smem_, cta_, consumer_).reduce(sums);
    bool finishes = consumer_.k_group() == 0;
    if constexpr (kPlan.tile.stream_k) finishes = StreamParts<Traits>(p_, consumer_).gather(sums, tile.part);
    if (finishes) finish_.finish(sums, tile);
  }

 private:
  const Params& p_;
  SharedStorage<Traits>& smem_;
  Cta<Traits> cta_;
  Consumer<Traits> consumer_;
  typename Traits::KLoop loop_;
  Multiplier<Traits> multiplier_;
  typename Traits::Finish finish_;
};

template <class Traits, class Scheduler>
DUALGEMM_DEVICE void multiply_role(const Params& p, SharedStorage<Traits>& smem, Cta<Traits> cta,
                                   Scheduler tiles, int warp) {
  constexpr int kRows = Traits::kPlan.tile.m, kFewRows = Traits::kStaged ? Traits::kPlan.few_rows() : kRows;
  TileComputation<Traits> computation(p, smem, cta, warp);
  for (Tile tile; tiles.next(tile);) {
    if (kFewRows < kRows && tile.rows <= kFewRows) computation.template compute<kFewRows>(tile);
    else computation.template compute<kRows>(tile);
  }
  Traits::Output::complete();
}

template <class Traits>
__global__ void __launch_bounds__(Traits::kPlan.threads, Traits::kPlan.ctas_per_sm)
    dual_gemm_kernel(const __grid_constant__ Params p) {
  constexpr Plan kPlan = Traits::kPlan;
  static_assert(sizeof(SharedStorage<Traits>) <= smem_limit(kPlan),
                "stages, panel_stages: a CTA has this much shared memory");
  extern __shared__ __align__(1024) uint8_t smem_bytes[];
  auto& smem = *reinterpret_cast<SharedStorage<Traits>*>(ptx::hold_address(smem_bytes));
  const int warp = warp_index();
  const auto cta = Cta<Traits>::self();
  const Role role = role_of<Traits>(warp);
  prologue(p, smem, cta, role);
  const auto tiles = scheduler_of<Traits>(p, smem.groups);
  if (role == Role::kMultiply) {
    ptx::setmaxnreg_inc<kPlan.registers.consume>();
    ptx::griddepcontrol_wait();  // the preceding grid may write the alphas and use C
    multiply_role<Traits>(p, smem, cta, tiles, warp);
    return;
  }
  ptx::setmaxnreg_dec<kPlan.registers.feed>();
  if (role == Role::kPrepare) {
    const int own = warp - kWarpgroupWarps * kPlan.consumers.warpgroups();
    if constexpr (kPlan.orders_a()) order_role<Traits>(p, smem, cta, tiles, own);
    else if constexpr (kPlan.a16.warps > 0) expand_role<Traits>(p, smem, cta, tiles, own);
  } else if (role == Role::kLoadWeights) {
    if (!p.static_weights) {
      if constexpr (!kPlan.tile.grouped)
        if (ptx::elect_sync()) prefetch_weights<Traits>(p, cta, tiles);
      __syncwarp();
      ptx::griddepcontrol_wait();  // the preceding grid may write B1 and B2
    }
    load_role<typename Traits::LoadWeights>(p, smem.rings, cta, tiles);
  } else if (role == Role::kLoadActivations) {
    ptx::griddepcontrol_wait();  // the preceding grid may write A
    if constexpr (kPlan.a16.stages > 0) load_panels_role<Traits>(p, smem, cta, tiles);
    else load_role<typename Traits::LoadActivations>(p, smem.rings, cta, tiles);
  }
  meet_cluster<Traits>();
}

}  // namespace dualgemm::sm90
