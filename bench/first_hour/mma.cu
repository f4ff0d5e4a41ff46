// mma.cu -- the tensor core of compute capability 10.x and its memory: mma of several widths, by one CTA and
// by a pair, beside copies of scale factors; the way from the last mma to a thread that waits; loads of
// tensor memory. Copies write what is there already, at any time: nothing orders them and the mma, so that
// the judge of the simulator has something to say of them, and every sum is right all the same.
#include <algorithm>
#include <string>

#include "bench/first_hour/clock.cuh"
#include "bench/first_hour/microbenchmark.h"
#include "ptx/cluster.cuh"
#include "ptx/descriptor.h"
#include "ptx/mbarrier.cuh"
#include "ptx/sync.cuh"
#include "ptx/tcgen05_mem.cuh"
#include "ptx/tcgen05_mma.cuh"
#include "test/support/device_memory.h"

namespace bench {
namespace {

namespace ptx = dualgemm::ptx;
using dualgemm_test::check_cuda;
using dualgemm_test::DeviceArray;

constexpr int kThreads = 128, kMmaK = 64, kMostCopies = 4, kClump = 4;
constexpr int kMostN = 256, kRowBytes = 128, kAtomBytes = 512;
constexpr uint32_t kOnes = 0x22222222, kOneFactors = 0x38383838;  // of e2m1, of ue4m3
// Tensor memory: the accumulator, then two windows of factors that are used in turn.
constexpr uint32_t kWindows = kMostN, kWindowColumns = 4 * kMostCopies, kColumns = 512;

// Who copies the scale factors, and when: before each mma, for kClump mma at a time, or another thread
// whenever it can.
enum class Copies { kBeforeEach, kClumped, kByAnother };

struct Operands {
  uint8_t a[128 * kRowBytes], b[kMostN * kRowBytes];
  uint8_t factors[kMostCopies][kAtomBytes];
  uint64_t done, copied;
  uint32_t base;
};

__device__ void wait(uint64_t* barrier, uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(barrier, parity)) {
  }
}

template <int kGroup>
__device__ void commit(uint64_t* barrier) {
  if constexpr (kGroup == 2) ptx::tcgen05_commit_multicast(barrier, 3);
  else ptx::tcgen05_commit<1>(barrier);
}

template <int kGroup>
__device__ void meet() {
  if constexpr (kGroup == 2) {
    ptx::cluster_arrive_release();
    ptx::cluster_wait_acquire();
  } else {
    __syncthreads();
  }
}

template <int kGroup, int kCount>
__device__ void copy(const Operands& x, uint32_t window) {
#pragma unroll
  for (int i = 0; i < kCount; ++i)
    ptx::tcgen05_cp_32x128b_warpx4<kGroup>(x.base + kWindows + window * kWindowColumns + 4 * i,
                                           ptx::scale_descriptor(ptx::smem_u32(x.factors[i])));
}

template <int kGroup>
__device__ void multiply(const Operands& x, uint32_t instruction, int step, uint32_t window) {
  const uint64_t a = ptx::operand_descriptor(ptx::smem_u32(x.a)),
                 b = ptx::operand_descriptor(ptx::smem_u32(x.b));
  const uint32_t sfa = x.base + kWindows + window * kWindowColumns, offset = step % 4 * (kMmaK / 2);
  ptx::tcgen05_mma_mxf4nvf4_block16<kGroup>(x.base, ptx::advance(a, offset), ptx::advance(b, offset),
                                            instruction, sfa, sfa + 4, step > 0);
}

// The mma of all steps, with their copies. One thread calls this.
template <int kGroup, int kCopies, Copies kWay>
__device__ void issue(const Operands& x, uint32_t instruction, int steps) {
#pragma unroll 1
  for (int first = 0; first < steps; first += kClump) {
    if constexpr (kWay == Copies::kClumped)
#pragma unroll
      for (int i = 0; i < kClump; ++i) copy<kGroup, kCopies>(x, i % 2);
#pragma unroll
    for (int i = 0; i < kClump; ++i) {
      if constexpr (kWay == Copies::kBeforeEach) copy<kGroup, kCopies>(x, i % 2);
      multiply<kGroup>(x, instruction, first + i, i % 2);
    }
  }
}

// Multiplies ones. Writes the cycles from the first issue until a thread knows that all is done, and how many
// sums are wrong.
template <int kGroup, int kCopies, Copies kWay>
__global__ void __cluster_dims__(kGroup) __launch_bounds__(kThreads)
    run_steps(int n, int steps, int64_t* cycles, int32_t* wrong) {
  extern __shared__ __align__(1024) uint8_t bytes[];
  Operands& x = *reinterpret_cast<Operands*>(bytes);
  const int warp = __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) / 32, 0);
  const uint32_t rank = kGroup == 2 ? ptx::cluster_ctarank() : 0;
  const auto fill = [](uint8_t* to, size_t size, uint32_t word) {
    for (size_t i = threadIdx.x; i < size / 4; i += kThreads) reinterpret_cast<uint32_t*>(to)[i] = word;
  };
  fill(x.a, sizeof x.a, kOnes);
  fill(x.b, sizeof x.b, kOnes);
  fill(x.factors[0], sizeof x.factors, kOneFactors);
  // With the meeting below, operands are written for mma and copies, which read through the async proxy, and
  // the barriers are there for both CTAs.
  ptx::fence_proxy_async();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&x.done, 1);
    ptx::mbarrier_init(&x.copied, 1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  meet<kGroup>();
  if (warp == 0) {
    ptx::tcgen05_alloc<kGroup>(&x.base, kColumns);
    ptx::tcgen05_relinquish_alloc_permit<kGroup>();
  }
  // The allocation comes before every other use of tensor memory.
  ptx::tcgen05_fence_before_thread_sync();
  meet<kGroup>();
  ptx::tcgen05_fence_after_thread_sync();
  const uint32_t instruction = ptx::mxf4nvf4_instruction_descriptor(128 * kGroup, n);
  if (rank == 0 && warp == 0 && ptx::elect_sync()) {
    copy<kGroup, kMostCopies>(x, 0);
    copy<kGroup, kMostCopies>(x, 1);
    commit<kGroup>(&x.copied);
  }
  __syncwarp();
  // Both windows have their factors before the first mma.
  wait(&x.copied, 0);
  meet<kGroup>();
  ptx::tcgen05_fence_after_thread_sync();
  if (rank == 0 && warp == 0) {
    const int64_t start = cycles_now();
    if (ptx::elect_sync()) {
      issue<kGroup, kCopies, kWay>(x, instruction, steps);
      commit<kGroup>(&x.done);
    }
    __syncwarp();
    wait(&x.done, 0);
    if (threadIdx.x == 0) cycles[0] = cycles_now() - start;
  }
  if constexpr (kWay == Copies::kByAnother) {
    if (rank == 0 && warp == 1 && ptx::elect_sync()) {
#pragma unroll 1
      for (int step = 0; step < steps; step += 2) {
        copy<kGroup, kCopies>(x, 0);
        copy<kGroup, kCopies>(x, 1);
      }
      commit<kGroup>(&x.copied);
    }
    __syncwarp();
    wait(&x.copied, 1);  // no copy is under way when the memory is given back
  }
  wait(&x.done, 0);  // the sums are complete before they are loaded
  __syncwarp();
  ptx::tcgen05_fence_after_thread_sync();
  int32_t others = 0;
  for (int column = 0; column < n; column += 32) {
    uint32_t sums[32];
    ptx::tcgen05_ld_32x32b(sums, x.base + (static_cast<uint32_t>(warp) << 21) + column);
    ptx::tcgen05_wait_ld();
#pragma unroll
    for (int i = 0; i < 32; ++i) others += __uint_as_float(sums[i]) != static_cast<float>(kMmaK * steps);
  }
  atomicAdd(wrong, others);
  // All warps of both CTAs have loaded their sums before the memory is given back.
  ptx::tcgen05_fence_before_thread_sync();
  meet<kGroup>();
  ptx::tcgen05_fence_after_thread_sync();
  if (warp == 0) ptx::tcgen05_dealloc<kGroup>(x.base, kColumns);
}

constexpr int kOperandBytes = sizeof(Operands);

template <int kGroup, int kCopies, Copies kWay>
double cycles_of(int n, int steps) {
  auto* const kernel = &run_steps<kGroup, kCopies, kWay>;
  const DeviceArray<int64_t> cycles(1);
  const DeviceArray<int32_t> wrong(1, 0);
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kOperandBytes),
             "cudaFuncSetAttribute");
  kernel<<<kGroup, kThreads, kOperandBytes>>>(n, steps, cycles.data(), wrong.data());
  check_cuda(cudaGetLastError(), "mma");
  require(wrong.host()[0] == 0, "mma of N = " + std::to_string(n));
  return static_cast<double>(cycles.host()[0]);
}

std::string name_of(int group, int n, int copies, Copies way) {
  const char* const when = way == Copies::kBeforeEach ? "before each"
                           : way == Copies::kClumped  ? "for four mma at once"
                                                      : "by another thread";
  const std::string mma = "mma of " + std::to_string(128 * group) + " x " + std::to_string(n) + " x 64";
  return copies == 0 ? mma
                     : mma + ", " + std::to_string(copies) + (copies == 1 ? " copy " : " copies ") + when;
}

template <int kGroup, int kCopies, Copies kWay>
void measure_way(const Subject& on, int n, Findings* out) {
  const int few = on.simulated ? kClump : 64, many = 2 * few;
  const auto cycles = [&](int steps) { return cycles_of<kGroup, kCopies, kWay>(n, steps); };
  const char* const constant = kCopies == 0 ? "mma_cycles" : "";
  out->measure(on, name_of(kGroup, n, kCopies, kWay), "cycles", constant,
               [&] { return (cycles(many) - cycles(few)) / (many - few); });
  if (kCopies == 0) out->modelled(modelled_mma_cycles(kGroup, n));
}

template <int kGroup, int kCopies>
void measure_ways(const Subject& on, int n, Findings* out) {
  measure_way<kGroup, kCopies, Copies::kBeforeEach>(on, n, out);
  measure_way<kGroup, kCopies, Copies::kClumped>(on, n, out);
  measure_way<kGroup, kCopies, Copies::kByAnother>(on, n, out);
}

template <int kGroup>
void measure_widths(const Subject& on, Findings* out) {
  for (const int n : {64, 128, 192, 256}) {
    measure_way<kGroup, 0, Copies::kBeforeEach>(on, n, out);
    measure_ways<kGroup, 1>(on, n, out);
    measure_ways<kGroup, 2>(on, n, out);
    measure_ways<kGroup, 3>(on, n, out);
    measure_ways<kGroup, 4>(on, n, out);
  }
}

// What each of four copies before an mma adds to it.
void add_copy(const char* name, const char* constant, int group, int n, Findings* out) {
  Measurement x{name, "cycles", {}, constant};
  const std::vector<double>& none = out->values(name_of(group, n, 0, Copies::kBeforeEach));
  const std::vector<double>& four = out->values(name_of(group, n, kMostCopies, Copies::kBeforeEach));
  for (size_t i = 0; i < none.size(); ++i) x.values.push_back((four[i] - none[i]) / kMostCopies);
  out->add(x);
}

// ---- loads of tensor memory -------------------------------------------------------------------------------

constexpr int kLoadThreads = 256;  // eight warps, as an epilogue has

// Each warp loads kWidth columns of its quarter of the lanes, again and again. Every column holds the same.
template <int kWidth>
__global__ void __launch_bounds__(kLoadThreads) load(int rounds, int64_t* cycles, int32_t* wrong) {
  __shared__ __align__(128) uint32_t atom[kAtomBytes / 4];
  __shared__ uint64_t copied;
  __shared__ uint32_t base;
  const int warp = __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x) / 32, 0);
  for (uint32_t i = threadIdx.x; i < kAtomBytes / 4; i += blockDim.x) atom[i] = kOneFactors;
  // With the __syncthreads below, the atom is written for the copies, and the barrier is there.
  ptx::fence_proxy_async();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&copied, 1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncwarp();
  if (warp == 0) {
    ptx::tcgen05_alloc<1>(&base, kColumns);
    ptx::tcgen05_relinquish_alloc_permit<1>();
  }
  // The allocation comes before every other use of tensor memory.
  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  ptx::tcgen05_fence_after_thread_sync();
  if (warp == 0 && ptx::elect_sync()) {
    for (int column = 0; column < kWidth; column += 4)
      ptx::tcgen05_cp_32x128b_warpx4<1>(base + column, ptx::scale_descriptor(ptx::smem_u32(atom)));
    ptx::tcgen05_commit<1>(&copied);
  }
  __syncwarp();
  wait(&copied, 0);  // the columns are filled before they are loaded
  __syncwarp();
  ptx::tcgen05_fence_after_thread_sync();
  const uint32_t lanes = base + (static_cast<uint32_t>(warp % 4) << 21);
  int32_t others = 0;
  const int64_t start = cycles_now();
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
    uint32_t values[kWidth];
    ptx::tcgen05_ld_32x32b(values, lanes);
    ptx::tcgen05_wait_ld();
    others += values[kWidth - 1] != kOneFactors;
  }
  __syncthreads();
  if (threadIdx.x == 0) cycles[0] = cycles_now() - start;
  atomicAdd(wrong, others);
  // All warps have loaded before the memory is given back.
  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  if (warp == 0) ptx::tcgen05_dealloc<1>(base, kColumns);
}

template <int kWidth>
double load_cycles(int rounds, int threads) {
  const DeviceArray<int64_t> cycles(1);
  const DeviceArray<int32_t> wrong(1, 0);
  load<kWidth><<<1, threads>>>(rounds, cycles.data(), wrong.data());
  check_cuda(cudaGetLastError(), "tcgen05.ld");
  require(wrong.host()[0] == 0, "loads of tensor memory");
  return static_cast<double>(cycles.host()[0]) / rounds;
}

}  // namespace

void measure_mma(const Subject& on, Findings* out) {
  measure_widths<1>(on, out);
  measure_widths<2>(on, out);
  add_copy("a copy before an mma of 256 x 256 x 64", "scale_copy", 2, 256, out);
  add_copy("a copy before an mma of 128 x 64 x 64", "scale_copy_short", 1, 64, out);
  // Of so many steps all but a fixed time is that of the mma.
  const int steps = on.simulated ? kClump : 64;
  const double of_mma = out->median(name_of(1, 128, 0, Copies::kBeforeEach)) * steps;
  out->measure(on, "from the last mma to a warp that waited", "cycles", "commit",
               [&] { return cycles_of<1, 0, Copies::kBeforeEach>(128, steps) - of_mma; });
}

void measure_tensor_memory(const Subject& on, Findings* out) {
  const int rounds = on.rounds(256);
  out->measure(on, "tcgen05.ld of 8 columns", "cycles", "", [&] { return load_cycles<8>(rounds, 32); });
  out->measure(on, "tcgen05.ld of 32 columns", "cycles", "", [&] { return load_cycles<32>(rounds, 32); });
  Measurement fixed{"tcgen05.ld, beside its columns", "cycles", {}, "tensor_read"};
  const std::vector<double>& narrow = out->values("tcgen05.ld of 8 columns");
  const std::vector<double>& wide = out->values("tcgen05.ld of 32 columns");
  for (size_t i = 0; i < wide.size(); ++i) fixed.values.push_back(narrow[i] - (wide[i] - narrow[i]) * 8 / 24);
  out->add(fixed);
  out->measure(on, "loads of tensor memory", "bytes per cycle", "tensor_bytes",
               [&] { return 32 * 4.0 * kLoadThreads / load_cycles<32>(rounds, kLoadThreads); });
}

}  // namespace bench
