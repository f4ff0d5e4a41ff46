// exchange.cu -- what an exchange of partial sums between the CTAs of a cluster takes, by two protocols:
// stores between two barriers of the cluster, and one barrier with st.async after it, whose bytes count on an
// mbarrier of the CTA that receives them (kernel/sm100/reduce.cuh).
//
// A CTA has the warps of the kernel for 10.x: eight have sums, in registers here, of 128 lanes, two warps for
// each lane, and four more only meet. The first `lanes` of them hold sums. Each lane has 384 bytes for the
// other CTAs together and as many for itself as for each of them; it adds up what it has received in the
// order of the CTAs. All clusters that fit on the GPU run at once.
#include <string>
#include <vector>

#include "bench/first_hour/clock.cuh"
#include "bench/first_hour/microbenchmark.h"
#include "ptx/cluster.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/sync.cuh"
#include "test/support/device_memory.h"

namespace bench {
namespace {

namespace ptx = dualgemm::ptx;
using dualgemm_test::check_cuda;
using dualgemm_test::DeviceArray;

constexpr int kLanes = 128, kSumWarps = 8, kThreads = 32 * (kSumWarps + 4);
constexpr int kFloats = 96;  // of a lane for all other CTAs

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

// What the threads of the cluster have read and written is done for all of them after it, and comes before
// asynchronous stores to the same places, which the fence between the proxies is for.
__device__ void meet() {
  ptx::fence_proxy_async();
  ptx::cluster_arrive_release();
  ptx::cluster_wait_acquire();
}

// Writes the cycles of each round of a CTA, and what each lane has added up in all rounds.
template <int kCtas, Protocol kProtocol>
__global__ void __launch_bounds__(kThreads, 1)
    exchange(int lanes, int rounds, int64_t* cycles, float* totals) {
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
  // The other CTAs see the barrier before they send anything that counts on it.
  if (threadIdx.x == 0) ptx::fence_mbarrier_init_release_cluster();
  meet();
  float total = 0;
  for (int round = 0; round < rounds; ++round) {
    const float4 own = {static_cast<float>(1 + rank), 2, static_cast<float>(round % 4),
                        static_cast<float>(lane)};
    if (kAsync && threadIdx.x == 0)
      ptx::mbarrier_arrive_expect_tx(&smem.full, (kCtas - 1) * S::kVectors * lanes * 16);
    meet();  // all have read what the round before has sent
    const int64_t start = cycles_now();
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
      // The bytes of this round have arrived from all other CTAs.
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
    __syncthreads();  // the round ends with its last warp
    if (threadIdx.x == 0) cycles[blockIdx.x * rounds + round] = cycles_now() - start;
  }
  if (warp < kSumWarps) totals[(blockIdx.x * kLanes + lane) * 2 + half] = total;
  meet();  // no CTA ends while another may still write into its memory
}

// Returns what a lane adds up: of each vector and round the numbers of all CTAs. Rounds come in fours.
template <int kCtas>
float expected_total(int lane, int rounds) {
  constexpr int kOfOne = Sums<kCtas>::kVectors / 2 * kCtas;  // vectors of one of the two warps
  const float ranks = Sums<kCtas>::kVectors / 2 * (kCtas * (kCtas + 1) / 2);
  return static_cast<float>(rounds) * (ranks + kOfOne * (2 + 1.5f + static_cast<float>(lane)));
}

// Returns the cycles of a round, in the mean of all CTAs and rounds after the first ones.
template <int kCtas, Protocol kProtocol>
double mean_cycles(const Subject& on, int lanes) {
  auto* const kernel = &exchange<kCtas, kProtocol>;
  constexpr int kBytes = 227 * 1024;  // a CTA has an SM for itself, as those of the kernel
  static_assert(sizeof(Sums<kCtas>) <= kBytes);
  const int rounds = on.simulated ? 4 : 200, warm_up = rounds / 10;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
             "cudaFuncSetAttribute");
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {kCtas, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = kCtas;
  config.blockDim = kThreads;
  config.dynamicSmemBytes = kBytes;
  config.attrs = &cluster;
  config.numAttrs = 1;
  int clusters = 1;
  if (!on.simulated)
    check_cuda(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config), "cudaOccupancyMaxActiveClusters");
  const int ctas = clusters * kCtas;
  config.gridDim = static_cast<unsigned>(ctas);
  const DeviceArray<int64_t> cycles(static_cast<size_t>(ctas) * rounds);
  const DeviceArray<float> totals(static_cast<size_t>(ctas) * kLanes * 2);
  check_cuda(cudaLaunchKernelEx(&config, kernel, lanes, rounds, cycles.data(), totals.data()), "exchange");
  const std::vector<float> of_lanes = totals.host();
  for (size_t i = 0; i < of_lanes.size(); ++i) {
    const int lane = static_cast<int>(i / 2 % kLanes);
    require(of_lanes[i] == (lane < lanes ? expected_total<kCtas>(lane, rounds) : 0), "exchange");
  }
  const std::vector<int64_t> all = cycles.host();
  double sum = 0;
  for (size_t i = 0; i < all.size(); ++i)
    if (static_cast<int>(i) % rounds >= warm_up) sum += static_cast<double>(all[i]);
  return sum / (ctas * (rounds - warm_up));
}

std::string name_of(int ctas, int lanes, Protocol protocol) {
  return "a round of " + std::to_string(ctas) + " CTAs, " + std::to_string(lanes * kFloats * 4) +
         " bytes from each, " + (protocol == Protocol::kTransactions ? "st.async" : "two barriers");
}

template <int kCtas, Protocol kProtocol>
void measure_rounds(const Subject& on, Findings* out) {
  for (const int lanes : {kLanes, kLanes / 4, 1, 0})
    out->measure(on, name_of(kCtas, lanes, kProtocol), "cycles", "",
                 [&] { return mean_cycles<kCtas, kProtocol>(on, lanes); });
}

}  // namespace

void measure_exchange(const Subject& on, Findings* out) {
  measure_rounds<2, Protocol::kTwoBarriers>(on, out);
  measure_rounds<2, Protocol::kTransactions>(on, out);
  measure_rounds<4, Protocol::kTwoBarriers>(on, out);
  measure_rounds<4, Protocol::kTransactions>(on, out);
  // The kernels send by st.async. What a round of no bytes takes is in the barriers that the model counts.
  Measurement fixed{"an exchange of two CTAs, beside its bytes", "cycles", {}, "exchange"};
  Measurement per_kb{"an exchange of two CTAs, for each KB", "cycles per KB", {}, "exchange_per_kb"};
  const auto rounds = [&](int lanes) { return out->values(name_of(2, lanes, Protocol::kTransactions)); };
  const std::vector<double> many = rounds(kLanes), few = rounds(kLanes / 4), none = rounds(0);
  const double all_kb = kLanes * kFloats * 4 / 1024.0, few_kb = all_kb / 4;
  for (size_t i = 0; i < many.size(); ++i) {
    const double slope = (many[i] - few[i]) / (all_kb - few_kb);
    per_kb.values.push_back(slope);
    fixed.values.push_back(few[i] - few_kb * slope - none[i]);
  }
  out->add(fixed);
  out->add(per_kb);
}

}  // namespace bench
