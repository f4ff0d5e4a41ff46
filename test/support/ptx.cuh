// ptx.cuh -- the PTX instructions that kernels of tests use beside those of ptx/, one function each, named
// after it: what no kernel of the library needs. Nothing here waits, elects or fences on its own.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "ptx/cluster.cuh"
#include "ptx/common.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/sync.cuh"

namespace test_ptx {

using namespace dualgemm::ptx;

// ---- mbarrier ---------------------------------------------------------------------------------------------
DUALGEMM_DEVICE void mbarrier_arrive_relaxed(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%0];" ::"r"(smem_u32(barrier)) : "memory");
}
DUALGEMM_DEVICE void mbarrier_expect_tx(uint64_t* barrier, uint32_t bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(smem_u32(barrier)), "r"(bytes)
               : "memory");
}
DUALGEMM_DEVICE void mbarrier_arrive_cluster(uint32_t barrier) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// No scope is written here, so the default one is meant.
DUALGEMM_DEVICE void mbarrier_arrive_cluster_default(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}
DUALGEMM_DEVICE bool mbarrier_try_wait_cluster(uint64_t* barrier, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n\t"
      "selp.u32 %0, 1, 0, p;\n\t}"
      : "=r"(done)
      : "r"(smem_u32(barrier)), "r"(parity)
      : "memory");
  return done != 0;
}
DUALGEMM_DEVICE bool mbarrier_try_wait_relaxed(uint64_t* barrier, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 p, [%1], %2;\n\t"
      "selp.u32 %0, 1, 0, p;\n\t}"
      : "=r"(done)
      : "r"(smem_u32(barrier)), "r"(parity)
      : "memory");
  return done != 0;
}
// ---- fences and barriers ----------------------------------------------------------------------------------
DUALGEMM_DEVICE void fence_proxy_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
DUALGEMM_DEVICE void fence_proxy_async_global() { asm volatile("fence.proxy.async.global;" ::: "memory"); }
DUALGEMM_DEVICE void bar_sync(uint32_t id, uint32_t threads) {
  asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
DUALGEMM_DEVICE void bar_arrive(uint32_t id, uint32_t threads) {
  asm volatile("barrier.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
DUALGEMM_DEVICE uint32_t bar_red(uint32_t id, uint32_t threads) {
  uint32_t count;
  asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %2, 0;\n\tbarrier.red.popc.u32 %0, %1, %2, p;\n\t}"
               : "=r"(count)
               : "r"(id), "r"(threads)
               : "memory");
  return count;
}
DUALGEMM_DEVICE void cluster_sync() {
  cluster_arrive_release();
  cluster_wait_acquire();
}

// ---- copies -----------------------------------------------------------------------------------------------
DUALGEMM_DEVICE void bulk_load(void* to, const void* from, uint32_t bytes, uint64_t* barrier) {
  asm volatile("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   smem_u32(to)),
               "l"(from), "r"(bytes), "r"(smem_u32(barrier))
               : "memory");
}
DUALGEMM_DEVICE void bulk_load_multicast(void* to, const void* from, uint32_t bytes, uint64_t* barrier,
                                         uint16_t ranks) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1], %2, [%3], %4;" ::"r"(smem_u32(to)),
      "l"(from), "r"(bytes), "r"(smem_u32(barrier)), "h"(ranks)
      : "memory");
}
DUALGEMM_DEVICE void bulk_store(void* to, uint32_t from, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes)
               : "memory");
}
DUALGEMM_DEVICE void tensor_load(void* to, const CUtensorMap* map, int x, int y, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::
          "r"(smem_u32(to)),
      "l"(map), "r"(x), "r"(y), "r"(smem_u32(barrier))
      : "memory");
}
// Copies into this CTA, and signals the barrier of the same name in the even CTA of the pair.
DUALGEMM_DEVICE void tensor_load_pair(void* to, const CUtensorMap* map, int x, int y, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(smem_u32(to)),
      "l"(map), "r"(x), "r"(y), "r"(smem_u32(barrier) & 0xFEFFFFFF)
      : "memory");
}
DUALGEMM_DEVICE void tensor_store(const CUtensorMap* map, int x, int y, const void* from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
               "r"(x), "r"(y), "r"(smem_u32(from))
               : "memory");
}
DUALGEMM_DEVICE void bulk_commit_group() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// These wait until all but the last kLeft groups of this thread have been written, or read.
template <int kLeft>
DUALGEMM_DEVICE void bulk_wait_group() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kLeft) : "memory");
}
template <int kLeft>
DUALGEMM_DEVICE void bulk_wait_group_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kLeft) : "memory");
}
DUALGEMM_DEVICE void cp_async_4(void* to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(smem_u32(to)), "l"(from) : "memory");
}
DUALGEMM_DEVICE void cp_async_wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }
DUALGEMM_DEVICE void st_async(uint32_t to, uint32_t value, uint32_t barrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(to),
               "r"(value), "r"(barrier)
               : "memory");
}
DUALGEMM_DEVICE void store_cluster(uint32_t to, uint32_t value) {
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(to), "r"(value) : "memory");
}

// ---- cluster launch control -------------------------------------------------------------------------------
struct CancelResponse {  // opaque
  uint64_t low, high;
};
DUALGEMM_DEVICE void clusterlaunchcontrol_try_cancel(void* response, uint64_t* barrier) {
  asm volatile(
      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];" ::"r"(
          smem_u32(response)),
      "r"(smem_u32(barrier))
      : "memory");
}
DUALGEMM_DEVICE CancelResponse load_response(const void* response) {
  CancelResponse out;
  asm volatile("{\n\t.reg .b128 q;\n\tld.shared.b128 q, [%2];\n\tmov.b128 {%0, %1}, q;\n\t}"
               : "=l"(out.low), "=l"(out.high)
               : "r"(smem_u32(response))
               : "memory");
  return out;
}
DUALGEMM_DEVICE bool clusterlaunchcontrol_is_canceled(const CancelResponse& response) {
  uint32_t canceled;
  asm volatile(
      "{\n\t.reg .b128 q;\n\t.reg .pred p;\n\tmov.b128 q, {%1, %2};\n\t"
      "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, q;\n\tselp.u32 %0, 1, 0, p;\n\t}"
      : "=r"(canceled)
      : "l"(response.low), "l"(response.high));
  return canceled != 0;
}
DUALGEMM_DEVICE uint32_t clusterlaunchcontrol_first_ctaid_x(const CancelResponse& response) {
  uint32_t x;
  asm volatile(
      "{\n\t.reg .b128 q;\n\tmov.b128 q, {%1, %2};\n\t"
      "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %0, q;\n\t}"
      : "=r"(x)
      : "l"(response.low), "l"(response.high));
  return x;
}

// ---- tensor maps that a kernel changes --------------------------------------------------------------------
DUALGEMM_DEVICE void tensormap_replace_global_address(CUtensorMap* shared, const void* address) {
  asm volatile(
      "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(smem_u32(shared)),
      "l"(address)
      : "memory");
}
template <int kDimension>
DUALGEMM_DEVICE void tensormap_replace_global_dim(CUtensorMap* shared, uint32_t size) {
  asm volatile(
      "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], %2, %1;" ::"r"(smem_u32(shared)),
      "r"(size), "n"(kDimension)
      : "memory");
}
template <bool kCtaScope = false>
DUALGEMM_DEVICE void tensormap_cp_fenceproxy(CUtensorMap* to, const CUtensorMap* shared) {
#define COPY(scope)                                                                           \
  asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release." scope \
               ".sync.aligned [%0], [%1], 128;" ::"l"(to),                                    \
               "r"(smem_u32(shared))                                                          \
               : "memory")
  if constexpr (kCtaScope) COPY("cta");
  else COPY("gpu");
#undef COPY
}
DUALGEMM_DEVICE void fence_tensormap_release() {
  asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
}
DUALGEMM_DEVICE void fence_tensormap_acquire(const CUtensorMap* map) {
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}

// ---- matrices of 8 x 8 elements of 16 bits ----------------------------------------------------------------
DUALGEMM_DEVICE void ldmatrix_x4(uint32_t (&values)[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(values[0]), "=r"(values[1]), "=r"(values[2]), "=r"(values[3])
               : "r"(row)
               : "memory");
}
DUALGEMM_DEVICE void stmatrix_x4(uint32_t row, const uint32_t (&values)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(values[0]),
               "r"(values[1]), "r"(values[2]), "r"(values[3])
               : "memory");
}

// ---- prefetches -------------------------------------------------------------------------------------------
DUALGEMM_DEVICE void bulk_prefetch(const void* from, uint32_t bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
}
DUALGEMM_DEVICE void prefetch_l2(const void* from) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(from) : "memory");
}

// ---- flags in global memory -------------------------------------------------------------------------------
DUALGEMM_DEVICE void store_release_gpu(uint32_t* to, uint32_t value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
DUALGEMM_DEVICE void store_release_cta(uint32_t* to, uint32_t value) {
  asm volatile("st.release.cta.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
DUALGEMM_DEVICE void store_relaxed_gpu(uint32_t* to, uint32_t value) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
DUALGEMM_DEVICE uint32_t load_acquire_gpu(const uint32_t* from) {
  uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}
DUALGEMM_DEVICE uint32_t load_non_coherent(const uint32_t* from) {
  uint32_t value;
  asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}
DUALGEMM_DEVICE uint32_t load_relaxed_gpu(const uint32_t* from) {
  uint32_t value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}

// ---- tensor core ------------------------------------------------------------------------------------------
DUALGEMM_DEVICE void tcgen05_wait_st() { asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"); }
DUALGEMM_DEVICE void tcgen05_st_x4(uint32_t to, uint32_t value) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x4.b32 [%0], {%1, %1, %1, %1};" ::"r"(to), "r"(value)
               : "memory");
}

// D = A * B, or D = A * B + D, of 16-bit elements in shared memory.
DUALGEMM_DEVICE void tcgen05_mma_f16(uint32_t d, uint64_t a, uint64_t b, uint32_t shape, bool accumulate) {
  asm volatile(
      "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %4, 0;\n\t"
      "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n\t}" ::"r"(d),
      "l"(a), "l"(b), "r"(shape), "r"(uint32_t(accumulate))
      : "memory");
}
#define FOUR(values, i) "r"(values[i]), "r"(values[i + 1]), "r"(values[i + 2]), "r"(values[i + 3])
DUALGEMM_DEVICE void tcgen05_st_32x32b(uint32_t to, const uint32_t (&values)[16]) {
  asm volatile(
      "tcgen05.st.sync.aligned.32x32b.x16.b32 [%0], "
      "{%1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16};" ::"r"(to),
      FOUR(values, 0), FOUR(values, 4), FOUR(values, 8), FOUR(values, 12)
      : "memory");
}
#undef FOUR

}  // namespace test_ptx
