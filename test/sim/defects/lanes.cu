// lanes.cu -- the lanes of one warp: each writes a word of shared memory and reads its neighbour's.
#include "sim/defects/device.cuh"
#include "sim/defects/host.h"

namespace defects {
namespace in_lanes {

template <Lanes d>
__global__ void lanes_kernel(uint32_t* out) {
  __shared__ uint32_t words[32];
  const uint32_t lane = lane_index();
  words[lane] = 1000 + lane;
  if constexpr (d == Lanes::kElectAsBarrier) elect_sync();
  else if constexpr (d == Lanes::kShuffleAsBarrier) out[32 + lane] = __shfl_xor_sync(0xFFFFFFFF, lane, 1);
  else if constexpr (d != Lanes::kNoSyncwarp) __syncwarp();
  out[lane] = *static_cast<volatile uint32_t*>(&words[(lane + 1) % 32]);
  if constexpr (d == Lanes::kGroupMasks || d == Lanes::kShuffleAcrossGroups) {
    const uint32_t group = lane & 1 ? 0xAAAAAAAA : 0x55555555;
    out[32 + lane] = __shfl_sync(group, lane, lane ^ (d == Lanes::kGroupMasks ? 2 : 1));
  }
  if constexpr (d == Lanes::kSameWord) out[32] = lane;
  // Only half of the warp reaches this aligned barrier.
  if (d != Lanes::kDivergentAligned || lane < 16) asm volatile("barrier.sync.aligned 0;" ::: "memory");
  __syncwarp();
}

template <Lanes d>
Outcome run() {
  DeviceArray<uint32_t> out(64);
  lanes_kernel<d><<<1, 32>>>(out.data());
  return outcome(out, [](size_t i) {
    const uint32_t other = uint32_t(i - 32);
    const uint32_t shuffled = d == Lanes::kShuffleAsBarrier ? other ^ 1
                              : d == Lanes::kGroupMasks     ? other ^ 2
                                                            : 0;
    return i < 32 ? uint32_t(1000 + (i + 1) % 32) : shuffled;
  });
}

}  // namespace in_lanes

DEFECTS_SUBJECT(Lanes, lanes, in_lanes::run)

}  // namespace defects
