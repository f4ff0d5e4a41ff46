// barriers.cu -- named barriers, a mailbox between a producer and three readers, and the register pool.
#include "sim/defects/device.cuh"
#include "sim/defects/host.h"

namespace defects {
namespace in_barriers {

constexpr int kRounds = 4;

// One warp writes a word; four warps, the writer among them, meet at a barrier and read it. Before the next
// word the writer waits at a second barrier, where the readers only arrive. A fifth warp has left.
template <Named d>
__global__ void named_kernel(uint32_t* out) {
  __shared__ uint32_t word;
  if (warp_index() == 4) return;
#pragma unroll 1
  for (uint32_t round = 0; round < kRounds; ++round) {
    if (threadIdx.x == 0) word = 1000 + round;
    constexpr uint32_t kThreads = d == Named::kCountTooHigh ? 160 : 128;
    const uint32_t asked = d == Named::kMixedCounts && warp_index() == 3 ? 96 : kThreads;
    if (d == Named::kMixedForms && warp_index() == 3) bar_red(1, asked);
    else if constexpr (d != Named::kNoBarrier) bar_sync(1, asked);
    out[round * 128 + threadIdx.x] = *static_cast<volatile uint32_t*>(&word);
    if (warp_index() == 0 && d != Named::kWriterOnlyArrives) bar_sync(2, 128);
    else bar_arrive(2, 128);
  }
}

template <Named d>
Outcome run_named() {
  DeviceArray<uint32_t> out(kRounds * 128);
  named_kernel<d><<<1, 160>>>(out.data());
  return outcome(out, [](size_t i) { return uint32_t(1000 + i / 128); });
}

// Warp 0 hands tile numbers to warps 1 to 3 through one word.
//   full   1 arrival, the producer
//   free   3 arrivals, lane 0 of every reader
// The defect: only one reader gives the mailbox back.
template <Mailbox d>
__global__ void mailbox_kernel(uint32_t* out) {
  __shared__ uint32_t tile;
  __shared__ uint64_t full, free;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    mbarrier_init(&free, d == Mailbox::kReadersNotAwaited ? 1 : 3);
    fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  if (warp_index() == 0) {
    if (lane_index() == 0)
#pragma unroll 1
      for (uint32_t round = 0; round < kRounds; ++round) {
        mbarrier_wait(&free, (round & 1) ^ 1);
        tile = 1000 + round;
        mbarrier_arrive(&full);
      }
    return;
  }
#pragma unroll 1
  for (uint32_t round = 0; round < kRounds; ++round) {
    mbarrier_wait(&full, round & 1);
    out[round * 96 + threadIdx.x - 32] = *static_cast<volatile uint32_t*>(&tile);
    __syncwarp();
    const bool arrives = d != Mailbox::kReadersNotAwaited || warp_index() == 1;
    if (arrives && lane_index() == 0) mbarrier_arrive(&free);
  }
}

template <Mailbox d>
Outcome run_mailbox() {
  DeviceArray<uint32_t> out(kRounds * 96);
  mailbox_kernel<d><<<1, 128>>>(out.data());
  return outcome(out, [](size_t i) { return uint32_t(1000 + i / 96); });
}

// Four warpgroups start with 128 registers a thread, the whole register file: two give back all but 40, two
// take 216, which is what was given back.
template <Registers d>
__global__ void __maxnreg__(128) registers_kernel(uint32_t* out) {
  if (warp_index() < 8) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
  } else {
    if constexpr (d == Registers::kPoolExceeded) asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    else asm volatile("setmaxnreg.inc.sync.aligned.u32 216;");
  }
  out[threadIdx.x] = 1000 + threadIdx.x;
}

template <Registers d>
Outcome run_registers() {
  DeviceArray<uint32_t> out(512);
  registers_kernel<d><<<1, 512>>>(out.data());
  return outcome(out, [](size_t i) { return uint32_t(1000 + i); });
}

}  // namespace in_barriers

DEFECTS_SUBJECT(Named, named_barrier, in_barriers::run_named)
DEFECTS_SUBJECT(Mailbox, mailbox, in_barriers::run_mailbox)
DEFECTS_SUBJECT(Registers, register_pool, in_barriers::run_registers)

}  // namespace defects
