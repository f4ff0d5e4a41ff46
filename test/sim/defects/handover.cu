// handover.cu -- words that ordinary stores wrote and a bulk copy takes: handed from lanes to one of these
// lanes, and from one CTA to another. The order of the two may be weaker than it has to be, the proxy fence
// between them may be missing, or both.
#include "sim/defects/device.cuh"
#include "sim/defects/host.h"

namespace defects {
namespace in_handover {

// The lanes of a warp write a tile, and one of them stores it.
template <LaneHandover d>
__global__ void lanes_kernel(uint32_t* out) {
  __shared__ alignas(128) uint32_t tile[32];
  tile[lane_index()] = 1000 + lane_index();
  if constexpr (d != LaneHandover::kElectAndNoFence) fence_proxy_async_shared();
  if constexpr (d == LaneHandover::kNone) __syncwarp();
  if (!elect_sync()) return;
  bulk_store(out, smem_u32(tile), sizeof tile);
  bulk_commit_group();
  bulk_wait_group<0>();
}

template <LaneHandover d>
Outcome run_lanes() {
  DeviceArray<uint32_t> out(32);
  lanes_kernel<d><<<1, 32>>>(out.data());
  return outcome(out, [](size_t i) { return uint32_t(1000 + i); });
}

DUALGEMM_DEVICE bool try_wait_relaxed_cluster(uint64_t* barrier) {
  uint32_t done;
  asm volatile(
      "{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 p, [%1], 0;\n\t"
      "selp.u32 %0, 1, 0, p;\n\t}"
      : "=r"(done)
      : "r"(smem_u32(barrier))
      : "memory");
  return done != 0;
}

// CTA 1 writes words to global memory and arrives on a barrier of CTA 0, which copies them into its shared
// memory.
template <Handover d>
__global__ void __cluster_dims__(2, 1, 1) ctas_kernel(uint32_t* words, uint32_t* out) {
  __shared__ alignas(128) uint32_t tile[32];
  __shared__ uint64_t written, full;
  constexpr bool kDefaultScope = d == Handover::kDefaultScope || d == Handover::kDefaultScopeAndNoFence;
  constexpr bool kRelaxed = d == Handover::kRelaxedWait || d == Handover::kRelaxedWaitAndNoFence;
  constexpr bool kFence = d != Handover::kDefaultScopeAndNoFence && d != Handover::kRelaxedWaitAndNoFence;
  if (threadIdx.x == 0) {
    mbarrier_init(&written, 32);
    mbarrier_init(&full, 1);
    fence_mbarrier_init_release_cluster();
  }
  __syncwarp();
  cluster_sync();
  if (cluster_ctarank() == 1) {
    words[lane_index()] = 1000 + lane_index();
    if constexpr (d == Handover::kFenceByWriters) fence_proxy_async();
    if constexpr (kDefaultScope) mbarrier_arrive_cluster_default(shared_of(&written, 0));
    else mbarrier_arrive_cluster(shared_of(&written, 0));
    return;
  }
  if (threadIdx.x == 0) {
    if constexpr (kRelaxed)
      while (!try_wait_relaxed_cluster(&written)) {
      }
    else mbarrier_wait_cluster(&written, 0);
    if constexpr (kFence && d != Handover::kFenceByWriters) fence_proxy_async();
    mbarrier_arrive_expect_tx(&full, sizeof tile);
    bulk_load(tile, words, sizeof tile, &full);
  }
  mbarrier_wait(&full, 0);
  out[lane_index()] = *static_cast<volatile uint32_t*>(&tile[lane_index()]);
}

template <Handover d>
Outcome run_ctas() {
  DeviceArray<uint32_t> words(32), out(32);
  ctas_kernel<d><<<2, 32>>>(words.data(), out.data());
  return outcome(out, [](size_t i) { return uint32_t(1000 + i); });
}

}  // namespace in_handover

DEFECTS_SUBJECT(LaneHandover, lane_handover, in_handover::run_lanes)
DEFECTS_SUBJECT(Handover, handover, in_handover::run_ctas)

}  // namespace defects
