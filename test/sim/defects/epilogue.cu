// epilogue.cu -- an epilogue with stmatrix: D = C + accumulators, five tiles of 64 x 64 in bf16. A tile of C
// comes by TMA into one of two buffers, four warps add what they hold of it in place, by ldmatrix and
// stmatrix, and it leaves by TMA from there.
//
//   warps    who        does
//   0 to 3   epilogue   16 rows each; thread 0 stores
//   4        load       TMA: tiles of C
//
//   barrier    count        arrives                  waits      means
//   full[b]    1 and bytes  load, and the copy       epilogue   buffer b has a tile of C
//   empty[b]   1            the thread that stores   load       buffer b was read by its store
//
// Buffers have rows of 128 bytes under the 128-byte swizzle.

#include "ptx/math.cuh"
#include "sim/defects/device.cuh"
#include "sim/defects/host.h"

namespace defects {
namespace in_epilogue {

constexpr int kTiles = 5, kRows = 64, kColumns = 64, kBuffers = 2;
constexpr int kRowBytes = 2 * kColumns, kTileBytes = kRows * kRowBytes, kEpilogueThreads = 128;

struct Buffers {
  alignas(1024) uint8_t tile[kBuffers][kTileBytes];
  uint64_t full[kBuffers], empty[kBuffers];
};

// What the epilogue adds to a tile stands for the accumulators of a product.
constexpr int kPeriod = 61;
DUALGEMM_DEVICE float accumulator(int tile, int row, int column) {
  return float((37 * tile + 5 * row + 3 * column) % kPeriod);
}

template <Epilogue d>
DUALGEMM_DEVICE void load(Buffers& s, const CUtensorMap* c) {
#pragma unroll 1
  for (int tile = 0; tile < kTiles; ++tile) {
    const int b = tile % kBuffers;
    if (tile >= kBuffers) mbarrier_wait(&s.empty[b], tile / kBuffers % 2 ^ 1);
    mbarrier_arrive_expect_tx(&s.full[b], d == Epilogue::kFewBytes ? kTileBytes / 2 : kTileBytes);
    tensor_load(s.tile[b], c, 0, tile * kRows, &s.full[b]);
  }
}

// Adds to the 16 rows of a warp.
template <Epilogue d>
DUALGEMM_DEVICE void add(uint8_t* buffer, int tile) {
  const uint32_t first_row = warp_index() * 16;
#pragma unroll 1
  for (uint32_t chunk = 0; chunk < kRowBytes / 16; chunk += 2) {
    const uint32_t address = matrix_row(smem_u32(buffer), first_row, chunk);
    uint32_t pairs[4];
    ldmatrix_x4(pairs, address);
#pragma unroll
    for (uint32_t j = 0; j < 4; ++j) {
      const int row = int(first_row + j % 2 * 8 + lane_index() / 4);
      const int column = int((chunk + j / 2) * 8 + lane_index() % 4 * 2);
      const float low = __uint_as_float(pairs[j] << 16) + accumulator(tile, row, column);
      const float high = __uint_as_float(pairs[j] & 0xFFFF0000) + accumulator(tile, row, column + 1);
      pairs[j] = cvt_rn_bf16x2_f32(high, low);
    }
    if constexpr (d == Epilogue::kUnswizzled) {
      const uint32_t row = first_row + lane_index() % 16;
      stmatrix_x4(smem_u32(buffer) + row * kRowBytes + (chunk + lane_index() / 16) * 16, pairs);
    } else if constexpr (d == Epilogue::kMatricesExchanged) {
      stmatrix_x4(address, {pairs[0], pairs[2], pairs[1], pairs[3]});
    } else if constexpr (d == Epilogue::kHalfWarp) {
      if (lane_index() < 16) stmatrix_x4(address, pairs);
    } else {
      stmatrix_x4(address, pairs);
    }
  }
}

// Stores a tile and gives back the buffer of the one before, whose store has read it by then.
template <Epilogue d>
DUALGEMM_DEVICE void store(Buffers& s, const CUtensorMap* to, int tile) {
  if constexpr (d == Epilogue::kIssuerFences) fence_proxy_async_shared();
  tensor_store(to, 0, tile * kRows, s.tile[tile % kBuffers]);
  if constexpr (d != Epilogue::kNotCommitted) bulk_commit_group();
  if (d == Epilogue::kOtherThreadWaits || tile == 0 || tile + 1 == kTiles) return;
  if constexpr (d == Epilogue::kWaitForAll) bulk_wait_group<0>();
  else if constexpr (d != Epilogue::kReleasedUnread)
    bulk_wait_group_read<d == Epilogue::kWaitLeavesTwo ? 2 : 1>();
  if (threadIdx.x == 0) mbarrier_arrive(&s.empty[(tile - 1) % kBuffers]);
}

template <Epilogue d>
__global__ void __launch_bounds__(kEpilogueThreads + 32)
    epilogue_kernel(const __grid_constant__ CUtensorMap c, const __grid_constant__ CUtensorMap to) {
  __shared__ Buffers s;
  if (threadIdx.x == 0) {
    for (int b = 0; b < kBuffers; ++b) {
      mbarrier_init(&s.full[b], 1);
      mbarrier_init(&s.empty[b], 1);
    }
    if constexpr (d != Epilogue::kNoInitFence) fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  if (threadIdx.x == kEpilogueThreads) load<d>(s, &c);
  if (threadIdx.x >= kEpilogueThreads) return;

#pragma unroll 1
  for (int tile = 0; tile < kTiles; ++tile) {
    const int b = tile % kBuffers;
    if constexpr (d != Epilogue::kNoFullWait)
      mbarrier_wait(&s.full[b], d == Epilogue::kParity ? 0 : tile / kBuffers % 2);
    add<d>(s.tile[b], tile);
    constexpr bool kOneFences = d == Epilogue::kFenceBeforeBarrier;
    if (d != Epilogue::kNoProxyFence && d != Epilogue::kIssuerFences && (!kOneFences || threadIdx.x == 0))
      fence_proxy_async_shared();
    if constexpr (d != Epilogue::kNoBarrier)
      bar_sync(1, d == Epilogue::kBarrierOfAll ? kEpilogueThreads + 32 : kEpilogueThreads);
    if (d == Epilogue::kWarpStores ? warp_index() == 0 : threadIdx.x == 0) store<d>(s, &to, tile);
    if (d == Epilogue::kOtherThreadWaits && threadIdx.x == 32 && tile != 0 && tile + 1 != kTiles) {
      bulk_wait_group_read<1>();
      mbarrier_arrive(&s.empty[(tile - 1) % kBuffers]);
    }
  }
  if (d != Epilogue::kNoWaitAtExit && threadIdx.x == 0) bulk_wait_group_read<0>();
}

int c_element(int row, int column) { return (11 * row + 7 * column) % 101 - 50; }

template <Epilogue d>
Outcome run() {
  std::vector<uint16_t> elements;
  for (int i = 0; i < kTiles * kRows * kColumns; ++i)
    elements.push_back(bf16(c_element(i / kColumns, i % kColumns)));
  DeviceArray<uint16_t> c(elements), out(elements.size(), 0xFF);
  const auto map = [](void* data) {
    return byte_map(data, kRowBytes, kTiles * kRows, kRowBytes, kRows, CU_TENSOR_MAP_SWIZZLE_128B);
  };
  epilogue_kernel<d><<<1, kEpilogueThreads + 32>>>(map(c.data()), map(out.data()));
  return outcome(out, [](size_t i) {
    const int row = int(i) / kColumns, column = int(i) % kColumns;
    const int added = (37 * (row / kRows) + 5 * (row % kRows) + 3 * column) % kPeriod;
    return bf16(c_element(row, column) + added);  // at most 110, which bf16 holds
  });
}

}  // namespace in_epilogue

DEFECTS_SUBJECT(Epilogue, epilogue, in_epilogue::run)

}  // namespace defects
