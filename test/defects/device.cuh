// device.cuh -- the PTX instructions the fixtures are made of, one function each, named after it. A fixture
// is read for the order of these calls; nothing here waits, elects or fences on its own, except that a wait
// is a loop around try_wait.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace defects {

#define DEFECTS_DEVICE __device__ __forceinline__

DEFECTS_DEVICE uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}
DEFECTS_DEVICE uint32_t warp_index() { return threadIdx.x / 32; }
DEFECTS_DEVICE uint32_t lane_index() { return threadIdx.x % 32; }
DEFECTS_DEVICE uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
// Shared address of the same variable in CTA `rank` of the cluster.
DEFECTS_DEVICE uint32_t shared_of(const void* pointer, uint32_t rank) {
  uint32_t out;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(out) : "r"(shared_address(pointer)), "r"(rank));
  return out;
}

// ---- mbarrier ---------------------------------------------------------------------------------------------
DEFECTS_DEVICE void mbarrier_init(uint64_t* barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count)
               : "memory");
}
DEFECTS_DEVICE void mbarrier_arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
DEFECTS_DEVICE void mbarrier_arrive_relaxed(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}
DEFECTS_DEVICE void mbarrier_arrive_expect_tx(uint64_t* barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(bytes)
               : "memory");
}
DEFECTS_DEVICE void mbarrier_expect_tx(uint64_t* barrier, uint32_t bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(bytes)
               : "memory");
}
DEFECTS_DEVICE void mbarrier_arrive_cluster(uint32_t barrier) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// The scope that is meant when none is written.
DEFECTS_DEVICE void mbarrier_arrive_cluster_default(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}
DEFECTS_DEVICE bool mbarrier_try_wait(uint64_t* barrier, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
      "selp.u32 %0, 1, 0, p;\n\t}"
      : "=r"(done)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return done != 0;
}
DEFECTS_DEVICE bool mbarrier_try_wait_cluster(uint64_t* barrier, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n\t"
      "selp.u32 %0, 1, 0, p;\n\t}"
      : "=r"(done)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return done != 0;
}
DEFECTS_DEVICE bool mbarrier_try_wait_relaxed(uint64_t* barrier, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 p, [%1], %2;\n\t"
      "selp.u32 %0, 1, 0, p;\n\t}"
      : "=r"(done)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return done != 0;
}
DEFECTS_DEVICE void mbarrier_wait(uint64_t* barrier, uint32_t parity) {
  while (!mbarrier_try_wait(barrier, parity)) {
  }
}
DEFECTS_DEVICE void mbarrier_wait_cluster(uint64_t* barrier, uint32_t parity) {
  while (!mbarrier_try_wait_cluster(barrier, parity)) {
  }
}
DEFECTS_DEVICE void mbarrier_wait_relaxed(uint64_t* barrier, uint32_t parity) {
  while (!mbarrier_try_wait_relaxed(barrier, parity)) {
  }
}

// ---- fences and barriers ----------------------------------------------------------------------------------
DEFECTS_DEVICE void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
DEFECTS_DEVICE void fence_proxy_async() { asm volatile("fence.proxy.async;" ::: "memory"); }
DEFECTS_DEVICE void fence_proxy_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
DEFECTS_DEVICE void fence_proxy_async_global() { asm volatile("fence.proxy.async.global;" ::: "memory"); }
DEFECTS_DEVICE void bar_sync(uint32_t id, uint32_t threads) {
  asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
DEFECTS_DEVICE void bar_arrive(uint32_t id, uint32_t threads) {
  asm volatile("barrier.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
DEFECTS_DEVICE uint32_t bar_red(uint32_t id, uint32_t threads) {
  uint32_t count;
  asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %2, 0;\n\tbarrier.red.popc.u32 %0, %1, %2, p;\n\t}"
               : "=r"(count)
               : "r"(id), "r"(threads)
               : "memory");
  return count;
}
DEFECTS_DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
DEFECTS_DEVICE void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
DEFECTS_DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
DEFECTS_DEVICE void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}
DEFECTS_DEVICE bool elect_one() {
  uint32_t leader;
  asm volatile("{\n\t.reg .pred p;\n\telect.sync _|p, 0xFFFFFFFF;\n\tselp.u32 %0, 1, 0, p;\n\t}"
               : "=r"(leader)::"memory");
  return leader != 0;
}

// ---- copies -----------------------------------------------------------------------------------------------
DEFECTS_DEVICE void bulk_load(void* to, const void* from, uint32_t bytes, uint64_t* barrier) {
  asm volatile("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(barrier))
               : "memory");
}
DEFECTS_DEVICE void bulk_load_multicast(void* to, const void* from, uint32_t bytes, uint64_t* barrier,
                                        uint16_t ranks) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1], %2, [%3], %4;" ::"r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(barrier)), "h"(ranks)
      : "memory");
}
DEFECTS_DEVICE void bulk_store(void* to, const void* from, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(shared_address(from)), "r"(bytes)
               : "memory");
}
DEFECTS_DEVICE void tensor_load(void* to, const CUtensorMap* map, int x, int y, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::
          "r"(shared_address(to)),
      "l"(map), "r"(x), "r"(y), "r"(shared_address(barrier))
      : "memory");
}
// Into this CTA, signalling the barrier of the same name in the even CTA of the pair.
DEFECTS_DEVICE void tensor_load_pair(void* to, const CUtensorMap* map, int x, int y, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(to)),
      "l"(map), "r"(x), "r"(y), "r"(shared_address(barrier) & 0xFEFFFFFF)
      : "memory");
}
DEFECTS_DEVICE void tensor_store(const CUtensorMap* map, int x, int y, const void* from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
               "r"(x), "r"(y), "r"(shared_address(from))
               : "memory");
}
DEFECTS_DEVICE void bulk_commit_group() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
DEFECTS_DEVICE void bulk_wait_group() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
DEFECTS_DEVICE void bulk_wait_group_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
DEFECTS_DEVICE void cp_async_4(void* to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(to)), "l"(from) : "memory");
}
DEFECTS_DEVICE void cp_async_wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }
DEFECTS_DEVICE void st_async(uint32_t to, uint32_t value, uint32_t barrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(to),
               "r"(value), "r"(barrier)
               : "memory");
}
DEFECTS_DEVICE void store_cluster(uint32_t to, uint32_t value) {
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(to), "r"(value) : "memory");
}

// ---- flags in global memory -------------------------------------------------------------------------------
DEFECTS_DEVICE void store_release_gpu(uint32_t* to, uint32_t value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
DEFECTS_DEVICE void store_release_cta(uint32_t* to, uint32_t value) {
  asm volatile("st.release.cta.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
DEFECTS_DEVICE void store_relaxed_gpu(uint32_t* to, uint32_t value) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
DEFECTS_DEVICE uint32_t load_acquire_gpu(const uint32_t* from) {
  uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}
DEFECTS_DEVICE uint32_t load_relaxed_gpu(const uint32_t* from) {
  uint32_t value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}

// ---- tensor core ------------------------------------------------------------------------------------------
template <int kGroup>
DEFECTS_DEVICE void tcgen05_alloc(uint32_t* to, uint32_t columns) {
  asm volatile("tcgen05.alloc.cta_group::%0.sync.aligned.shared::cta.b32 [%1], %2;" ::"n"(kGroup),
               "r"(shared_address(to)), "r"(columns)
               : "memory");
}
template <int kGroup>
DEFECTS_DEVICE void tcgen05_dealloc(uint32_t base, uint32_t columns) {
  asm volatile("tcgen05.dealloc.cta_group::%0.sync.aligned.b32 %1, %2;" ::"n"(kGroup), "r"(base), "r"(columns)
               : "memory");
}
template <int kGroup>
DEFECTS_DEVICE void tcgen05_relinquish() {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::%0.sync.aligned;" ::"n"(kGroup) : "memory");
}
template <int kGroup>
DEFECTS_DEVICE void tcgen05_cp_scales(uint32_t to, uint64_t from) {
  asm volatile("tcgen05.cp.cta_group::%0.32x128b.warpx4 [%1], %2;" ::"n"(kGroup), "r"(to), "l"(from)
               : "memory");
}
template <int kGroup>
DEFECTS_DEVICE void tcgen05_mma(uint32_t d, uint64_t a, uint64_t b, uint32_t shape, uint32_t sfa,
                                uint32_t sfb, bool accumulate) {
  asm volatile(
      "{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %7, 0;\n\t"
      "tcgen05.mma.cta_group::%0.kind::mxf4nvf4.block_scale.block16 [%1], %2, %3, %4, [%5], [%6], p;\n\t}" ::
          "n"(kGroup),
      "r"(d), "l"(a), "l"(b), "r"(shape), "r"(sfa), "r"(sfb), "r"(static_cast<uint32_t>(accumulate))
      : "memory");
}
DEFECTS_DEVICE void tcgen05_commit(uint64_t* barrier) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
                   shared_address(barrier))
               : "memory");
}
DEFECTS_DEVICE void tcgen05_commit_pair(uint64_t* barrier, uint16_t ranks) {
  asm volatile(
      "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::
          "r"(shared_address(barrier)),
      "h"(ranks)
      : "memory");
}
DEFECTS_DEVICE void tcgen05_fence_before() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}
DEFECTS_DEVICE void tcgen05_fence_after() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }
DEFECTS_DEVICE void tcgen05_wait_ld() { asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }
DEFECTS_DEVICE void tcgen05_wait_st() { asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"); }
DEFECTS_DEVICE void tcgen05_ld_x8(uint32_t (&out)[8], uint32_t from) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3]), "=r"(out[4]), "=r"(out[5]),
                 "=r"(out[6]), "=r"(out[7])
               : "r"(from)
               : "memory");
}
DEFECTS_DEVICE void tcgen05_st_x4(uint32_t to, uint32_t value) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x4.b32 [%0], {%1, %1, %1, %1};" ::"r"(to), "r"(value)
               : "memory");
}

// Descriptors of shared memory (PTX ISA, "Matrix descriptor"): start address, bytes between groups of 8 rows,
// and the swizzle: 0 none, 4 64-byte, 6 32-byte.
DEFECTS_DEVICE uint64_t matrix_descriptor(const void* start, uint32_t stride, uint64_t swizzle) {
  return (shared_address(start) & 0x3FFFF) >> 4 | uint64_t(stride >> 4) << 32 | uint64_t(1) << 46 |
         swizzle << 61;
}
DEFECTS_DEVICE uint64_t scale_descriptor(const void* start) { return matrix_descriptor(start, 128, 0); }

}  // namespace defects
