// wrappers_test.cu -- tiny kernels that between them execute every wrapper of ptx/ that works inside one CTA,
// each named after the wrapper it is about and writing an observable result to `out`. An instruction that has
// an effect only together with others (a commit, a load from tensor memory) runs in a kernel of those others.
// wrappers_run_test.cpp launches them and knows what the results must be. One warp each unless said; CTA
// group 1 throughout.
#include <cstdint>

#include "bench/ablation/bulk.cuh"
#include "ptx/cluster.cuh"
#include "ptx/descriptor.h"
#include "ptx/global.cuh"
#include "ptx/math.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/sync.cuh"
#include "ptx/tcgen05_mem.cuh"
#include "ptx/tcgen05_mma.cuh"
#include "ptx/tma.cuh"
#include "test/ptx/multiply.cuh"
#include "test/ptx/wrappers.h"

namespace ptx = dualgemm::ptx;

namespace {

constexpr uint32_t kColumns = 32;  // the smallest allocation of tensor memory

__device__ void wait(uint64_t* mbar, uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(mbar, parity)) {
  }
}

// Allocates tensor memory for the whole warp.
__device__ uint32_t allocate(uint32_t* base, uint32_t columns) {
  ptx::tcgen05_alloc<1>(base, columns);
  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  ptx::tcgen05_fence_after_thread_sync();
  return *base;
}

// Makes a barrier with one arrival to a phase, ready for the asynchronous units.
__device__ void init(uint64_t* mbar) {
  if (ptx::elect_sync()) {
    ptx::mbarrier_init(mbar, 1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
}

// Writes all columns of this thread's lane to `out`, kWidth at a time.
template <int kWidth>
__device__ void load(uint32_t* out, uint32_t tmem) {
  for (uint32_t column = 0; column < kColumns; column += kWidth) {
    uint32_t values[kWidth];
    ptx::tcgen05_ld_32x32b(values, tmem + column);
    ptx::tcgen05_wait_ld();
#pragma unroll
    for (int i = 0; i < kWidth; ++i) out[column + i] = values[i];
  }
}

}  // namespace

// out[0..31]: 1 in one lane, 0 in the others.
extern "C" __global__ void elect_sync(uint32_t* out) { out[threadIdx.x] = ptx::elect_sync(); }

// 128 threads. out[t]: 1000 + (t ^ 32), what the other warp of a pair of warps wrote before both met at the
// pair's own barrier, which waits for `threads`.
extern "C" __global__ void barrier_sync(uint32_t threads, uint32_t* out) {
  __shared__ uint32_t words[128];
  const int warp = __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) / 32, 0);
  words[threadIdx.x] = 0;
  __syncthreads();
  words[threadIdx.x] = 1000 + threadIdx.x;
  ptx::barrier_sync(static_cast<uint32_t>(1 + warp / 2), threads);
  out[threadIdx.x] = words[threadIdx.x ^ 32];
}

// 96 threads. The first warp arrives at a barrier that waits for `threads`, and goes on; the second meets it
// there, the third does nothing. out[t] = 1000 + t of what the first warp wrote before, read by the second.
extern "C" __global__ void barrier_arrive(uint32_t threads, uint32_t* out) {
  __shared__ uint32_t words[32];
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
  if (warp == 0) {
    words[lane] = 1000 + lane;
    ptx::barrier_arrive(1, threads);
  } else if (warp == 1) {
    ptx::barrier_sync(1, threads);
    out[lane] = words[lane];
  }
}

// 96 threads. Two warps meet at a barrier that waits for `threads`: out[t] is 1 if one of them is `chosen`.
extern "C" __global__ void barrier_red_or(uint32_t threads, int32_t chosen, uint32_t* out) {
  if (threadIdx.x < 64)
    out[threadIdx.x] = ptx::barrier_red_or(1, threads, static_cast<int32_t>(threadIdx.x) == chosen);
}

// Writes out[t] = in[t] + 1. `waits` says whether it waits for the preceding kernel. The kernel that follows
// may start before it writes.
extern "C" __global__ void griddepcontrol(const uint32_t* in, int32_t waits, uint32_t* out) {
  if (waits) ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  out[threadIdx.x] = in[threadIdx.x] + 1;
}

// out[0]: 1 once phase 0 of a barrier with two arrivals has completed after `arrivals` of them.
extern "C" __global__ void mbarrier_arrive(int32_t arrivals, uint32_t* out) {
  __shared__ uint64_t mbar;
  if (ptx::elect_sync()) {
    ptx::mbarrier_init(&mbar, 2);
    ptx::fence_mbarrier_init_release_cluster();
    for (int i = 0; i < arrivals; ++i) ptx::mbarrier_arrive(&mbar);
    wait(&mbar, 0);
    out[0] = 1;
  }
}

// out[0]: 1 once phase 0 has completed after its only arrival, which announced `bytes`, and a copy of 64
// bytes (4 x 4 words, no swizzle).
extern "C" __global__ void mbarrier_arrive_expect_tx(const __grid_constant__ CUtensorMap map, uint32_t bytes,
                                                     uint32_t* out) {
  __shared__ alignas(128) uint32_t box[16];
  __shared__ uint64_t mbar;
  init(&mbar);
  if (ptx::elect_sync()) {
    ptx::mbarrier_arrive_expect_tx(&mbar, bytes);
    ptx::cp_async_bulk_tensor_3d(box, &map, {0, 0, 0}, &mbar, ptx::create_policy_evict_first());
    wait(&mbar, 0);
    out[0] = 1;
  }
}

// out[0]: 1 once a wait for `parity` on a new barrier has ended.
extern "C" __global__ void mbarrier_try_wait_parity(uint32_t parity, uint32_t* out) {
  __shared__ uint64_t mbar;
  init(&mbar);
  if (ptx::elect_sync()) {
    wait(&mbar, parity);
    out[0] = 1;
  }
}

// out[0..31]: the 4 x 4 x 2 words at {c0, c1, c2} of a 3-D map of 32-bit elements
// with such a box, no swizzle.
extern "C" __global__ void cp_async_bulk_tensor_3d(const __grid_constant__ CUtensorMap map, int32_t c0,
                                                   int32_t c1, int32_t c2, int32_t last, uint32_t* out) {
  __shared__ alignas(128) uint32_t box[32];
  __shared__ uint64_t mbar;
  init(&mbar);
  if (ptx::elect_sync()) {
    ptx::mbarrier_arrive_expect_tx(&mbar, sizeof(box));
    ptx::cp_async_bulk_tensor_3d(box, &map, {c0, c1, c2}, &mbar,
                                 last ? ptx::create_policy_evict_last() : ptx::create_policy_evict_first());
  }
  __syncwarp();
  wait(&mbar, 0);
  out[threadIdx.x] = box[threadIdx.x];
}

// out[0..31]: the 4 x 2 x 2 x 2 words at {c0, c1, c2, c3} of a 4-D map of 32-bit elements with such a box.
extern "C" __global__ void cp_async_bulk_tensor_4d(const __grid_constant__ CUtensorMap map, int32_t c0,
                                                   int32_t c1, int32_t c2, int32_t c3, uint32_t* out) {
  __shared__ alignas(128) uint32_t box[32];
  __shared__ uint64_t mbar;
  init(&mbar);
  if (ptx::elect_sync()) {
    ptx::mbarrier_arrive_expect_tx(&mbar, sizeof(box));
    ptx::cp_async_bulk_tensor_4d(box, &map, {c0, c1, c2, c3}, &mbar, ptx::create_policy_evict_last());
  }
  __syncwarp();
  wait(&mbar, 0);
  out[threadIdx.x] = box[threadIdx.x];
}

// out[0..255]: shared memory as the copy of a 128-byte-swizzled box of 2 x 4 rows of 128 bytes leaves it.
extern "C" __global__ void cp_async_bulk_tensor_3d_swizzled(const __grid_constant__ CUtensorMap map,
                                                            uint32_t* out) {
  __shared__ alignas(1024) uint32_t box[256];
  __shared__ uint64_t mbar;
  init(&mbar);
  if (ptx::elect_sync()) {
    ptx::mbarrier_arrive_expect_tx(&mbar, sizeof(box));
    ptx::cp_async_bulk_tensor_3d(box, &map, {0, 0, 0}, &mbar, ptx::create_policy_evict_first());
  }
  __syncwarp();
  wait(&mbar, 0);
  for (uint32_t i = threadIdx.x; i < 256; i += 32) out[i] = box[i];
}

// out[0]: 1. A prefetch has no other effect than not to fail.
extern "C" __global__ void cp_async_bulk_prefetch_tensor_3d(const __grid_constant__ CUtensorMap map,
                                                            int32_t c0, int32_t c1, int32_t c2,
                                                            uint32_t* out) {
  if (ptx::elect_sync()) {
    ptx::cp_async_bulk_prefetch_tensor_3d(&map, {c0, c1, c2});
    out[0] = 1;
  }
}

// out[0]: 1, likewise.
extern "C" __global__ void prefetch_tensormap(const __grid_constant__ CUtensorMap map, uint32_t* out) {
  if (ptx::elect_sync()) {
    ptx::prefetch_tensormap(&map);
    out[0] = 1;
  }
}

// out[0..63] and out[64..127]: the first `bytes` of 1000 + i and of 2000 + i, copied one after the other from
// the same place; out[128]: what then stands in out[0]. `wait_read`: before the place is written again;
// `wait_written`: before out[0] is read.
extern "C" __global__ void cp_async_bulk_shared_to_global(uint32_t bytes, int32_t wait_read,
                                                          int32_t wait_written, uint32_t* out) {
  __shared__ alignas(16) uint32_t words[64];
  for (uint32_t round = 0; round < 2; ++round) {
    for (uint32_t i = threadIdx.x; i < 64; i += 32) words[i] = 1000 * (round + 1) + i;
    ptx::fence_proxy_async();
    __syncwarp();
    if (ptx::elect_sync()) {
      bench::cp_async_bulk_shared_to_global(out + 64 * round, words, bytes);
      bench::cp_async_bulk_commit_group();
      if (wait_read) bench::cp_async_bulk_wait_group_read();
    }
    __syncwarp();
  }
  if (ptx::elect_sync()) {
    if (wait_written) bench::cp_async_bulk_wait_group();
    out[128] = out[0];
  }
}

// out[0..1]: the addresses of two allocations, which do not overlap; both are freed.
extern "C" __global__ void tcgen05_alloc(uint32_t* out) {
  __shared__ uint32_t base[2];
  const uint32_t first = allocate(&base[0], kColumns);
  const uint32_t second = allocate(&base[1], kColumns);
  ptx::tcgen05_relinquish_alloc_permit<1>();
  if (ptx::elect_sync()) {
    out[0] = first;
    out[1] = second;
  }
  __syncwarp();
  ptx::tcgen05_dealloc<1>(first, kColumns);
  ptx::tcgen05_dealloc<1>(second, kColumns);
}

// out[0..1]: the addresses of two allocations of all 512 columns, of which the second ends only because the
// first was freed.
extern "C" __global__ void tcgen05_dealloc(uint32_t* out) {
  constexpr uint32_t kAll = 512;
  __shared__ uint32_t base[2];
  for (int i = 0; i < 2; ++i) {
    const uint32_t tmem = allocate(&base[i], kAll);
    if (ptx::elect_sync()) out[i] = tmem;
    __syncwarp();
    ptx::tcgen05_dealloc<1>(tmem, kAll);
  }
  ptx::tcgen05_relinquish_alloc_permit<1>();
}

// 128 threads. out[32 * lane + column] = word column % 4 of row lane % 32 of block column / 4 of `rows`:
// eight blocks of 32 rows of 4 words, each copied to four columns. Also the kernel of tcgen05_ld, which reads
// them back `width` columns at a time, and of tcgen05_commit, without which the wait would not end.
extern "C" __global__ void tcgen05_cp_32x128b_warpx4(const __grid_constant__ CUtensorMap rows, int32_t width,
                                                     uint32_t* out) {
  __shared__ alignas(1024) uint32_t source[kColumns / 4][128];
  __shared__ uint64_t filled, copied;
  __shared__ uint32_t base;
  const int warp = __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) / 32, 0);
  if (warp == 0) {
    if (ptx::elect_sync()) {
      ptx::mbarrier_init(&filled, 1);
      ptx::mbarrier_init(&copied, 1);
      ptx::fence_mbarrier_init_release_cluster();
    }
    __syncwarp();
    ptx::tcgen05_alloc<1>(&base, kColumns);
  }
  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  ptx::tcgen05_fence_after_thread_sync();
  if (warp == 0) {
    if (ptx::elect_sync()) {
      ptx::mbarrier_arrive_expect_tx(&filled, sizeof(source));
      ptx::cp_async_bulk_tensor_3d(source, &rows, {0, 0, 0}, &filled, ptx::create_policy_evict_first());
      wait(&filled, 0);
      ptx::tcgen05_fence_after_thread_sync();
      for (uint32_t column = 0; column < kColumns; column += 4)
        ptx::tcgen05_cp_32x128b_warpx4<1>(base + column,
                                          ptx::scale_descriptor(ptx::smem_u32(source[column / 4])));
      ptx::tcgen05_commit<1>(&copied);
    }
    __syncwarp();
  }
  wait(&copied, 0);
  __syncwarp();
  ptx::tcgen05_fence_after_thread_sync();
  const uint32_t lanes = base + (static_cast<uint32_t>(warp) << 21);
  uint32_t* row = out + kColumns * threadIdx.x;
  if (width == 8) load<8>(row, lanes);
  else if (width == 16) load<16>(row, lanes);
  else load<32>(row, lanes);
  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  if (warp == 0) ptx::tcgen05_dealloc<1>(base, kColumns);
}

// 128 threads. out[64 * row + column]: the fp32 bits of D = A * B^T for two B of 32 rows, side by side, K =
// 64, computed `times` times onto itself, so that D = times * A * B^T. `a` is a 128-byte-swizzled map of 128
// rows x 128 bytes, `b` of 64 such rows, `scales` of three rows of 128 words: an atom for A and one for each
// B. `collector`: see multiply.cuh.
extern "C" __global__ void tcgen05_mma_mxf4nvf4_block16(const __grid_constant__ CUtensorMap a,
                                                        const __grid_constant__ CUtensorMap b,
                                                        const __grid_constant__ CUtensorMap scales,
                                                        int32_t times, int32_t collector, uint32_t* out) {
  constexpr uint32_t kN = wrappers::kProductN;
  constexpr uint32_t kScales = 2 * kN, kAllocated = 128;  // D in columns 0-63, then SFA, SFB, SFB
  __shared__ alignas(1024) uint8_t a_rows[128 * 128], b_rows[2][kN * 128];
  __shared__ alignas(1024) uint8_t atoms[3][512];
  __shared__ uint64_t filled, done;
  __shared__ uint32_t base;
  const int warp = __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) / 32, 0);
  if (warp == 0) {
    if (ptx::elect_sync()) {
      ptx::mbarrier_init(&filled, 1);
      ptx::mbarrier_init(&done, 1);
      ptx::fence_mbarrier_init_release_cluster();
    }
    __syncwarp();
    ptx::tcgen05_alloc<1>(&base, kAllocated);
  }
  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  ptx::tcgen05_fence_after_thread_sync();
  if (warp == 0) {
    if (ptx::elect_sync()) {
      const uint64_t policy = ptx::create_policy_evict_first();
      ptx::mbarrier_arrive_expect_tx(&filled, sizeof(a_rows) + sizeof(b_rows) + sizeof(atoms));
      ptx::cp_async_bulk_tensor_3d(a_rows, &a, {0, 0, 0}, &filled, policy);
      ptx::cp_async_bulk_tensor_3d(b_rows, &b, {0, 0, 0}, &filled, policy);
      ptx::cp_async_bulk_tensor_3d(atoms, &scales, {0, 0, 0}, &filled, policy);
      wait(&filled, 0);
      ptx::tcgen05_fence_after_thread_sync();
      for (uint32_t i = 0; i < 3; ++i)
        ptx::tcgen05_cp_32x128b_warpx4<1>(base + kScales + 4 * i,
                                          ptx::scale_descriptor(ptx::smem_u32(atoms[i])));
      const wrappers::Operands operands = {ptx::operand_descriptor(ptx::smem_u32(a_rows)),
                                           {ptx::operand_descriptor(ptx::smem_u32(b_rows[0])),
                                            ptx::operand_descriptor(ptx::smem_u32(b_rows[1]))},
                                           base,
                                           base + kScales,
                                           base + kScales + 4,
                                           ptx::mxf4nvf4_instruction_descriptor(128, kN)};
      for (int i = 0; i < times; ++i) wrappers::multiply<1>(operands, collector, /*accumulate=*/i > 0);
      ptx::tcgen05_commit<1>(&done);
    }
    __syncwarp();
  }
  wait(&done, 0);
  __syncwarp();
  ptx::tcgen05_fence_after_thread_sync();
  wrappers::read_products(out + 2 * kN * threadIdx.x, base, warp);
  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  ptx::tcgen05_fence_after_thread_sync();
  if (warp == 0) ptx::tcgen05_dealloc<1>(base, kAllocated);
}

// out[i] = 2 to the in[i].
extern "C" __global__ void ex2_approx_ftz(const float* in, float* out) {
  out[threadIdx.x] = ptx::ex2_approx_ftz(in[threadIdx.x]);
}

// out[i] = 1 / in[i].
extern "C" __global__ void rcp_approx_ftz(const float* in, float* out) {
  out[threadIdx.x] = ptx::rcp_approx_ftz(in[threadIdx.x]);
}

// out[i]: in[2 i] as fp16 in the lower half, in[2 i + 1] in the upper.
extern "C" __global__ void cvt_rn_f16x2_f32(const float* in, uint32_t* out) {
  out[threadIdx.x] = ptx::cvt_rn_f16x2_f32(in[2 * threadIdx.x + 1], in[2 * threadIdx.x]);
}

// out[i]: in[2 i] as bf16 in the lower half, in[2 i + 1] in the upper.
extern "C" __global__ void cvt_rn_bf16x2_f32(const float* in, uint32_t* out) {
  out[threadIdx.x] = ptx::cvt_rn_bf16x2_f32(in[2 * threadIdx.x + 1], in[2 * threadIdx.x]);
}

// out[i] = the smaller of in[2 i] and in[2 i + 1].
extern "C" __global__ void min_nan(const float* in, float* out) {
  out[threadIdx.x] = ptx::min_nan(in[2 * threadIdx.x], in[2 * threadIdx.x + 1]);
}

// out[i] = the larger of in[2 i] and in[2 i + 1].
extern "C" __global__ void max_nan(const float* in, float* out) {
  out[threadIdx.x] = ptx::max_nan(in[2 * threadIdx.x], in[2 * threadIdx.x + 1]);
}

// out[i]: in[2 i] as e4m3 in the lower byte, in[2 i + 1] in the next.
extern "C" __global__ void cvt_rn_satfinite_e4m3x2_f32(const float* in, uint32_t* out) {
  out[threadIdx.x] = ptx::cvt_rn_satfinite_e4m3x2_f32(in[2 * threadIdx.x + 1], in[2 * threadIdx.x]);
}

// out[2 i] and out[2 i + 1]: the two e4m3 of in[i], the lower byte first.
extern "C" __global__ void cvt_rn_f16x2_e4m3x2(const uint32_t* in, float* out) {
  const uint32_t halves = ptx::cvt_rn_f16x2_e4m3x2(static_cast<uint16_t>(in[threadIdx.x]));
  out[2 * threadIdx.x] = ptx::cvt_f32_f16(static_cast<uint16_t>(halves));
  out[2 * threadIdx.x + 1] = ptx::cvt_f32_f16(static_cast<uint16_t>(halves >> 16));
}

// out[i]: in[8 i] to in[8 i + 7] as e2m1, the first in the lowest nibble.
extern "C" __global__ void cvt_rn_satfinite_e2m1x8_f32(const float* in, uint32_t* out) {
  float x[8];
  for (int i = 0; i < 8; ++i) x[i] = in[8 * threadIdx.x + i];
  out[threadIdx.x] = ptx::cvt_rn_satfinite_e2m1x8_f32(x);
}

// out[8 t .. 8 t + 7] = 8 t .. 8 t + 7 for every thread t; `out` is a multiple of 32.
extern "C" __global__ void st_global_v8_b32(uint32_t* out) {
  uint32_t values[8];
  for (uint32_t i = 0; i < 8; ++i) values[i] = 8 * threadIdx.x + i;
  ptx::st_global_v8_b32(out + 8 * threadIdx.x, values);
}

// out[4 t .. 4 t + 3] = 4 t .. 4 t + 3 for every thread t; `out` is a multiple of 16.
extern "C" __global__ void st_global_v4_b32(uint32_t* out) {
  uint32_t values[4];
  for (uint32_t i = 0; i < 4; ++i) values[i] = 4 * threadIdx.x + i;
  ptx::st_global_v4_b32(out + 4 * threadIdx.x, values);
}

// out[2 t], out[2 t + 1] = 2 t, 2 t + 1 for every thread t; `out` is a multiple of 8.
extern "C" __global__ void st_global_v2_b32(uint32_t* out) {
  const uint32_t values[2] = {2 * threadIdx.x, 2 * threadIdx.x + 1};
  ptx::st_global_v2_b32(out + 2 * threadIdx.x, values);
}

// Every thread raises *out to its in[i].
extern "C" __global__ void red_global_max_s32(const int32_t* in, int32_t* out) {
  ptx::red_global_max_s32(out, in[threadIdx.x]);
}

// One warp per CTA. Each writes four words per lane, 1 + the number of its CTA, and counts itself. The last
// one adds up, lane by lane, what all have written: out[4 t + i]. out[128 + c]: what CTA c found in
// `count`.
extern "C" __global__ void atom_acq_rel_gpu_global_add_u32(uint32_t* count, uint32_t* words, uint32_t* out) {
  const uint32_t mine = 1 + blockIdx.x, values[4] = {mine, 2 * mine, 3 * mine, 4 * mine};
  ptx::st_global_v4_b32(words + 128 * blockIdx.x + 4 * threadIdx.x, values);
  __syncwarp();
  const uint32_t found = ptx::atom_acq_rel_gpu_global_add_u32_if(count, 1, threadIdx.x == 0);
  if (threadIdx.x == 0) out[128 + blockIdx.x] = found;
  __syncwarp();
  if (__shfl_sync(0xffffffff, found, 0) != gridDim.x - 1) return;
  uint32_t sums[4] = {};
  for (uint32_t cta = 0; cta < gridDim.x; ++cta) {
    uint32_t read[4];
    ptx::ld_global_v4_b32(read, words + 128 * cta + 4 * threadIdx.x);
    for (int i = 0; i < 4; ++i) sums[i] += read[i];
  }
  ptx::st_global_v4_b32(out + 4 * threadIdx.x, sums);
}

// One warp per CTA. The first CTA writes words[t] = 1000 + t and counts itself; each other waits for that,
// and copies the words to out[32 (CTA - 1) + t].
extern "C" __global__ void ld_acquire_gpu_global_u32(uint32_t* count, uint32_t* words, uint32_t* out) {
  if (blockIdx.x == 0) {
    words[threadIdx.x] = 1000 + threadIdx.x;
    __syncwarp();
    ptx::atom_acq_rel_gpu_global_add_u32_if(count, 1, threadIdx.x == 0);
    return;
  }
  while (__shfl_sync(0xffffffff, ptx::ld_acquire_gpu_global_u32_if(count, threadIdx.x == 0), 0) == 0) {
  }
  __syncwarp();  // what the lane that loads has acquired, the others have, too
  out[32 * (blockIdx.x - 1) + threadIdx.x] = words[threadIdx.x];
}
