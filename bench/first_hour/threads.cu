// threads.cu -- what threads do and wait for: loads and stores, the arithmetic of an epilogue, a barrier in
// shared memory, the barrier of a cluster.
#include <algorithm>
#include <cmath>

#include "bench/first_hour/clock.cuh"
#include "bench/first_hour/microbenchmark.h"
#include "host/model/epilogue_work.h"
#include "kernel/epilogue/epilogue.cuh"
#include "ptx/global.cuh"
#include "ptx/math.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/sync.cuh"
#include "test/support/device_memory.h"

namespace bench {
namespace {

namespace ptx = dualgemm::ptx;
using dualgemm_test::check_cuda;
using dualgemm_test::DeviceArray;

// ---- loads: each address follows from what the load before it has brought ---------------------------------

// The bytes are zeros, which nobody but the host knows.
template <bool kCached>
__global__ void __launch_bounds__(32) chase(const uint32_t* zeros, int64_t first, int64_t stride,
                                            int64_t size, int loads, int64_t* cycles, uint32_t* sum) {
  if (threadIdx.x != 0) return;
  int64_t at = first;
  uint32_t found = 0;
  if (kCached)
    for (int64_t i = 0; i < size; i += stride) found += __ldca(zeros + i);
  const int64_t start = cycles_now();
#pragma unroll 1
  for (int i = 0; i < loads; ++i) {
    const uint32_t* const place = zeros + at + found;
    found += kCached ? __ldca(place) : __ldcg(place);
    at += stride;
    if (at >= size) at -= size;
  }
  cycles[0] = cycles_now() - start;
  sum[0] = found;
}

void measure_loads(const Subject& on, Findings* out) {
  // With a stride of 33,024 bytes a page of memory is used by many loads, a line by one.
  constexpr int64_t kStride = 33024 / 4;
  const int64_t words = on.simulated ? 64 * kStride : static_cast<int64_t>(16 * on.l2_bytes / 4);
  const DeviceArray<uint32_t> zeros(static_cast<size_t>(words), 0);
  const DeviceArray<int64_t> cycles(1);
  const DeviceArray<uint32_t> sum(1);
  const int loads = on.rounds(512);
  int64_t next = 0;
  out->measure(on, "a load from DRAM by a thread", "cycles", "load", [&] {
    next = (next + loads * kStride) % words;
    chase<false><<<1, 32>>>(zeros.data(), next, kStride, words, loads, cycles.data(), sum.data());
    require(sum.host()[0] == 0, "loads from DRAM");
    return static_cast<double>(cycles.host()[0]) / loads;
  });
  out->measure(on, "a load that L1 has, by a thread", "cycles", "l1_load", [&] {
    chase<true><<<1, 32>>>(zeros.data(), 0, 32, 1024, loads, cycles.data(), sum.data());
    require(sum.host()[0] == 0, "loads from L1");
    return static_cast<double>(cycles.host()[0]) / loads;
  });
}

// ---- stores: a lane has a row, as in an epilogue ----------------------------------------------------------

constexpr int kStoreWarps = 8, kRows = 32 * kStoreWarps;

template <int kBytes>
__global__ void __launch_bounds__(kRows)
    store_rows(uint8_t* out, int64_t pitch, int pieces, int64_t* cycles) {
  uint8_t* const row = out + threadIdx.x * pitch;
  uint32_t x[8];
  for (uint32_t& word : x) word = threadIdx.x;
  __syncthreads();
  const int64_t start = cycles_now();
#pragma unroll 4
  for (int i = 0; i < pieces; ++i) {
    if constexpr (kBytes == 16) {
      ptx::st_global_v4_b32(row + i * 16, x);
    } else {
#if __CUDA_ARCH__ >= 1000
      ptx::st_global_v8_b32(row + i * 32, x);
#else
      ptx::st_global_v4_b32(row + i * 32, x);
      ptx::st_global_v4_b32(row + i * 32 + 16, x);
#endif
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) cycles[0] = cycles_now() - start;
}

template <int kBytes>
void measure_store(const Subject& on, const char* name, const char* constant, Findings* out) {
  const int pieces = on.rounds(128);
  constexpr int64_t kPitch = 8192;
  const DeviceArray<uint8_t> c(kRows * kPitch, 0xFF);
  const DeviceArray<int64_t> cycles(1);
  out->measure(on, name, "cycles", constant, [&] {
    store_rows<kBytes><<<1, kRows>>>(c.data(), kPitch, pieces, cycles.data());
    return static_cast<double>(cycles.host()[0]) / (kRows * pieces);
  });
  const std::vector<uint8_t> written = c.host();
  bool right = true;
  for (int row = 0; row < kRows; ++row) right &= written[row * kPitch + kBytes * pieces - 4] == row;
  require(right, name);
}

// ---- arithmetic -------------------------------------------------------------------------------------------

constexpr int kResults = 32;  // of a lane, which an epilogue computes at a time

__device__ float swiglu(float gate, float up) { return dualgemm::silu<dualgemm::ApproximateMath>(gate) * up; }

// SwiGLU of numbers in registers, with alphas and the conversion to fp16, which is all that a plain epilogue
// does beside its loads and stores.
__global__ void activate(float alpha, int rounds, int64_t* cycles, uint32_t* sums) {
  float gate[kResults];
#pragma unroll
  for (int i = 0; i < kResults; ++i) gate[i] = 0.25f * i - 4 + threadIdx.x % 2;
  uint32_t sum = 0;
  __syncthreads();
  const int64_t start = cycles_now();
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
    const float up = static_cast<float>(round + 1);
#pragma unroll
    for (int i = 0; i < kResults; i += 2) {
      sum ^=
          ptx::cvt_rn_f16x2_f32(swiglu(gate[i] * alpha, up * alpha), swiglu(gate[i + 1] * alpha, up * alpha));
      gate[i] += 0.25f;
      gate[i + 1] -= 0.25f;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) cycles[0] = cycles_now() - start;
  sums[threadIdx.x] = sum;
}

__global__ void multiply_in_fp64(double x, int rounds, int64_t* cycles, double* sums) {
  double sum[4] = {0, 0, 0, 0};
  __syncthreads();
  const int64_t start = cycles_now();
#pragma unroll 4
  for (int round = 0; round < rounds; ++round)
#pragma unroll
    for (double& each : sum) each = fma(each, x, 1.0);
  __syncthreads();
  if (threadIdx.x == 0) cycles[0] = cycles_now() - start;
  sums[threadIdx.x] = sum[0] + sum[1] + sum[2] + sum[3];
}

void measure_arithmetic(const Subject& on, Findings* out) {
  const DeviceArray<int64_t> cycles(1);
  const DeviceArray<uint32_t> sums(256);
  const DeviceArray<double> doubles(256);
  const int rounds = on.rounds(64);
  const auto special = [&](const char* name, const char* constant, int warps) {
    out->measure(on, name, "per cycle", constant, [&] {
      activate<<<1, 32 * warps>>>(1, rounds, cycles.data(), sums.data());
      const std::vector<uint32_t> all = sums.host();
      bool right = all[0] != 0;
      for (int i = 2; i < 32 * warps; ++i) right &= all[i] == all[i % 2];
      require(right, name);
      return 2.0 * kResults * 32 * warps * rounds / static_cast<double>(cycles.host()[0]);
    });
  };
  special("special functions, eight warps", "special", 8);
  special("special functions, four warps", "special_of_four", 4);
  Measurement beside{"instructions beside special functions", "per cycle", {}, "instructions"};
  for (const double x : out->values("special functions, eight warps"))
    beside.values.push_back(x * dualgemm::work::kCoveredBySpecial);
  out->add(beside);
  const int many = on.rounds(256);
  out->measure(on, "operations of fp64", "per cycle", "fp64", [&] {
    multiply_in_fp64<<<1, 256>>>(1, many, cycles.data(), doubles.data());
    require(doubles.host()[255] == 4.0 * many, "operations of fp64");
    return 4.0 * 256 * many / static_cast<double>(cycles.host()[0]);
  });
}

// ---- barriers ---------------------------------------------------------------------------------------------

__global__ void __launch_bounds__(64) wake(int rounds, int64_t* cycles) {
  __shared__ uint64_t barrier;
  __shared__ int64_t arrived;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&barrier, 1);
    // With the __syncthreads of the first round the other warp sees the barrier before it waits.
    ptx::fence_mbarrier_init_release_cluster();
  }
  int64_t sum = 0;
  for (int round = 0; round < rounds; ++round) {
    __syncthreads();  // `arrived` of the round before has been read
    if (threadIdx.x < 32) {
      // The other warp waits by now.
      for (const int64_t start = cycles_now(); cycles_now() - start < 500;) {
      }
      if (ptx::elect_sync()) {
        arrived = cycles_now();
        ptx::mbarrier_arrive(&barrier);
      }
      __syncwarp();
    } else {
      // `arrived` was written before the arrival.
      while (!ptx::mbarrier_try_wait_parity(&barrier, round % 2)) {
      }
      __syncwarp();
      sum += cycles_now() - arrived;
    }
  }
  if (threadIdx.x == 32) cycles[0] = sum;
}

// Nothing is ordered here: the barrier itself is timed.
__global__ void __cluster_dims__(2) __launch_bounds__(384) meet(int rounds, int64_t* cycles) {
  ptx::cluster_arrive_release();
  ptx::cluster_wait_acquire();
  const int64_t start = cycles_now();
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
    ptx::cluster_arrive_release();
    ptx::cluster_wait_acquire();
  }
  if (threadIdx.x == 0) cycles[blockIdx.x] = cycles_now() - start;
}

void measure_barriers(const Subject& on, Findings* out) {
  const DeviceArray<int64_t> cycles(2);
  const int rounds = on.rounds(200);
  out->measure(on, "from an arrival to a warp that waited", "cycles", "wake", [&] {
    wake<<<1, 64>>>(rounds, cycles.data());
    return static_cast<double>(cycles.host()[0]) / rounds;
  });
  out->measure(on, "a barrier of a cluster of two", "cycles", "cluster_barrier", [&] {
    meet<<<2, 384>>>(rounds, cycles.data());
    return static_cast<double>(cycles.host()[0]) / rounds;
  });
}

}  // namespace

void measure_threads(const Subject& on, Findings* out) {
  measure_loads(on, out);
  measure_store<32>(on, "a store of a sector, in rows", "store", out);
  measure_store<16>(on, "a store of half a sector, in rows", "store_part", out);
  measure_arithmetic(on, out);
  measure_barriers(on, out);
}

}  // namespace bench
