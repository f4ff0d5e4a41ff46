// smem_tma.cu -- a ring of two stages: one thread fills them with bulk copies (two of 128 bytes a stage),
// two warps read one half each.
//
//   barrier   count            arrives                       waits           means
//   full[s]   1 and 256 bytes  producer, and the copies      both consumers  stage s is filled
//   empty[s]  2                lane 0 of each consumer warp  producer        stage s may be filled again
#include "sim/defects/device.cuh"
#include "sim/defects/host.h"

namespace defects {
namespace in_smem_tma {

constexpr int kStages = 2, kBlocks = 6, kWords = 64;

template <Ring d>
__global__ void ring_kernel(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(128) uint32_t stage[kStages][kWords];
  __shared__ uint64_t full[kStages], empty[kStages];
  constexpr uint32_t kConsumers = d == Ring::kEmptyCountHigh ? 3 : d == Ring::kEmptyCountLow ? 1 : 2;
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      mbarrier_init(&full[s], 1);
      mbarrier_init(&empty[s], kConsumers);
    }
    if constexpr (d == Ring::kInitTwice) mbarrier_init(&full[0], 1);
    fence_mbarrier_init_release_cluster();
    if constexpr (d == Ring::kDataOnBarrier) *static_cast<volatile uint64_t*>(&full[1]) = 0;
  }
  if constexpr (d != Ring::kNoBarrierAfterInit) __syncthreads();

  if (warp_index() == 0) {
    const bool issues = d == Ring::kWholeWarpIssues || lane_index() == 0;
    if (issues) {
#pragma unroll 1
      for (int block = 0; block < kBlocks; ++block) {
        const int s = block % kStages;
        const uint32_t parity = block / kStages % 2;
        constexpr uint32_t kFirst = d == Ring::kProducerParity ? 0 : 1;
        if constexpr (d != Ring::kNoEmptyWait) mbarrier_wait(&empty[s], parity ^ kFirst);
        constexpr bool kHalf = d == Ring::kFewBytes || d == Ring::kSplitExpect;
        constexpr uint32_t kBytes = kHalf ? 128 : d == Ring::kManyBytes ? 384 : 256;
        if constexpr (d == Ring::kSplitExpect) mbarrier_expect_tx(&full[s], 128);
        if constexpr (d == Ring::kArriveWithoutBytes) mbarrier_arrive(&full[s]);
        else if constexpr (d != Ring::kExpectAfterCopy) mbarrier_arrive_expect_tx(&full[s], kBytes);
        bulk_load(&stage[s][0], in + block * kWords, 128, &full[s]);
        bulk_load(&stage[s][32], in + block * kWords + 32, 128, &full[s]);
        if constexpr (d == Ring::kExpectAfterCopy) mbarrier_arrive_expect_tx(&full[s], kBytes);
      }
    }
    return;
  }

  const uint32_t half = (warp_index() - 1) * 32;
  constexpr int kRead = d == Ring::kTailDropped ? kBlocks - 1 : kBlocks;
#pragma unroll 1
  for (int block = 0; block < kRead; ++block) {
    const int s = block % kStages;
    constexpr uint32_t kFirst = d == Ring::kConsumerParity ? 1 : 0;
    const uint32_t parity = d == Ring::kParityNotFlipped ? 0 : block / kStages % 2;
    if constexpr (d == Ring::kClusterScope) mbarrier_wait_cluster(&full[s], parity);
    else if constexpr (d != Ring::kNoFullWait) mbarrier_wait(&full[s], parity ^ kFirst);
    const int from = d == Ring::kWrongStage ? 1 - s : s;
    const uint32_t value = *static_cast<volatile uint32_t*>(&stage[from][half + lane_index()]);
    out[block * kWords + half + lane_index()] = value;
    if constexpr (d != Ring::kNoProxyFence) fence_proxy_async_shared();
    if constexpr (d != Ring::kArriveBeforeSyncwarp) __syncwarp();
    if (lane_index() == 0) mbarrier_arrive(&empty[s]);
  }
}

template <Ring d>
Outcome run() {
  DeviceArray<uint32_t> in(counting(kBlocks * kWords)), out(kBlocks * kWords);
  ring_kernel<d><<<1, 96>>>(in.data(), out.data());
  return outcome(out, [](size_t i) { return uint32_t(1000 + i); });
}

}  // namespace in_smem_tma

DEFECTS_SUBJECT(Ring, ring, in_smem_tma::run)

}  // namespace defects
