// wgmma.cu -- the tensor core of compute capability 9.0, with its A in registers, as the kernel has it.
#include <algorithm>

#include "bench/first_hour/clock.cuh"
#include "bench/first_hour/microbenchmark.h"
#include "ptx/cluster.cuh"
#include "ptx/descriptor.h"
#include "ptx/wgmma.cuh"
#include "test/support/device_memory.h"

namespace bench {
namespace {

namespace ptx = dualgemm::ptx;
using dualgemm_test::check_cuda;
using dualgemm_test::DeviceArray;

constexpr int kWarpgroups = 2, kThreads = 128 * kWarpgroups, kGroup = 8, kMmaK = 16;
constexpr uint32_t kOnes = 0x3C003C00;  // two of fp16

// Two warpgroups multiply ones, kGroup wgmma at a time. Writes the cycles, and how many sums are wrong.
template <int kN>
__global__ void __launch_bounds__(kThreads)
    multiply(uint32_t ones, int rounds, int64_t* cycles, int32_t* wrong) {
  __shared__ __align__(1024) uint32_t b[256 * 128 / 4];
  for (int i = threadIdx.x; i < 256 * 128 / 4; i += kThreads) b[i] = ones;
  // With the __syncthreads, B is written for all wgmma, which read it through the async proxy.
  ptx::fence_proxy_async_shared_cta();
  __syncthreads();
  uint32_t a[4];  // that the compiler does not load anew while wgmma read them
  for (uint32_t& register_of_a : a) asm volatile("mov.b32 %0, %1;" : "=r"(register_of_a) : "r"(ones));
  float d[kN / 2] = {};
  const uint64_t descriptor = ptx::wgmma_descriptor(ptx::smem_u32(b));
  const int64_t start = cycles_now();
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
    ptx::wgmma_fence();  // what was written to a and d comes before the wgmma
#pragma unroll
    for (int i = 0; i < kGroup; ++i) ptx::wgmma_m64k16_f32_f16(d, a, descriptor);
    ptx::wgmma_commit_group();
  }
  ptx::wgmma_wait_group<0>();  // the sums are in registers
  __syncthreads();             // of both warpgroups
  if (threadIdx.x == 0) cycles[0] = cycles_now() - start;
  int32_t others = 0;
#pragma unroll
  for (int i = 0; i < kN / 2; ++i) others += d[i] != static_cast<float>(kMmaK * kGroup * rounds);
  atomicAdd(wrong, others);
}

// Cycles of one wgmma of the SM, without those before the first and after the last.
template <int kN>
void measure_columns(const Subject& on, Findings* out) {
  const DeviceArray<int64_t> cycles(1);
  const auto run = [&](int rounds) {
    const DeviceArray<int32_t> wrong(1, 0);
    multiply<kN><<<1, kThreads>>>(kOnes, rounds, cycles.data(), wrong.data());
    check_cuda(cudaGetLastError(), "wgmma");
    require(wrong.host()[0] == 0, "wgmma");
    return static_cast<double>(cycles.host()[0]);
  };
  const int few = on.rounds(16), many = 2 * few;
  out->measure(on, "wgmma of 64 x " + std::to_string(kN) + " x 16", "cycles", "",
               [&] { return (run(many) - run(few)) / ((many - few) * kGroup * kWarpgroups); });
}

}  // namespace

void measure_wgmma(const Subject& on, Findings* out) {
  measure_columns<8>(on, out);
  measure_columns<16>(on, out);
  measure_columns<32>(on, out);
  measure_columns<64>(on, out);
  measure_columns<128>(on, out);
  measure_columns<256>(on, out);
  Measurement rate{"products of wgmma", "per cycle", {}, "multiply_adds"};
  Measurement least{"columns that take as long as 8", "columns", {}, "least_columns"};
  const std::vector<double>& narrow = out->values("wgmma of 64 x 8 x 16");
  const std::vector<double>& wide = out->values("wgmma of 64 x 256 x 16");
  for (size_t i = 0; i < wide.size(); ++i) {
    rate.values.push_back(64.0 * 256 * kMmaK / wide[i]);
    least.values.push_back(narrow[i] / (wide[i] / 256));
  }
  out->add(rate);
  out->add(least);
}

}  // namespace bench
