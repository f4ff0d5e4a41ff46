// sync.cuh -- synchronisation of a warp, of some warps, of a cluster and of grids that CUDA C++ has no
// built-in for (PTX ISA 9.0, 9.7.13).
#pragma once

#include "ptx/common.cuh"

namespace dualgemm::ptx {

// elect.sync _|elected, 0xffffffff;      9.7.13.14
// Returns true in exactly one lane of a converged warp, always the same one.
// ptxas knows that the branch on it has a single lane, so it emits what follows without a loop over lanes;
// a comparison with lane 0 does not tell it that.
DUALGEMM_DEVICE bool elect_sync() {
  uint32_t elected;
  asm volatile(
      "{\n\t"
      ".reg .pred elected;\n\t"
      "elect.sync _|elected, 0xffffffff;\n\t"
      "selp.u32 %0, 1, 0, elected;\n\t"
      "}"
      : "=r"(elected)::"memory");
  return elected != 0;
}

// barrier.cta.sync.aligned id, threads;      9.7.13.1
// Waits until `threads` threads of the CTA, in whole warps, have come to barrier `id`. Barrier 0 is the one
// that __syncthreads uses.
DUALGEMM_DEVICE void barrier_sync(uint32_t id, uint32_t threads) {
  asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// barrier.cta.arrive.aligned id, threads;      9.7.13.1
// Counts at barrier `id` as barrier_sync does, without waiting for the others.
DUALGEMM_DEVICE void barrier_arrive(uint32_t id, uint32_t threads) {
  asm volatile("barrier.cta.arrive.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// barrier.cta.red.or.pred.aligned any, id, threads, value;      9.7.13.1
// Waits as barrier_sync does. Returns true in all these threads if `value` is true in any of them.
DUALGEMM_DEVICE bool barrier_red_or(uint32_t id, uint32_t threads, bool value) {
  uint32_t any;
  asm volatile(
      "{\n\t"
      ".reg .pred value, any;\n\t"
      "setp.ne.u32 value, %3, 0;\n\t"
      "barrier.cta.red.or.pred.aligned any, %1, %2, value;\n\t"
      "selp.u32 %0, 1, 0, any;\n\t"
      "}"
      : "=r"(any)
      : "r"(id), "r"(threads), "r"(static_cast<uint32_t>(value))
      : "memory");
  return any != 0;
}

// setmaxnreg.dec.sync.aligned.u32 registers;      9.7.19.5
// Each thread of the warpgroup keeps `registers`, a multiple of 8, and gives the others back to the CTA.
template <int kRegisters>
DUALGEMM_DEVICE void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters) : "memory");
}

// setmaxnreg.inc.sync.aligned.u32 registers;      9.7.19.5
// Returns when each thread of the warpgroup has `registers`, a multiple of 8; waits until others have given
// back what is missing.
template <int kRegisters>
DUALGEMM_DEVICE void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters) : "memory");
}

// griddepcontrol.wait;      9.7.13.13
// Returns when the grids that this grid depends on have completed and their writes are visible. In a launch
// without PDL it returns at once.
DUALGEMM_DEVICE void griddepcontrol_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// griddepcontrol.launch_dependents;      9.7.13.13
// Lets the next grid of the stream start, once every CTA of this grid has executed it or ended.
DUALGEMM_DEVICE void griddepcontrol_launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// barrier.cluster.arrive.relaxed.aligned;      9.7.13.3
// Orders nothing but what fence.mbarrier_init has released.
DUALGEMM_DEVICE void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

// barrier.cluster.arrive.release.aligned;      9.7.13.3
DUALGEMM_DEVICE void cluster_arrive_release() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

// barrier.cluster.wait.acquire.aligned;      9.7.13.3
DUALGEMM_DEVICE void cluster_wait_acquire() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

}  // namespace dualgemm::ptx
