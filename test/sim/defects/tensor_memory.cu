// tensor_memory.cu -- NVFP4 products of one CTA. Operand rows are constant along K, so that every value of
// the result names its row, its column and its tile:
//   D[m][n] = 256 * A(m + tile) * B(n) * 2,  codes modulo 8.
#include "sim/defects/device.cuh"
#include "sim/defects/host.h"

namespace defects {
namespace in_tensor_memory {

constexpr int kRows = 128, kColumns = 8, kTiles = 3, kBlocks = 2, kSteps = 2, kStages = 2;
constexpr uint32_t kShape = 1 << 7 | 1 << 10 | (kColumns >> 3) << 17 | (kRows >> 7) << 27;
constexpr uint8_t kOne = 0x38, kTwo = 0x40;  // ue4m3

// A row of 64 bytes is 128 elements: two K64 steps in a 64-byte swizzle.
constexpr int kRowBytes = 64, kScaleBytes = 512;
struct alignas(1024) Stage {
  uint8_t a[kRows * kRowBytes];
  uint8_t b[kColumns * kRowBytes];
  uint8_t sfa[kSteps][kScaleBytes], sfb[kSteps][kScaleBytes];
};
constexpr uint32_t kStageBytes = (kRows + kColumns) * kRowBytes + 2 * kSteps * kScaleBytes;

// Tensor memory holds two accumulators, then per stage and step the scales of A, those of B and a gap.
constexpr uint32_t kAllocated = 128, kScaleColumns = 16;
DUALGEMM_DEVICE uint32_t accumulator_column(int index) { return index * kColumns; }
DUALGEMM_DEVICE uint32_t scale_column(int stage, int step) {
  return 16 + (stage * kSteps + step) * kScaleColumns;
}

DUALGEMM_DEVICE void commit_to_generic(uint64_t address) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%0];" ::"l"(address) : "memory");
}

//   barrier       count        arrives                waits     means
//   full[s]       1 and bytes  load, and the copies   mma       stage s is filled
//   empty[s]      1            commit                 load      stage s was read, and its scale columns
//   acc_full[b]   1            commit                 epilogue  accumulator b is complete
//   acc_empty[b]  128          every epilogue thread  mma       accumulator b was read
template <Gemm d>
__global__ void __launch_bounds__(192)
    gemm_kernel(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                const uint8_t* sfa, const uint8_t* sfb, float* out) {
  __shared__ Stage stage[kStages];
  __shared__ alignas(16) float tile_of_c[kRows][kColumns];
  __shared__ uint64_t full[kStages], empty[kStages], acc_full[2], acc_empty[2];
  __shared__ uint32_t tmem_address;
  const uint32_t warp = warp_index(), lane = lane_index();

  if (warp == 0) {
    if constexpr (d == Gemm::kAllocAfterRelinquish) tcgen05_relinquish_alloc_permit<1>();
    tcgen05_alloc<1>(&tmem_address, kAllocated);
    if constexpr (d != Gemm::kAllocAfterRelinquish) tcgen05_relinquish_alloc_permit<1>();
  }
  if (threadIdx.x == 32) {
    for (int i = 0; i < kStages; ++i) {
      mbarrier_init(&full[i], 1);
      mbarrier_init(&empty[i], d == Gemm::kCommitEveryMma ? kSteps : 1);
      mbarrier_init(&acc_full[i], 1);
      mbarrier_init(&acc_empty[i], 128);
    }
    fence_mbarrier_init_release_cluster();
  }
  uint32_t base = 0;
  if constexpr (d == Gemm::kAddressReadEarly) base = *static_cast<volatile uint32_t*>(&tmem_address);
  tcgen05_fence_before_thread_sync();
  __syncthreads();
  tcgen05_fence_after_thread_sync();
  if constexpr (d != Gemm::kAddressReadEarly) base = *static_cast<volatile uint32_t*>(&tmem_address);

  if (warp == 4 && lane == 0) {  // load
#pragma unroll 1
    for (int i = 0; i < kTiles * kBlocks; ++i) {
      const int s = i % kStages, tile = i / kBlocks, block = i % kBlocks;
      if constexpr (d == Gemm::kRelaxedEmptyWait) mbarrier_wait_relaxed(&empty[s], i / kStages % 2 ^ 1);
      else if constexpr (d != Gemm::kNoEmptyWait) mbarrier_wait(&empty[s], i / kStages % 2 ^ 1);
      mbarrier_arrive_expect_tx(&full[s], kStageBytes);
      tensor_load(stage[s].a, &a, block * kRowBytes, tile * kRows, &full[s]);
      tensor_load(stage[s].b, &b, block * kRowBytes, 0, &full[s]);
      bulk_load(stage[s].sfa, sfa + i * sizeof stage[s].sfa, sizeof stage[s].sfa, &full[s]);
      bulk_load(stage[s].sfb, sfb + i * sizeof stage[s].sfb, sizeof stage[s].sfb, &full[s]);
    }
#pragma unroll 1
    for (int i = kTiles * kBlocks - kStages; i < kTiles * kBlocks; ++i)  // commits must not outlive the CTA
      mbarrier_wait(&empty[i % kStages], i / kStages % 2);
  } else if (warp == 5 && lane == 0) {  // mma
#pragma unroll 1
    for (int tile = 0; tile < kTiles; ++tile) {
      const int acc = tile % 2;
      if constexpr (d != Gemm::kNoAccumulatorWait) mbarrier_wait(&acc_empty[acc], tile / 2 % 2 ^ 1);
      tcgen05_fence_after_thread_sync();
      const uint32_t to = base + accumulator_column(d == Gemm::kAccumulatorNotToggled ? 0 : acc);
#pragma unroll 1
      for (int block = 0; block < kBlocks; ++block) {
        const int i = tile * kBlocks + block, s = i % kStages;
        if constexpr (d != Gemm::kNoFullWait) mbarrier_wait(&full[s], i / kStages % 2);
        tcgen05_fence_after_thread_sync();
        if constexpr (d == Gemm::kCommitBeforeMma) tcgen05_commit<1>(&empty[s]);
#pragma unroll 1
        for (int step = 0; step < kSteps; ++step) {
          const uint32_t scales = base + scale_column(d == Gemm::kOneScaleRegion ? 0 : s, step);
          tcgen05_cp_32x128b_warpx4<1>(scales, scale_descriptor(stage[s].sfa[step]));
          tcgen05_cp_32x128b_warpx4<1>(scales + 4, scale_descriptor(stage[s].sfb[step]));
          constexpr int kStep = d == Gemm::kStepTooShort ? 16 : 32;
          constexpr uint32_t kOffset = d == Gemm::kScaleColumn ? 8 : 4;
          constexpr uint32_t kDescriptor = d == Gemm::kScaleFormatId ? kShape | 1 << 29 : kShape;
          const bool old = d == Gemm::kAccumulateFirst || (d == Gemm::kAccumulateOnOldTile && tile == 2);
          const bool accumulate = old || block != 0 || step != 0;
          tcgen05_mma_mxf4nvf4_block16<1, Collector::kDefault>(
              to, matrix_descriptor(stage[s].a + step * kStep, 8 * kRowBytes, 4),
              matrix_descriptor(stage[s].b + step * kStep, 8 * kRowBytes, 4), kDescriptor, scales,
              scales + kOffset, accumulate);
          if constexpr (d == Gemm::kCommitEveryMma) tcgen05_commit<1>(&empty[s]);
        }
        if constexpr (d == Gemm::kCommitToOtherStage) tcgen05_commit<1>(&empty[(s + 1) % kStages]);
        else if constexpr (d == Gemm::kCommitToFull) tcgen05_commit<1>(&full[s]);
        else if constexpr (d == Gemm::kArriveInsteadOfCommit) mbarrier_arrive(&empty[s]);
        else if constexpr (d != Gemm::kCommitEveryMma && d != Gemm::kCommitBeforeMma)
          tcgen05_commit<1>(&empty[s]);
      }
      if constexpr (d == Gemm::kCommitSharedAddress) commit_to_generic(smem_u32(&acc_full[acc]));
      else tcgen05_commit<1>(&acc_full[acc]);
    }
  } else if (warp < 4) {  // epilogue
#pragma unroll 1
    for (int tile = 0; tile < kTiles; ++tile) {
      const int acc = tile % 2;
      constexpr bool kRelaxed = d == Gemm::kNoAfterFenceRelaxedWait || d == Gemm::kRelaxedWaitWithFence;
      if constexpr (kRelaxed) mbarrier_wait_relaxed(&acc_full[acc], tile / 2 % 2);
      else mbarrier_wait(&acc_full[acc], tile / 2 % 2);
      if constexpr (d != Gemm::kNoAfterFence && d != Gemm::kNoAfterFenceRelaxedWait)
        tcgen05_fence_after_thread_sync();
      uint32_t values[kColumns];
      const uint32_t quarter = d == Gemm::kWrongQuarter ? (warp + 1) % 4 : warp;
      tcgen05_ld_32x32b(values, base + (quarter * 32 << 16) + accumulator_column(acc));
      if constexpr (d != Gemm::kNoWaitLd) tcgen05_wait_ld();
      constexpr bool kFence = d != Gemm::kNoBeforeFence && d != Gemm::kNoBeforeFenceRelaxedArrive;
      if constexpr (kFence) tcgen05_fence_before_thread_sync();
      if constexpr (d == Gemm::kNoBeforeFenceRelaxedArrive) mbarrier_arrive_relaxed(&acc_empty[acc]);
      else mbarrier_arrive(&acc_empty[acc]);
      // Results go through shared memory, as in an epilogue that stores by TMA.
      auto* row = d == Gemm::kTileAliasesStage
                      ? reinterpret_cast<volatile uint32_t*>(stage[0].a) + threadIdx.x * kColumns
                      : reinterpret_cast<volatile uint32_t*>(tile_of_c[threadIdx.x]);
      for (int n = 0; n < kColumns; ++n) row[n] = values[n];
      for (int n = 0; n < kColumns; ++n)
        out[(tile * kRows + threadIdx.x) * kColumns + n] = __uint_as_float(row[n]);
    }
  }
  __syncwarp();
  tcgen05_fence_before_thread_sync();
  __syncthreads();
  tcgen05_fence_after_thread_sync();
  const bool frees = d != Gemm::kNoDealloc && (d != Gemm::kDeallocByHalfWarp || lane < 16);
  if (warp == 0 && frees)
    tcgen05_dealloc<1>(base, d == Gemm::kDeallocFewerColumns ? kAllocated / 2 : kAllocated);
}

template <Gemm d>
Outcome run_gemm() {
  constexpr int kWidth = kBlocks * kRowBytes;
  DeviceArray<uint8_t> a(rows_of_codes(kTiles * kRows, kWidth, kRows)),
      b(rows_of_codes(kColumns, kWidth, kRows));
  DeviceArray<uint8_t> sfa(size_t(kTiles) * kBlocks * kSteps * kScaleBytes, kTwo);
  DeviceArray<uint8_t> sfb(size_t(kTiles) * kBlocks * kSteps * kScaleBytes, kOne);
  DeviceArray<float> out(size_t(kTiles) * kRows * kColumns, 0xFF);
  const auto swizzle = d == Gemm::kSwizzleMismatch ? CU_TENSOR_MAP_SWIZZLE_NONE : CU_TENSOR_MAP_SWIZZLE_64B;
  const CUtensorMap map_a = byte_map(a.data(), kWidth, kTiles * kRows, kRowBytes, kRows, swizzle);
  const CUtensorMap map_b = byte_map(b.data(), kWidth, kColumns, kRowBytes, kColumns, swizzle);
  gemm_kernel<d><<<1, 192>>>(map_a, map_b, sfa.data(), sfb.data(), out.data());
  return outcome(out, [](size_t i) {
    const int n = int(i) % kColumns, row = int(i) / kColumns;
    return 2.0f * 64 * kSteps * kBlocks * e2m1(row % kRows + row / kRows) * e2m1(n);
  });
}

// Scale factors by tcgen05.st. Every element of A and B is 1; the scales of A are 1 in the first round and 2
// in the second, which adds to the first: D = 64 * (1 + 2).
constexpr int kRounds = 2;

template <Scales d>
__global__ void __launch_bounds__(160) scales_kernel(float* out) {
  __shared__ alignas(256) uint8_t a[kRows * 32];
  __shared__ alignas(256) uint8_t b[kColumns * 32];
  __shared__ uint64_t done[kRounds];
  __shared__ uint32_t tmem_address;
  const uint32_t warp = warp_index();
  for (int i = threadIdx.x; i < kRows * 8; i += blockDim.x) reinterpret_cast<uint32_t*>(a)[i] = 0x22222222;
  for (int i = threadIdx.x; i < kColumns * 8; i += blockDim.x) reinterpret_cast<uint32_t*>(b)[i] = 0x22222222;
  if constexpr (d != Scales::kNoProxyFence) fence_proxy_async_shared();
  if (warp == 0) {
    tcgen05_alloc<1>(&tmem_address, 32);
    tcgen05_relinquish_alloc_permit<1>();
  }
  if (threadIdx.x == 0) {
    for (int round = 0; round < kRounds; ++round) mbarrier_init(&done[round], 1);
    fence_mbarrier_init_release_cluster();
  }
  tcgen05_fence_before_thread_sync();
  __syncthreads();
  tcgen05_fence_after_thread_sync();
  const uint32_t d_column = *static_cast<volatile uint32_t*>(&tmem_address), quarter = warp * 32 << 16;
  const uint32_t sfa = d_column + 16, sfb = d_column + 20;

#pragma unroll 1
  for (int round = 0; round < kRounds; ++round) {
    if (warp < 4) {
      if (round > 0 && d != Scales::kOverwrittenBeforeRead) {
        mbarrier_wait(&done[round - 1], 0);
        tcgen05_fence_after_thread_sync();
      }
      tcgen05_st_x4(sfa + quarter, (round == 0 ? kOne : kTwo) * 0x01010101u);
      tcgen05_st_x4(sfb + quarter, kOne * 0x01010101u);
      if constexpr (d != Scales::kNoWaitSt) tcgen05_wait_st();
    }
    if constexpr (d != Scales::kNoFences) tcgen05_fence_before_thread_sync();
    __syncthreads();
    if constexpr (d != Scales::kNoFences) tcgen05_fence_after_thread_sync();
    if (threadIdx.x == 128)
      tcgen05_mma_mxf4nvf4_block16<1, Collector::kDefault>(
          d_column, matrix_descriptor(a, 256, 6), matrix_descriptor(b, 256, 6), kShape, sfa, sfb, round != 0);
    __syncwarp();
    if (threadIdx.x == (d == Scales::kCommitByOtherThread ? 129 : 128)) tcgen05_commit<1>(&done[round]);
    __syncwarp();
  }
  if (warp < 4) {
    mbarrier_wait(&done[kRounds - 1], 0);
    tcgen05_fence_after_thread_sync();
    uint32_t values[kColumns];
    tcgen05_ld_32x32b(values, d_column + quarter);
    tcgen05_wait_ld();
    for (int n = 0; n < kColumns; ++n) out[threadIdx.x * kColumns + n] = __uint_as_float(values[n]);
  }
  tcgen05_fence_before_thread_sync();
  __syncthreads();
  tcgen05_fence_after_thread_sync();
  if (warp == 0) tcgen05_dealloc<1>(d_column, 32);
}

template <Scales d>
Outcome run_scales() {
  DeviceArray<float> out(size_t(kRows) * kColumns, 0xFF);
  scales_kernel<d><<<1, 160>>>(out.data());
  return outcome(out, [](size_t) { return 64.0f * 3; });
}

}  // namespace in_tensor_memory

DEFECTS_SUBJECT(Gemm, gemm, in_tensor_memory::run_gemm)
DEFECTS_SUBJECT(Scales, stored_scales, in_tensor_memory::run_scales)

}  // namespace defects
