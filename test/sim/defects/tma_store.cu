// tma_store.cu -- an epilogue: CTA 0 computes two tiles of 64 words, each written by two warps into one
// shared buffer and taken from there to global memory by one thread, the first through a tensor map, the
// second by a plain bulk copy. When the copies have completed it sets a flag, and CTA 1, which waited for the
// flag, reads both tiles.
#include "sim/defects/device.cuh"
#include "sim/defects/host.h"

namespace defects {
namespace in_tma_store {

constexpr int kTiles = 2, kWords = 64;

template <Store d>
__global__ void store_kernel(const __grid_constant__ CUtensorMap map, uint32_t* tiles, uint32_t* flag,
                             uint32_t* out) {
  __shared__ alignas(128) uint32_t buffer[kWords];
  const uint32_t thread = threadIdx.x;
  if (blockIdx.x == 1) {
    if (thread == 0) {
      while (load_acquire_gpu(flag) == 0) {
      }
#pragma unroll 1
      for (int i = 0; i < kTiles * kWords; ++i) out[i] = tiles[i];
    }
    return;
  }
#pragma unroll 1
  for (int tile = 0; tile < kTiles; ++tile) {
    // Only the thread that issued a copy can wait for it; the others learn of it at the barrier.
    if constexpr (d != Store::kNoReadWaitBeforeReuse)
      if (thread == 0) bulk_wait_group_read<0>();
    __syncthreads();
    buffer[thread] = 1000 + tile * kWords + thread;
    constexpr bool kFenceByWriter = d != Store::kNoProxyFence && d != Store::kFenceBeforeBarrier &&
                                    d != Store::kFenceByIssuerAfterBarrier;
    if constexpr (kFenceByWriter) fence_proxy_async_shared();
    if constexpr (d == Store::kFenceBeforeBarrier)
      if (thread == 0) fence_proxy_async_shared();
    if constexpr (d != Store::kNoBarrier) __syncthreads();
    if (thread == 0 || (d == Store::kTwoLanesStore && thread == 1 && tile == 1)) {
      if constexpr (d == Store::kFenceByIssuerAfterBarrier) fence_proxy_async_shared();
      if (tile == 0) tensor_store(&map, 0, 0, buffer);
      else bulk_store(tiles + tile * kWords, smem_u32(buffer) + 16 * thread, sizeof buffer - 16 * thread);
      bulk_commit_group();
    }
  }
  if (thread == 0) {
    if constexpr (d == Store::kReadWaitBeforeFlag) bulk_wait_group_read<0>();
    else if constexpr (d != Store::kNoWaitBeforeExit) bulk_wait_group<0>();
    if constexpr (d != Store::kNoWaitBeforeExit) store_release_gpu(flag, 1);
  }
}

// In a kernel without the last wait the flag may not be set, either: this defect runs without the reader.
template <Store d>
Outcome run() {
  DeviceArray<uint32_t> tiles(kTiles * kWords), flag(1), out(kTiles * kWords);
  const CUtensorMap map =
      byte_map(tiles.data(), 4 * kWords, kTiles, 4 * kWords, 1, CU_TENSOR_MAP_SWIZZLE_NONE);
  constexpr bool kReader = d != Store::kNoWaitBeforeExit;
  store_kernel<d><<<kReader ? 2 : 1, kWords>>>(map, tiles.data(), flag.data(), out.data());
  return outcome(kReader ? out : tiles, [](size_t i) { return uint32_t(1000 + i); });
}

}  // namespace in_tma_store

DEFECTS_SUBJECT(Store, tma_store, in_tma_store::run)

}  // namespace defects
