// wrappers_cluster_test.cu -- tiny kernels that between them execute every wrapper of ptx/ that reaches
// beyond its CTA, each named after the wrapper it is about and writing an observable result to `out`. One
// cluster of two CTAs, which are a pair; one warp each unless said. wrappers_cluster_run_test.cpp knows what
// the results must be.
#include <cstdint>

#include "ptx/cluster.cuh"
#include "ptx/descriptor.h"
#include "ptx/mbarrier.cuh"
#include "ptx/sync.cuh"
#include "ptx/tcgen05_mem.cuh"
#include "ptx/tcgen05_mma.cuh"
#include "ptx/tma.cuh"
#include "test/ptx/multiply.cuh"
#include "test/ptx/wrappers.h"

namespace ptx = dualgemm::ptx;

namespace {

__device__ void cluster_sync() {
  ptx::cluster_arrive_release();
  ptx::cluster_wait_acquire();
}

__device__ void wait(uint64_t* mbar, uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(mbar, parity)) {
  }
}

// Makes a barrier in each CTA, ready for arrivals from both. The arrival at the cluster barrier is relaxed:
// the fence has released the initialisation.
__device__ void init(uint64_t* mbar, uint32_t count) {
  if (ptx::elect_sync()) {
    ptx::mbarrier_init(mbar, count);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncwarp();
  ptx::cluster_arrive_relaxed();
  ptx::cluster_wait_acquire();
}

// Makes two barriers of one arrival in each CTA, and allocates `columns` of tensor memory in both.
__device__ void begin_pair(int warp, uint64_t* first, uint64_t* second, uint32_t* base, uint32_t columns) {
  if (warp == 0 && ptx::elect_sync()) {
    ptx::mbarrier_init(first, 1);
    ptx::mbarrier_init(second, 1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncwarp();
  ptx::cluster_arrive_relaxed();
  ptx::cluster_wait_acquire();
  if (warp == 0) {
    ptx::tcgen05_alloc<2>(base, columns);
    ptx::tcgen05_relinquish_alloc_permit<2>();
  }
  ptx::tcgen05_fence_before_thread_sync();
  cluster_sync();  // both have allocated
  ptx::tcgen05_fence_after_thread_sync();
}

// Frees the tensor memory once every thread of both CTAs has read its own.
__device__ void end_pair(int warp, uint32_t base, uint32_t columns) {
  ptx::tcgen05_fence_before_thread_sync();
  cluster_sync();
  ptx::tcgen05_fence_after_thread_sync();
  if (warp == 0) ptx::tcgen05_dealloc<2>(base, columns);
}

}  // namespace

// out[block]: its rank in the cluster.
extern "C" __global__ void __cluster_dims__(2) cluster_ctarank(uint32_t* out) {
  if (ptx::elect_sync()) out[blockIdx.x] = ptx::cluster_ctarank();
}

// out[128 * block + 4 * lane + i] = 1000 * (rank of the other CTA) + 4 * lane + i: what that CTA sent here,
// whose bytes ended the phase of a barrier here that waits for `bytes`.
extern "C" __global__ void __cluster_dims__(2) st_async_v4_b32(uint32_t bytes, uint32_t* out) {
  __shared__ alignas(16) uint32_t words[128];
  __shared__ uint64_t mbar;
  const uint32_t rank = ptx::cluster_ctarank(), own = ptx::smem_u32(&words[4 * threadIdx.x]);
  init(&mbar, 1);
  if (ptx::elect_sync()) ptx::mbarrier_arrive_expect_tx(&mbar, bytes);
  __syncwarp();
  uint32_t values[4];
  for (uint32_t i = 0; i < 4; ++i) values[i] = 1000 * rank + 4 * threadIdx.x + i;
  ptx::st_async_v4_b32(ptx::mapa(own, rank ^ 1), values, ptx::mapa(ptx::smem_u32(&mbar), rank ^ 1));
  while (!ptx::mbarrier_try_wait_parity_acquire_cluster(&mbar, 0)) {
  }
  __syncwarp();
  ptx::ld_shared_v4_b32(values, own);
  for (uint32_t i = 0; i < 4; ++i) out[128 * blockIdx.x + 4 * threadIdx.x + i] = values[i];
}

// Each CTA arrives `arrivals` times on the barrier of four arrivals at even_cta_address of its own.
// out[0]: 1 once the CTA of rank `waiter` has seen the first phase of its barrier end.
extern "C" __global__ void __cluster_dims__(2)
    mbarrier_arrive_relaxed_cluster(int32_t arrivals, uint32_t waiter, uint32_t* out) {
  __shared__ uint64_t mbar;
  init(&mbar, 4);
  if (ptx::elect_sync()) {
    for (int i = 0; i < arrivals; ++i)
      ptx::mbarrier_arrive_relaxed_cluster(ptx::even_cta_address(ptx::smem_u32(&mbar)));
    if (ptx::cluster_ctarank() == waiter) {
      while (!ptx::mbarrier_try_wait_parity_relaxed_cluster(&mbar, 0)) {
      }
      out[0] = 1;
    }
  }
  __syncwarp();
  cluster_sync();
}

// out[16 * block + i]: each CTA's box, 4 x 4 x 1 words at {c0, c1, c2 + rank}, written after the even CTA's
// barrier has counted `bytes`.
extern "C" __global__ void __cluster_dims__(2)
    cp_async_bulk_tensor_3d_pair(const __grid_constant__ CUtensorMap map, int32_t c0, int32_t c1, int32_t c2,
                                 uint32_t bytes, uint32_t* out) {
  __shared__ alignas(128) uint32_t box[16];
  __shared__ uint64_t mbar;
  const uint32_t rank = ptx::cluster_ctarank();
  init(&mbar, 1);
  if (ptx::elect_sync()) {
    if (rank == 0) ptx::mbarrier_arrive_expect_tx(&mbar, bytes);
    ptx::cp_async_bulk_tensor_3d_pair(box, &map, {c0, c1, c2 + static_cast<int32_t>(rank)},
                                      ptx::even_cta_address(ptx::smem_u32(&mbar)),
                                      ptx::create_policy_evict_first());
    if (rank == 0) wait(&mbar, 0);
  }
  __syncwarp();
  cluster_sync();
  if (threadIdx.x < 16) out[16 * blockIdx.x + threadIdx.x] = box[threadIdx.x];
}

// out[16 * block + i]: likewise 4 x 2 x 2 x 1 words at {c0, c1, c2, c3 + rank}.
extern "C" __global__ void __cluster_dims__(2)
    cp_async_bulk_tensor_4d_pair(const __grid_constant__ CUtensorMap map, int32_t c0, int32_t c1, int32_t c2,
                                 int32_t c3, uint32_t bytes, uint32_t* out) {
  __shared__ alignas(128) uint32_t box[16];
  __shared__ uint64_t mbar;
  const uint32_t rank = ptx::cluster_ctarank();
  init(&mbar, 1);
  if (ptx::elect_sync()) {
    if (rank == 0) ptx::mbarrier_arrive_expect_tx(&mbar, bytes);
    ptx::cp_async_bulk_tensor_4d_pair(box, &map, {c0, c1, c2, c3 + static_cast<int32_t>(rank)},
                                      ptx::even_cta_address(ptx::smem_u32(&mbar)),
                                      ptx::create_policy_evict_first());
    if (rank == 0) wait(&mbar, 0);
  }
  __syncwarp();
  cluster_sync();
  if (threadIdx.x < 16) out[16 * blockIdx.x + threadIdx.x] = box[threadIdx.x];
}

// out[16 * block + i]: the 4 x 2 x 2 x 1 words at {c0, c1, c2, c3} in the CTAs of `ranks`, 7 in others; the
// CTA of rank `issuer` copied them.
extern "C" __global__ void __cluster_dims__(2)
    cp_async_bulk_tensor_4d_pair_multicast(const __grid_constant__ CUtensorMap map, int32_t c0, int32_t c1,
                                           int32_t c2, int32_t c3, uint32_t issuer, uint32_t ranks,
                                           uint32_t* out) {
  __shared__ alignas(128) uint32_t box[16];
  __shared__ uint64_t mbar;
  const uint32_t rank = ptx::cluster_ctarank();
  if (threadIdx.x < 16) box[threadIdx.x] = 7;
  ptx::fence_proxy_async();
  __syncwarp();
  init(&mbar, 1);
  cluster_sync();
  if (ptx::elect_sync()) {
    if (rank == 0) ptx::mbarrier_arrive_expect_tx(&mbar, sizeof(box) * __popc(ranks));
    if (rank == issuer)
      ptx::cp_async_bulk_tensor_4d_pair_multicast(
          box, &map, {c0, c1, c2, c3}, ptx::even_cta_address(ptx::smem_u32(&mbar)),
          static_cast<uint16_t>(ranks), ptx::create_policy_evict_last());
    if (rank == 0) wait(&mbar, 0);
  }
  __syncwarp();
  cluster_sync();
  if (threadIdx.x < 16) out[16 * blockIdx.x + threadIdx.x] = box[threadIdx.x];
}

// 128 threads. out[1024 * rank + 8 * lane + column] = word column % 4 of row lane % 32 of the CTA's
// own line of `rows`, 32 rows of 4 words: the even CTA's copies work on both,
// and its commit arrives in the CTAs of `ranks`.
extern "C" __global__ void __cluster_dims__(2)
    tcgen05_commit_multicast(const __grid_constant__ CUtensorMap rows, uint32_t ranks, uint32_t* out) {
  constexpr uint32_t kColumns = 32, kCopied = 8;
  __shared__ alignas(1024) uint32_t source[128];
  __shared__ uint64_t filled, copied;
  __shared__ uint32_t base;
  const uint32_t rank = ptx::cluster_ctarank();
  const int warp = __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) / 32, 0);
  begin_pair(warp, &filled, &copied, &base, kColumns);
  if (warp == 0 && ptx::elect_sync()) {
    if (rank == 0) ptx::mbarrier_arrive_expect_tx(&filled, 2 * sizeof(source));
    ptx::cp_async_bulk_tensor_3d_pair(source, &rows, {0, static_cast<int32_t>(rank), 0},
                                      ptx::even_cta_address(ptx::smem_u32(&filled)),
                                      ptx::create_policy_evict_first());
    if (rank == 0) {
      wait(&filled, 0);
      ptx::tcgen05_fence_after_thread_sync();
      for (uint32_t column = 0; column < kCopied; column += 4)
        ptx::tcgen05_cp_32x128b_warpx4<2>(base + column, ptx::scale_descriptor(ptx::smem_u32(source)));
      ptx::tcgen05_commit_multicast(&copied, static_cast<uint16_t>(ranks));
    }
  }
  __syncwarp();
  wait(&copied, 0);
  __syncwarp();
  ptx::tcgen05_fence_after_thread_sync();
  uint32_t values[kCopied];
  ptx::tcgen05_ld_32x32b(values, base + (static_cast<uint32_t>(warp) << 21));
  ptx::tcgen05_wait_ld();
#pragma unroll
  for (uint32_t column = 0; column < kCopied; ++column)
    out[1024 * rank + kCopied * threadIdx.x + column] = values[column];
  end_pair(warp, base, kColumns);
}

// 128 threads. out[64 * row + column]: the fp32 bits of D = A * B^T for two B of 32 rows, side by side, K =
// 64; rows 128 * rank and up are in the CTA of that rank. `a` is a 128-byte-swizzled map of 256 rows x 128
// bytes, `b` of 64 such rows, in boxes of 128 and 16 rows: each CTA holds half of A and half of each B.
// `scales` is a map of four rows of 128 words: an atom for each half of A, of which a CTA needs its own, and
// one for each B. `collector`: see multiply.cuh.
extern "C" __global__ void __cluster_dims__(2)
    tcgen05_mma_mxf4nvf4_block16_pair(const __grid_constant__ CUtensorMap a,
                                      const __grid_constant__ CUtensorMap b,
                                      const __grid_constant__ CUtensorMap scales, int32_t collector,
                                      uint32_t* out) {
  constexpr uint32_t kN = wrappers::kProductN;
  constexpr uint32_t kScales = 2 * kN, kAllocated = 128;  // D in columns 0-63, then SFA, SFB, SFB
  __shared__ alignas(1024) uint8_t a_rows[128 * 128], b_rows[2][kN / 2 * 128];
  __shared__ alignas(1024) uint8_t atoms[3][512];
  __shared__ uint64_t filled, done;
  __shared__ uint32_t base;
  const int32_t rank = static_cast<int32_t>(ptx::cluster_ctarank());
  const int warp = __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) / 32, 0);
  begin_pair(warp, &filled, &done, &base, kAllocated);
  if (warp == 0 && ptx::elect_sync()) {
    const uint32_t full = ptx::even_cta_address(ptx::smem_u32(&filled));
    const uint64_t policy = ptx::create_policy_evict_first();
    if (rank == 0)
      ptx::mbarrier_arrive_expect_tx(&filled, 2 * (sizeof(a_rows) + sizeof(b_rows) + sizeof(atoms)));
    ptx::cp_async_bulk_tensor_3d_pair(a_rows, &a, {0, 128 * rank, 0}, full, policy);
    for (int32_t i = 0; i < 2; ++i)
      ptx::cp_async_bulk_tensor_3d_pair(b_rows[i], &b, {0, static_cast<int32_t>(kN) * i + 16 * rank, 0}, full,
                                        policy);
    for (int32_t i = 0; i < 3; ++i)
      ptx::cp_async_bulk_tensor_3d_pair(atoms[i], &scales, {0, i == 0 ? rank : 1 + i, 0}, full, policy);
    if (rank == 0) {
      wait(&filled, 0);
      ptx::tcgen05_fence_after_thread_sync();
      for (uint32_t i = 0; i < 3; ++i)
        ptx::tcgen05_cp_32x128b_warpx4<2>(base + kScales + 4 * i,
                                          ptx::scale_descriptor(ptx::smem_u32(atoms[i])));
      wrappers::multiply<2>({ptx::operand_descriptor(ptx::smem_u32(a_rows)),
                             {ptx::operand_descriptor(ptx::smem_u32(b_rows[0])),
                              ptx::operand_descriptor(ptx::smem_u32(b_rows[1]))},
                             base,
                             base + kScales,
                             base + kScales + 4,
                             ptx::mxf4nvf4_instruction_descriptor(256, kN)},
                            collector, /*accumulate=*/false);
      ptx::tcgen05_commit_multicast(&done, 3);
    }
  }
  __syncwarp();
  wait(&done, 0);
  __syncwarp();
  ptx::tcgen05_fence_after_thread_sync();
  wrappers::read_products(out + 2 * kN * (128 * static_cast<uint32_t>(rank) + threadIdx.x), base, warp);
  end_pair(warp, base, kAllocated);
}
