// launch_control.cu -- a persistent kernel: one tile per block, and a block that has computed its own tile
// asks for the tile of a block that has not begun (cluster launch control), two responses ahead.
//
//   warps    who         does
//   0        scheduler   thread 0: asks, as long as there is something to take over
//   1 to 2   workers     64 words of a tile, and of every tile that a response names
//
//   barrier    count         arrives                      waits      means
//   full[s]    1 and bytes   scheduler, and the response  both       response s is there
//   empty[s]   65            everybody who read it        scheduler  response s was read
#include "sim/defects/device.cuh"
#include "sim/defects/host.h"

namespace defects {
namespace in_launch_control {

constexpr int kTiles = 7, kWords = 64, kStages = 2;
constexpr uint32_t kResponseBytes = 16;

struct Board {
  alignas(16) uint8_t response[kStages * kResponseBytes + 8];
  uint64_t full[kStages], empty[kStages];
};

// Reads response n and gives it back.
template <Persistent d>
DUALGEMM_DEVICE CancelResponse take(Board& s, uint8_t* responses, int n) {
  const int i = n % kStages;
  if (d != Persistent::kNoFullWait || threadIdx.x == 0)
    mbarrier_wait(&s.full[i], d == Persistent::kParity ? 0 : n / kStages % 2);
  const bool gives_back = d != Persistent::kWorkersNotCounted || threadIdx.x == 0;
  if (d == Persistent::kArriveBeforeRead && threadIdx.x != 0) mbarrier_arrive(&s.empty[i]);
  const CancelResponse response = load_response(responses + i * kResponseBytes);
  if constexpr (d != Persistent::kNoReadFence) fence_proxy_async_shared();
  if (gives_back && (d != Persistent::kArriveBeforeRead || threadIdx.x == 0)) mbarrier_arrive(&s.empty[i]);
  return response;
}

template <Persistent d>
DUALGEMM_DEVICE void schedule(Board& s, uint8_t* responses) {
  bool more = true;
#pragma unroll 1
  for (int n = 0; more; ++n) {
    const int i = n % kStages;
    if constexpr (d != Persistent::kNoEmptyWait) mbarrier_wait(&s.empty[i], n / kStages % 2 ^ 1);
    if constexpr (d == Persistent::kNoBytes) mbarrier_arrive(&s.full[i]);
    else
      mbarrier_arrive_expect_tx(&s.full[i], d == Persistent::kFewBytes ? kResponseBytes / 2 : kResponseBytes);
    clusterlaunchcontrol_try_cancel(responses + i * kResponseBytes, &s.full[i]);
    if (d == Persistent::kLeavesEarly && n == 1) return;
    more = clusterlaunchcontrol_is_canceled(take<d>(s, responses, n));
  }
  if constexpr (d == Persistent::kCancelAfterFailure) {
    mbarrier_arrive_expect_tx(&s.full[0], kResponseBytes);
    clusterlaunchcontrol_try_cancel(responses, &s.full[0]);
  }
}

template <Persistent d>
DUALGEMM_DEVICE void work(Board& s, uint8_t* responses, uint32_t* out) {
  uint32_t tile = blockIdx.x;
  const uint32_t word = threadIdx.x - 32;
#pragma unroll 1
  for (int n = 0;; ++n) {
    if (d != Persistent::kTileDropped || n != 1) out[tile * kWords + word] = 1000 + tile * kWords + word;
    if (d == Persistent::kLeavesEarly && n == 1) return;
    const CancelResponse response = take<d>(s, responses, n);
    if constexpr (d == Persistent::kFailureQueried) tile = clusterlaunchcontrol_first_ctaid_x(response);
    if (!clusterlaunchcontrol_is_canceled(response)) return;
    if constexpr (d != Persistent::kOwnTileAgain) tile = clusterlaunchcontrol_first_ctaid_x(response);
  }
}

template <Persistent d>
__global__ void __launch_bounds__(32 + kWords) persistent_kernel(uint32_t* out) {
  __shared__ Board s;
  uint8_t* const responses = s.response + (d == Persistent::kMisaligned ? 8 : 0);
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      mbarrier_init(&s.full[i], 1);
      mbarrier_init(&s.empty[i], d == Persistent::kWorkersNotCounted ? 1 : kWords + 1);
    }
    if constexpr (d != Persistent::kNoInitFence) fence_mbarrier_init_release_cluster();
  }
  if constexpr (d != Persistent::kNoBarrier) __syncthreads();
  if (d == Persistent::kWarpCancels ? threadIdx.x < 32 : threadIdx.x == 0) schedule<d>(s, responses);
  else if (threadIdx.x >= 32) work<d>(s, responses, out);
}

template <Persistent d>
Outcome run() {
  DeviceArray<uint32_t> out(size_t(kTiles) * kWords, 0xFF);
  persistent_kernel<d><<<kTiles, 32 + kWords>>>(out.data());
  return outcome(out, [](size_t i) { return uint32_t(1000 + i); });
}

}  // namespace in_launch_control

DEFECTS_SUBJECT(Persistent, persistent, in_launch_control::run)

}  // namespace defects
