// tcgen05_mma.cuh -- the block-scaled matrix multiply, the commit that reports its completion, and the fences
// that order tcgen05 work across threads (PTX ISA 9.0, 9.7.16.10 to 9.7.16.12). One thread issues each mma
// and its commit.
#pragma once

#include "ptx/common.cuh"

namespace dualgemm::ptx {

// The collector is a buffer of the tensor core for the A operand. An mma may leave nothing there (kDefault:
// no qualifier means discard), keep its A there for the next mma (kFill), or read the A that the mma before
// it has left there, which has to be its own A, and then release it (kLastUse).
enum class Collector { kDefault, kFill, kLastUse };

// tcgen05.mma.cta_group::G.kind::mxf4nvf4.block_scale.block16{.collector::a::fill, .collector::a::lastuse}
//     [d], a, b, idesc, [sfa], [sfb], accumulate;      9.7.16.10.9.1
// Computes D = A * B, or D = A * B + D when `accumulate`, for K = 64 elements of e2m1
// with one ue4m3 scale per 16 of them.
template <int kCtaGroup, Collector kCollector = Collector::kDefault>
DUALGEMM_DEVICE void tcgen05_mma_mxf4nvf4_block16(uint32_t d_tmem, uint64_t a_descriptor,
                                                  uint64_t b_descriptor, uint32_t instruction_descriptor,
                                                  uint32_t sfa_tmem, uint32_t sfb_tmem, bool accumulate) {
#define DUALGEMM_MMA(collector)                                                                        \
  asm volatile(                                                                                        \
      "{\n\t"                                                                                          \
      ".reg .pred accumulate;\n\t"                                                                     \
      "setp.ne.b32 accumulate, %6, 0;\n\t"                                                             \
      "tcgen05.mma.cta_group::%7.kind::mxf4nvf4.block_scale.block16" collector                         \
      " [%0], %1, %2, %3, [%4], [%5], accumulate;\n\t"                                                 \
      "}" ::"r"(d_tmem),                                                                               \
      "l"(a_descriptor), "l"(b_descriptor), "r"(instruction_descriptor), "r"(sfa_tmem), "r"(sfb_tmem), \
      "r"(static_cast<uint32_t>(accumulate)), "n"(kCtaGroup)                                           \
      : "memory")
  if constexpr (kCollector == Collector::kDefault) DUALGEMM_MMA("");
  else if constexpr (kCollector == Collector::kFill) DUALGEMM_MMA(".collector::a::fill");
  else DUALGEMM_MMA(".collector::a::lastuse");
#undef DUALGEMM_MMA
}

// tcgen05.commit.cta_group::G.mbarrier::arrive::one.shared::cluster.b64 [mbar];      9.7.16.12.1
// Arrives on `mbar` once everything this thread issued before it (mma and cp) has completed. A shared::cta
// address used as shared::cluster names the executing CTA.
template <int kCtaGroup>
DUALGEMM_DEVICE void tcgen05_commit(uint64_t* mbar) {
  asm volatile(
      "tcgen05.commit.cta_group::%1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(smem_u32(mbar)),
      "n"(kCtaGroup)
      : "memory");
}

// tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64
//     [mbar], ranks;      9.7.16.12.1
// Arrives as tcgen05_commit does, at the same offset in every CTA whose bit is set in `ranks`.
DUALGEMM_DEVICE void tcgen05_commit_multicast(uint64_t* mbar, uint16_t ranks) {
  asm volatile(
      "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::
          "r"(smem_u32(mbar)),
      "h"(ranks)
      : "memory");
}

// tcgen05.fence::before_thread_sync;      9.7.16.11.1
// Orders this thread's earlier tcgen05 operations before what it does next to synchronise with other threads.
DUALGEMM_DEVICE void tcgen05_fence_before_thread_sync() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}

// tcgen05.fence::after_thread_sync;      9.7.16.11.1
// Orders this thread's later tcgen05 operations after the synchronisation it has just done.
DUALGEMM_DEVICE void tcgen05_fence_after_thread_sync() {
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

}  // namespace dualgemm::ptx
