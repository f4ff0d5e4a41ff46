// preceding.cu -- see preceding.h. The preceding kernel lets what follows start at once, so that nothing but
// griddepcontrol.wait over there orders the two. The following one waits for nothing.
#include "mutation/preceding.h"

#include <cuda_runtime.h>

#include <algorithm>

#include "ptx/sync.cuh"
#include "support/device_memory.h"
#include "support/programmatic.h"

namespace mutation {
namespace {

constexpr uint32_t kThreads = 64;

// Weak accesses, which the compiler has to keep: volatile ones would be strong, and race with nothing.
__device__ uint32_t load(const uint32_t* word) {
  uint32_t value;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}
__device__ void store(uint32_t* word, uint32_t value) {
  asm volatile("st.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}

__global__ void preceding(PrecedingBuffers buffers) {
  dualgemm::ptx::griddepcontrol_launch_dependents();
  for (int i = 0; i < buffers.count; ++i) {
    const PrecedingBuffer& buffer = buffers.buffer[i];
    if (threadIdx.x >= buffer.count) continue;
    uint32_t* const word = buffer.words + threadIdx.x * buffer.pitch;
    const uint32_t value = load(word);
    if (buffer.write) store(word, value);
  }
}

__global__ void following(PrecedingBuffers weights) {
  for (int i = 0; i < weights.count; ++i) {
    const PrecedingBuffer& buffer = weights.buffer[i];
    if (threadIdx.x < buffer.count) load(buffer.words + threadIdx.x * buffer.pitch);
  }
}

}  // namespace

PrecedingBuffer spread(const void* data, size_t bytes, bool write) {
  const uint32_t words = static_cast<uint32_t>(bytes / 4), count = std::min(words, kThreads);
  return {static_cast<uint32_t*>(const_cast<void*>(data)), count, words / count, write};
}

void launch_preceding(const PrecedingBuffers& buffers, cudaStream_t stream) {
  cudaLaunchConfig_t config = {};
  config.gridDim = 1;
  config.blockDim = kThreads;
  config.stream = stream;
  dualgemm_test::check_cuda(cudaLaunchKernelEx(&config, preceding, buffers), "the preceding kernel");
}

void launch_following(const PrecedingBuffers& weights, cudaStream_t stream) {
  const dualgemm_test::ProgrammaticLaunch launch(1, kThreads, stream);
  dualgemm_test::check_cuda(cudaLaunchKernelEx(&launch.config(), following, weights), "the following kernel");
}

}  // namespace mutation
