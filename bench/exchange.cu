// exchange.cu -- the table of what an exchange of partial sums between the CTAs of a cluster takes, by
// two protocols: stores between two barriers of the cluster, and one barrier with st.async after it,
// whose bytes count on an mbarrier of the CTA that receives them (kernel/sm100/reduce.cuh). `make
// exchange` builds and runs it, on a GPU of compute capability 9.0 or later; of the library it needs
// the wrappers of instructions alone.
//
// A CTA has the warps of the kernel for 10.x: eight have sums, in registers here, of 128 lanes, two
// warps for each lane, and four more only meet. The first `lanes` of them hold sums. Each lane has 384
// bytes for the other CTAs together and as many for itself as for each of them; it adds up what it has
// received in the order of the CTAs. All clusters that fit on the GPU run at once.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "ptx/cluster.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/sync.cuh"

namespace {

namespace ptx = dualgemm::ptx;

constexpr int kLanes = 128, kSumWarps = 8, kThreads = 32 * (kSumWarps + 4);
constexpr int kFloats = 96;  // of a lane for all other CTAs
constexpr int kRounds = 200, kWarmUp = 20;

enum class Protocol { kTwoBarriers, kTransactions };

template <int kCtas>
struct Sums {
  static constexpr int kVectors = kFloats / (kCtas - 1) / 4;  // of a lane, for one CTA
  float4 received[kCtas][kVectors][kLanes];
  uint64_t full;
};

// st.shared::cluster.v4.f32
__device__ void store(uint32_t address, const float4& x) {
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(x.x), "f"(x.y),
               "f"(x.z), "f"(x.w)
               : "memory");
}
__device__ void store_async(uint32_t address, const float4& x, uint32_t full) {
  const uint32_t words[4] = {__float_as_uint(x.x), __float_as_uint(x.y), __float_as_uint(x.z),
                             __float_as_uint(x.w)};
  ptx::st_async_v4_b32(address, words, full);
}
__device__ void add(float4& sum, const float4& x) {
  sum = {sum.x + x.x, sum.y + x.y, sum.z + x.z, sum.w + x.w};
}

__device__ void meet() {
  ptx::fence_proxy_async();
  ptx::cluster_arrive_release();
  ptx::cluster_wait_acquire();
}

// Writes the cycles of each round of a CTA, and what each lane has added up in all rounds.
template <int kCtas, Protocol kProtocol>
__global__ void __launch_bounds__(kThreads, 1) exchange(int lanes, int64_t* cycles, float* totals) {
  using S = Sums<kCtas>;
  extern __shared__ __align__(1024) uint8_t bytes[];
  auto& smem = *reinterpret_cast<S*>(bytes);
  constexpr bool kAsync = kProtocol == Protocol::kTransactions;
  const int warp = static_cast<int>(threadIdx.x) / 32, half = warp / 4;
  const int lane = warp % 4 * 32 + static_cast<int>(threadIdx.x) % 32;
  const bool has_sums = warp < kSumWarps && lane < lanes;
  const uint32_t rank = ptx::cluster_ctarank();
  const int first = half * S::kVectors / 2, end = (half + 1) * S::kVectors / 2;
  if (threadIdx.x == 0) ptx::mbarrier_init(&smem.full, 1);
  if (threadIdx.x == 0) ptx::fence_mbarrier_init_release_cluster();
  meet();
  float total = 0;
  for (int round = 0; round < kRounds; ++round) {
    const float4 own = {static_cast<float>(1 + rank), 2, static_cast<float>(round % 4),
                        static_cast<float>(lane)};
    if (kAsync && threadIdx.x == 0)
      ptx::mbarrier_arrive_expect_tx(&smem.full, (kCtas - 1) * S::kVectors * lanes * 16);
    meet();  // all have read what the round before has sent
    const int64_t start = clock64();
    meet();
    if (has_sums) {
      for (uint32_t i = kAsync ? 1 : 0; i < kCtas; ++i) {
        const uint32_t to = (rank + i) % kCtas, full = ptx::mapa(ptx::smem_u32(&smem.full), to);
#pragma unroll
        for (int v = first; v < end; ++v) {
          const uint32_t place = ptx::mapa(ptx::smem_u32(&smem.received[rank][v][lane]), to);
          if (kAsync) store_async(place, own, full);
          else store(place, own);
        }
      }
    }
    if (kAsync) {
      if (warp < kSumWarps)
        while (!ptx::mbarrier_try_wait_parity_acquire_cluster(&smem.full, round % 2)) {
        }
      __syncwarp();
    } else {
      meet();
    }
    if (has_sums) {
#pragma unroll
      for (int v = first; v < end; ++v) {
        float4 sum{};
        for (uint32_t from = 0; from < kCtas; ++from)
          add(sum, kAsync && from == rank ? own : smem.received[from][v][lane]);
        total += sum.x + sum.y + sum.z + sum.w;
      }
    }
    __syncthreads();
    if (threadIdx.x == 0) cycles[blockIdx.x * kRounds + round] = clock64() - start;
  }
  if (warp < kSumWarps) totals[(blockIdx.x * kLanes + lane) * 2 + half] = total;
  meet();
}

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::printf("exchange: %s\n", cudaGetErrorString(error));
  std::exit(1);
}

// Returns what a lane adds up: of each vector and round the numbers of all CTAs.
template <int kCtas>
float expected_total(int lane) {
  constexpr int kOfOne = Sums<kCtas>::kVectors / 2 * kCtas;  // vectors of one of the two warps
  const float ranks = Sums<kCtas>::kVectors / 2 * (kCtas * (kCtas + 1) / 2);
  return kRounds * (ranks + kOfOne * (2 + 1.5f + static_cast<float>(lane)));
}

// Returns the cycles of a round, in the mean of all CTAs and rounds after the first ones.
template <int kCtas, Protocol kProtocol>
double mean_cycles(int lanes) {
  auto* const kernel = &exchange<kCtas, kProtocol>;
  constexpr int kBytes = 227 * 1024;  // a CTA has an SM for itself, as those of the kernel
  static_assert(sizeof(Sums<kCtas>) <= kBytes);
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {kCtas, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = kCtas;
  config.blockDim = kThreads;
  config.dynamicSmemBytes = kBytes;
  config.attrs = &cluster;
  config.numAttrs = 1;
  int clusters = 0;
  check(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config));
  const int ctas = clusters * kCtas;
  config.gridDim = static_cast<unsigned>(ctas);
  int64_t* cycles = nullptr;
  float* totals = nullptr;
  const size_t rounds = static_cast<size_t>(ctas) * kRounds, sums = static_cast<size_t>(ctas) * kLanes * 2;
  check(cudaMalloc(&cycles, rounds * sizeof *cycles));
  check(cudaMalloc(&totals, sums * sizeof *totals));
  check(cudaLaunchKernelEx(&config, kernel, lanes, cycles, totals));
  std::vector<int64_t> all(rounds);
  std::vector<float> of_lanes(sums);
  check(cudaMemcpy(all.data(), cycles, rounds * sizeof *cycles, cudaMemcpyDeviceToHost));
  check(cudaMemcpy(of_lanes.data(), totals, sums * sizeof *totals, cudaMemcpyDeviceToHost));
  check(cudaFree(cycles));
  check(cudaFree(totals));
  for (size_t i = 0; i < sums; ++i) {
    const int lane = static_cast<int>(i / 2 % kLanes);
    if (of_lanes[i] != (lane < lanes ? expected_total<kCtas>(lane) : 0)) {
      std::printf("exchange: wrong sums\n");
      std::exit(1);
    }
  }
  double sum = 0;
  for (size_t i = 0; i < rounds; ++i)
    if (i % kRounds >= kWarmUp) sum += static_cast<double>(all[i]);
  return sum / (ctas * (kRounds - kWarmUp));
}

template <int kCtas>
void row(int lanes) {
  std::printf("| %d | %d | %.1f | %.0f | %.0f |\n", kCtas, lanes, lanes * kFloats * 4 / 1024.0,
              mean_cycles<kCtas, Protocol::kTwoBarriers>(lanes),
              mean_cycles<kCtas, Protocol::kTransactions>(lanes));
}

}  // namespace

int main() {
  cudaDeviceProp device;
  if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
    std::printf("exchange: skipped: there is no GPU on this machine\n");
    return 0;
  }
  std::printf("an exchange of sums in clusters that fill the SMs of %s\n\n", device.name);
  std::printf(
      "| CTAs of a cluster | lanes | KB sent by a CTA | two cluster barriers, cycles | "
      "st.async, cycles |\n| --- | --- | --- | --- | --- |\n");
  for (const int lanes : {128, 32, 1, 0}) {
    row<2>(lanes);
    row<4>(lanes);
  }
  return 0;
}
