// host_order.cu -- order between grids: streams, events, freed memory, programmatic dependent launch.
#include "sim/defects/device.cuh"
#include "sim/defects/host.h"
#include "support/programmatic.h"

namespace defects {
namespace {

constexpr int kWords = 64;

__global__ void fill_kernel(uint32_t* to) {
  to[threadIdx.x] = 1000 + threadIdx.x;
  griddepcontrol_launch_dependents();
}

// ldu, with which all threads of a warp have to read the same address.
__device__ uint32_t load_uniform(const uint32_t* from) {
  uint32_t value;
  asm volatile("ldu.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}

template <Dependent d>
__global__ void copy_kernel(const uint32_t* from, uint32_t* to) {
  uint32_t word = 0;
  if constexpr (d == Dependent::kNonCoherentBeforeWait) word = load_non_coherent(from + threadIdx.x);
  if constexpr (d != Dependent::kNoGridWait) griddepcontrol_wait();
  if constexpr (d == Dependent::kNonCoherentAfterWait || d == Dependent::kNonCoherentOrdinaryLaunch)
    word = load_non_coherent(from + threadIdx.x);
  else if constexpr (d == Dependent::kUniformAfterWait || d == Dependent::kUniformOrdinaryLaunch)
    word = load_uniform(from) + threadIdx.x;
  else if constexpr (d != Dependent::kNonCoherentBeforeWait)
    word = static_cast<const volatile uint32_t*>(from)[threadIdx.x];
  to[threadIdx.x] = word;
}

// One stream fills a buffer, another copies it, by a kernel and by cudaMemcpyAsync.
template <Streams d>
Outcome run_streams() {
  DeviceArray<uint32_t> out(2 * kWords);
  auto* between = new DeviceArray<uint32_t>(kWords);
  cudaStream_t first, second;
  cudaEvent_t filled;
  cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&filled, cudaEventDisableTiming);
  cudaDeviceSynchronize();

  uint32_t* const buffer = between->data();
  fill_kernel<<<1, kWords, 0, first>>>(buffer);
  cudaEventRecord(filled, first);
  if constexpr (d == Streams::kUsedAfterFree) {
    delete between;
    between = nullptr;
  }
  if constexpr (d != Streams::kNoEvent && d != Streams::kCopyWithoutEvent)
    cudaStreamWaitEvent(second, filled, 0);
  const cudaStream_t reader = d == Streams::kCopyWithoutEvent ? first : second;
  copy_kernel<Dependent::kNone><<<1, kWords, 0, reader>>>(buffer, out.data());
  cudaMemcpyAsync(out.data() + kWords, buffer, kWords * sizeof(uint32_t), cudaMemcpyDeviceToDevice, second);

  const Outcome result = outcome(out, [](size_t i) { return uint32_t(1000 + i % kWords); });
  cudaEventDestroy(filled);
  cudaStreamDestroy(first);
  cudaStreamDestroy(second);
  delete between;
  return result;
}

// The second kernel may start before the first has ended.
template <Dependent d>
Outcome run_dependent() {
  DeviceArray<uint32_t> between(kWords), out(kWords);
  fill_kernel<<<1, kWords>>>(between.data());
  if constexpr (d == Dependent::kNonCoherentOrdinaryLaunch || d == Dependent::kUniformOrdinaryLaunch) {
    copy_kernel<d><<<1, kWords>>>(between.data(), out.data());
  } else {
    const dualgemm_test::ProgrammaticLaunch launch(1, kWords);
    cudaLaunchKernelEx(&launch.config(), copy_kernel<d>, static_cast<const uint32_t*>(between.data()),
                       out.data());
  }
  return outcome(out, [](size_t i) { return uint32_t(1000 + i); });
}

// The first grid writes weights. The second lets the third start, which reads the weights before it waits for
// the second.
template <Chain d>
__global__ void between_kernel(uint32_t* to) {
  if constexpr (d == Chain::kEarlyLaunch) griddepcontrol_launch_dependents();
  if constexpr (d != Chain::kNoWaitBetween) griddepcontrol_wait();
  if constexpr (d != Chain::kEarlyLaunch) griddepcontrol_launch_dependents();
  to[threadIdx.x] = 7;
}

template <Chain d>
__global__ void late_wait_kernel(const uint32_t* weights, const uint32_t* from, uint32_t* to) {
  if constexpr (d == Chain::kWaitFirst || d == Chain::kNoWaitBetween) griddepcontrol_wait();
  const uint32_t weight = d == Chain::kNonCoherentWeights
                              ? load_non_coherent(weights + threadIdx.x)
                              : static_cast<const volatile uint32_t*>(weights)[threadIdx.x];
  griddepcontrol_wait();
  to[threadIdx.x] = weight + static_cast<const volatile uint32_t*>(from)[threadIdx.x];
}

template <Chain d>
Outcome run_chain() {
  DeviceArray<uint32_t> weights(kWords), between(kWords), out(kWords);
  fill_kernel<<<1, kWords>>>(weights.data());
  const dualgemm_test::ProgrammaticLaunch launch(1, kWords);
  cudaLaunchKernelEx(&launch.config(), between_kernel<d>, between.data());
  cudaLaunchKernelEx(&launch.config(), late_wait_kernel<d>, static_cast<const uint32_t*>(weights.data()),
                     static_cast<const uint32_t*>(between.data()), out.data());
  return outcome(out, [](size_t i) { return uint32_t(1007 + i); });
}

}  // namespace

DEFECTS_SUBJECT(Streams, streams, run_streams)
DEFECTS_SUBJECT(Dependent, dependent_launch, run_dependent)
DEFECTS_SUBJECT(Chain, dependent_chain, run_chain)

}  // namespace defects
