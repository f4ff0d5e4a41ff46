// pair.cu -- the NVFP4 product of a pair of CTAs (cta_group::2): 256 rows, 16 columns, two tiles with one
// accumulator. The even CTA issues; each CTA loads its rows of A with their scales, its half of B and all
// scales of B, and tells the barrier of the even CTA.  D[m][n] = 128 * A(m + tile) * B(n), codes modulo 8.
#include "sim/defects/device.cuh"
#include "sim/defects/host.h"

namespace defects {
namespace in_pair {

constexpr int kRows = 128, kColumns = 16, kTiles = 2, kBlocks = 2, kStages = 2;
constexpr uint32_t kShape = 1 << 7 | 1 << 10 | (kColumns >> 3) << 17 | (2 * kRows >> 7) << 27;
constexpr uint8_t kOne = 0x38;  // ue4m3
constexpr int kRowBytes = 32, kScaleBytes = 512, kScaleWidth = 128, kScaleRows = 4;

struct alignas(1024) Stage {
  uint8_t a[kRows * kRowBytes];
  uint8_t b[kColumns / 2 * kRowBytes];
  uint8_t sfa[kScaleBytes], sfb[kScaleBytes];
};
constexpr uint32_t kStageBytes = (kRows + kColumns / 2) * kRowBytes + 2 * kScaleBytes;
constexpr uint32_t kAllocated = 64;
DUALGEMM_DEVICE uint32_t scale_column(int stage) { return 16 + stage * 16; }

struct Maps {
  CUtensorMap a, b, sfa, sfb;
};

//   barrier      lives in   count         arrives                            waits
//   full[s]      even       1 and bytes   even load; copies of both CTAs     even mma
//   empty[s]     both       1             multicast commit                   load
//   acc_full     both       1             multicast commit                   epilogue
//   acc_empty    even       256           every epilogue thread of both      even mma
template <Pair d>
__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(192)
    pair_kernel(const __grid_constant__ Maps maps, float* out) {
  __shared__ Stage stage[kStages];
  __shared__ uint64_t full[kStages], empty[kStages], acc_full, acc_empty, own_scales[kStages];
  __shared__ uint32_t tmem_address;
  const uint32_t warp = warp_index(), lane = lane_index(), rank = cluster_ctarank();
  constexpr uint16_t kBoth = d == Pair::kCommitToOneCta ? 0b01 : 0b11;

  if (threadIdx.x == 32) {
    for (int s = 0; s < kStages; ++s) {
      mbarrier_init(&full[s], 1);
      mbarrier_init(&empty[s], 1);
      mbarrier_init(&own_scales[s], 1);
    }
    mbarrier_init(&acc_full, 1);
    mbarrier_init(&acc_empty, 256);
    if constexpr (d != Pair::kNoInitFence) fence_mbarrier_init_release_cluster();
  }
  __syncwarp();
  cluster_arrive_relaxed();
  cluster_wait_acquire();
  if (warp == 0) {
    tcgen05_alloc<2>(&tmem_address, kAllocated);
    tcgen05_relinquish_alloc_permit<2>();
  }
  tcgen05_fence_before_thread_sync();
  __syncthreads();
  tcgen05_fence_after_thread_sync();
  const uint32_t base = *static_cast<volatile uint32_t*>(&tmem_address);

  if (warp == 4 && lane == 0) {  // load
    // The defect: the odd CTA's scales of B are announced to a barrier of the odd CTA, and the even CTA does
    // not wait for these scales.
    constexpr bool kHidden = d == Pair::kPeerBytesNotAwaited;
#pragma unroll 1
    for (int i = 0; i < kTiles * kBlocks; ++i) {
      const int s = i % kStages, tile = i / kBlocks, block = i % kBlocks;
      mbarrier_wait_cluster(&empty[s], i / kStages % 2 ^ 1);
      if (rank == 0) mbarrier_arrive_expect_tx(&full[s], 2 * kStageBytes - (kHidden ? kScaleBytes : 0));
      tensor_load_pair(stage[s].a, &maps.a, block * kRowBytes, (tile * 2 + rank) * kRows, &full[s]);
      tensor_load_pair(stage[s].b, &maps.b, block * kRowBytes, rank * kColumns / 2, &full[s]);
      tensor_load_pair(stage[s].sfa, &maps.sfa, 0, (i * 2 + rank) * kScaleRows, &full[s]);
      if (kHidden && rank == 1) {
        if (i >= kStages) mbarrier_wait_cluster(&own_scales[s], i / kStages % 2 ^ 1);
        mbarrier_arrive_expect_tx(&own_scales[s], kScaleBytes);
        tensor_load(stage[s].sfb, &maps.sfb, 0, i * kScaleRows, &own_scales[s]);
      } else {
        tensor_load_pair(stage[s].sfb, &maps.sfb, 0, i * kScaleRows, &full[s]);
      }
    }
    if constexpr (d != Pair::kStagesNotDrained)  // commits must not reach a CTA that has exited
      for (int i = kTiles * kBlocks - kStages; i < kTiles * kBlocks; ++i)
        mbarrier_wait_cluster(&empty[i % kStages], i / kStages % 2);
  } else if (warp == 5 && lane == 0 && rank == 0) {  // mma
#pragma unroll 1
    for (int tile = 0; tile < kTiles; ++tile) {
      mbarrier_wait_cluster(&acc_empty, tile % 2 ^ 1);
      tcgen05_fence_after_thread_sync();
#pragma unroll 1
      for (int block = 0; block < kBlocks; ++block) {
        const int i = tile * kBlocks + block, s = i % kStages;
        mbarrier_wait_cluster(&full[s], i / kStages % 2);
        tcgen05_fence_after_thread_sync();
        const uint32_t scales = base + scale_column(s);
        tcgen05_cp_32x128b_warpx4<2>(scales, scale_descriptor(stage[s].sfa));
        tcgen05_cp_32x128b_warpx4<2>(scales + 4, scale_descriptor(stage[s].sfb));
        tcgen05_mma_mxf4nvf4_block16<2, Collector::kDefault>(
            base, matrix_descriptor(stage[s].a, 8 * kRowBytes, 6),
            matrix_descriptor(stage[s].b, 8 * kRowBytes, 6), kShape, scales, scales + 4, block != 0);
        if (block == kBlocks - 1) tcgen05_commit_multicast(&acc_full, 0b11);
        tcgen05_commit_multicast(&empty[s], kBoth);
      }
    }
    // Arrivals from the peer must find this CTA.
    mbarrier_wait_cluster(&acc_empty, (kTiles - 1) % 2);
  } else if (warp < 4) {  // epilogue
#pragma unroll 1
    for (int tile = 0; tile < kTiles; ++tile) {
      mbarrier_wait_cluster(&acc_full, tile % 2);
      tcgen05_fence_after_thread_sync();
      uint32_t low[8], high[8];
      tcgen05_ld_32x32b(low, base + (warp * 32 << 16));
      tcgen05_ld_32x32b(high, base + (warp * 32 << 16) + 8);
      tcgen05_wait_ld();
      tcgen05_fence_before_thread_sync();
      if constexpr (d == Pair::kArriveDefaultScope) mbarrier_arrive_cluster_default(shared_of(&acc_empty, 0));
      else mbarrier_arrive_cluster(shared_of(&acc_empty, 0));
      float* row = out + ((tile * 2 + rank) * kRows + threadIdx.x) * kColumns;
      for (int n = 0; n < 8; ++n) {
        row[n] = __uint_as_float(low[n]);
        row[8 + n] = __uint_as_float(high[n]);
      }
    }
  }
  __syncwarp();
  const bool early = d == Pair::kDeallocBeforePeer && rank == 0;
  if (warp == 0 && early) tcgen05_dealloc<2>(base, kAllocated);
  tcgen05_fence_before_thread_sync();
  cluster_sync();
  tcgen05_fence_after_thread_sync();
  if (warp == 0 && !early) tcgen05_dealloc<2>(base, kAllocated);
}

template <Pair d>
Outcome run() {
  constexpr int kWidth = kBlocks * kRowBytes, kSteps = kTiles * kBlocks;
  DeviceArray<uint8_t> a(rows_of_codes(kTiles * 2 * kRows, kWidth, 2 * kRows)),
      b(rows_of_codes(kColumns, kWidth, 2 * kRows));
  DeviceArray<uint8_t> sfa(2 * kSteps * kScaleBytes, kOne), sfb(kSteps * kScaleBytes, kOne);
  DeviceArray<float> out(size_t(kTiles) * 2 * kRows * kColumns, 0xFF);
  const auto scales = [](DeviceArray<uint8_t>& from, int rows) {
    return byte_map(from.data(), kScaleWidth, rows, kScaleWidth, kScaleRows, CU_TENSOR_MAP_SWIZZLE_NONE);
  };
  const Maps maps{byte_map(a.data(), kWidth, kTiles * 2 * kRows, kRowBytes, kRows, CU_TENSOR_MAP_SWIZZLE_32B),
                  byte_map(b.data(), kWidth, kColumns, kRowBytes, kColumns / 2, CU_TENSOR_MAP_SWIZZLE_32B),
                  scales(sfa, 2 * kSteps * kScaleRows), scales(sfb, kSteps * kScaleRows)};
  pair_kernel<d><<<2, 192>>>(maps, out.data());
  return outcome(out, [](size_t i) {
    const int n = int(i) % kColumns, row = int(i) / kColumns;
    return 64.0f * kBlocks * e2m1(row % (2 * kRows) + row / (2 * kRows)) * e2m1(n);
  });
}

}  // namespace in_pair

DEFECTS_SUBJECT(Pair, pair, in_pair::run)

}  // namespace defects
