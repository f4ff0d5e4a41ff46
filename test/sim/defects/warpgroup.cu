// warpgroup.cu -- D = A * B^T of bf16 on the tensor core of Hopper: 128 x 64, 256 deep, by one producer and
// two warpgroups with 64 rows each. A k-block of 64 is four steps of 16: A comes from shared memory by a
// descriptor in the even ones and from registers, by ldmatrix, in the odd ones.
//
//   warps    who           does
//   0        producer      TMA: A (128 rows) and B (64 rows) of a k-block into a stage of two
//   1 to 3   -             give their registers away, as warp 0 does
//   4 to 11  two consumers  wgmma, stmatrix into their half of the tile, TMA store of it
//
//   barrier   count            arrives                          means
//   full[s]   1 and 24576 B    producer, and the two copies     stage s is filled
//   empty[s]  8                lane 0 of each consumer warp     stage s may be filled again
//
// A stage and the tile of D have rows of 128 bytes under the 128-byte swizzle.

#include "sim/defects/device.cuh"
#include "sim/defects/host.h"

namespace defects {
namespace {

constexpr int kRows = 128, kColumns = 64, kBlocks = 4, kStages = 2, kSteps = 4;
constexpr int kRowBytes = 128;              // of a k-block, and of D
constexpr int kHalfBytes = 64 * kRowBytes;  // of the rows of a warpgroup
constexpr int kStageBytes = (kRows + kColumns) * kRowBytes;
constexpr int kSmemBytes = kStages * kStageBytes + kRows * kRowBytes;
constexpr int kAccumulators = kColumns / 2;
constexpr int kConsumerWarps = 8, kThreads = 384;

// Start address, 1024 bytes from 8 rows to the next, 128-byte swizzle (PTX ISA 9.7.15.5.1.2.2).
DUALGEMM_DEVICE uint64_t swizzled_matrix(uint32_t start) {
  return uint64_t((start & 0x3FFFF) >> 4) | uint64_t(1) << 16 | uint64_t(1024 >> 4) << 32 | uint64_t(1) << 62;
}

DUALGEMM_DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DUALGEMM_DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kLeft>
DUALGEMM_DEVICE void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}

#define FOUR(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define ACCUMULATORS(d) \
  FOUR(d, 0), FOUR(d, 4), FOUR(d, 8), FOUR(d, 12), FOUR(d, 16), FOUR(d, 20), FOUR(d, 24), FOUR(d, 28)
#define WGMMA                                                                                                \
  "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, " \
  "%12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
DUALGEMM_DEVICE void wgmma_shared(float (&d)[kAccumulators], uint64_t a, uint64_t b, uint32_t accumulate) {
  asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %34, 0;\n\t" WGMMA "%32, %33, p, 1, 1, 0, 0;\n\t}"
               : ACCUMULATORS(d)
               : "l"(a), "l"(b), "r"(accumulate));
}
DUALGEMM_DEVICE void wgmma_registers(float (&d)[kAccumulators], const uint32_t (&a)[4], uint64_t b) {
  asm volatile(WGMMA "{%32, %33, %34, %35}, %36, 1, 1, 1, 0;"
               : ACCUMULATORS(d)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

// The compiler does not know which registers the tensor core works on, and moves copies of registers across
// wgmma.fence and wgmma.wait_group, which name no registers. After these lines the values are in the
// registers that the next wgmma names, and what the last wgmma computed is not read before these lines.
template <int n>
DUALGEMM_DEVICE void settle(float (&values)[n]) {
#pragma unroll
  for (int i = 0; i < n; ++i) asm volatile("" : "+f"(values[i])::"memory");
}
template <int n>
DUALGEMM_DEVICE void settle(uint32_t (&values)[n]) {
#pragma unroll
  for (int i = 0; i < n; ++i) asm volatile("" : "+r"(values[i])::"memory");
}

DUALGEMM_DEVICE uint32_t pair_of(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
// Stores 16 rows of 16 columns, which lie in d as wgmma leaves them.
DUALGEMM_DEVICE void store_matrices(uint32_t address, const float* d) {
  stmatrix_x4(address, {pair_of(d[0], d[1]), pair_of(d[2], d[3]), pair_of(d[4], d[5]), pair_of(d[6], d[7])});
}

template <Warpgroup d>
DUALGEMM_DEVICE void produce(const CUtensorMap* a, const CUtensorMap* b, uint8_t* stages, uint64_t* full,
                             uint64_t* empty) {
#pragma unroll 1
  for (int block = 0; block < kBlocks; ++block) {
    const int s = block % kStages;
    uint8_t* const stage = stages + s * kStageBytes;
    mbarrier_wait(&empty[s], block / kStages % 2 ^ 1);
    mbarrier_arrive_expect_tx(&full[s], kStageBytes);
    tensor_load(stage, a, block * kRowBytes, 0, &full[s]);
    tensor_load(stage + 2 * kHalfBytes, b, block * kRowBytes, 0, &full[s]);
  }
}

// The stage was read by the tensor core, whose operation has completed, and by the lanes of this warp.
DUALGEMM_DEVICE void release(uint64_t* empty) {
  fence_proxy_async_shared();
  __syncwarp();
  if (lane_index() == 0) mbarrier_arrive(empty);
}

template <Warpgroup d>
DUALGEMM_DEVICE void multiply(float (&sums)[kAccumulators], uint32_t half, uint32_t stages, uint64_t* full,
                              uint64_t* empty) {
  uint32_t fragments[2][kSteps / 2][4];  // of this k-block and of the one before, which may be in flight
#pragma unroll
  for (int block = 0; block < kBlocks; ++block) {
    const int s = block % kStages;
    const uint32_t a = stages + s * kStageBytes + half * kHalfBytes,
                   b = stages + s * kStageBytes + 2 * kHalfBytes;
    mbarrier_wait(&full[s], block / kStages % 2);
#pragma unroll
    for (int step = 1; step < kSteps; step += 2)
      ldmatrix_x4(fragments[block % 2][step / 2], matrix_row(a, warp_index() % 4 * 16, 2 * step));
    settle(sums);
    settle(fragments[block % 2][0]);
    settle(fragments[block % 2][1]);
    if constexpr (d != Warpgroup::kNoWgmmaFence) wgmma_fence();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const uint64_t b_matrix = swizzled_matrix(b) + 2 * step;
      const uint32_t a_start = a + (d == Warpgroup::kInsidePattern ? kRowBytes : 0);
      const uint64_t a_matrix = swizzled_matrix(a_start) + 2 * step;
      if (step % 2 == 0) wgmma_shared(sums, a_matrix, b_matrix, block != 0 || step != 0);
      else wgmma_registers(sums, fragments[block % 2][step / 2], b_matrix);
    }
    wgmma_commit();
    if constexpr (d == Warpgroup::kEarlyRelease) release(&empty[s]);
    if (block == 0) continue;
    wgmma_wait<1>();
    if constexpr (d != Warpgroup::kEarlyRelease) release(&empty[(block - 1) % kStages]);
  }
  wgmma_wait<d == Warpgroup::kWaitTooFew ? 1 : 0>();
  settle(sums);
}

template <Warpgroup d>
__global__ void __launch_bounds__(kThreads, 1)
    warpgroup_kernel(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                     const __grid_constant__ CUtensorMap d_map) {
  extern __shared__ __align__(1024) uint8_t smem[];
  __shared__ uint64_t full[kStages], empty[kStages];
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      mbarrier_init(&full[s], 1);
      mbarrier_init(&empty[s], kConsumerWarps);
    }
    fence_mbarrier_init_release_cluster();
  }
  __syncthreads();

  if (warp_index() < 4) {  // 384 threads of 168 registers: 128 release 144 each, 256 take 72
    if constexpr (d == Warpgroup::kPoolTooSmall) {
      asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    } else if constexpr (d == Warpgroup::kRegistersDiffer) {
      if (warp_index() == 0) asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
      else asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
    } else {
      asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    }
    if (threadIdx.x == 0) produce<d>(&a_map, &b_map, smem, full, empty);
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
  const uint32_t half = warp_index() / 4 - 1;
  float sums[kAccumulators] = {};
  multiply<d>(sums, half, smem_u32(smem), full, empty);

  uint8_t* const tile = smem + kStages * kStageBytes + half * kHalfBytes;
#pragma unroll
  for (int chunk = 0; chunk < kColumns / 8; chunk += 2)
    store_matrices(matrix_row(smem_u32(tile), warp_index() % 4 * 16, chunk), &sums[4 * chunk]);
  if constexpr (d != Warpgroup::kNoProxyFence) fence_proxy_async_shared();
  bar_sync(1 + half, 128);
  if (threadIdx.x % 128 == 0) {
    tensor_store(&d_map, 0, int(half) * 64, tile);
    bulk_commit_group();
    bulk_wait_group_read<0>();
  }
}

int a_element(int m, int k) { return (m + k * k) % 3 - 1; }
int b_element(int n, int k) { return (2 * n + k) % 5 % 3 - 1; }

template <class Element>
std::vector<uint16_t> matrix(int rows, Element element) {
  std::vector<uint16_t> values;
  for (int row = 0; row < rows; ++row)
    for (int k = 0; k < kBlocks * 64; ++k) values.push_back(bf16(element(row, k)));
  return values;
}

template <Warpgroup d>
Outcome run() {
  DeviceArray<uint16_t> a(matrix(kRows, a_element)), b(matrix(kColumns, b_element)), out(kRows * kColumns);
  constexpr CUtensorMapSwizzle kSwizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  cudaFuncSetAttribute(warpgroup_kernel<d>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemBytes);
  warpgroup_kernel<d><<<1, kThreads, kSmemBytes>>>(
      byte_map(a.data(), kBlocks * kRowBytes, kRows, kRowBytes, kRows, kSwizzle),
      byte_map(b.data(), kBlocks * kRowBytes, kColumns, kRowBytes, kColumns, kSwizzle),
      byte_map(out.data(), kRowBytes, kRows, kRowBytes, 64, kSwizzle));
  return outcome(out, [](size_t i) {
    int sum = 0;
    for (int k = 0; k < kBlocks * 64; ++k)
      sum += a_element(int(i) / kColumns, k) * b_element(int(i) % kColumns, k);
    return bf16(sum);  // at most 256, which bf16 holds
  });
}

}  // namespace

DEFECTS_SUBJECT(Warpgroup, warpgroup, run)

}  // namespace defects
