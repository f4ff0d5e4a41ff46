// preceding.cu -- see preceding.h. It lets what follows start at once, so that nothing but
// griddepcontrol.wait over there orders the two.
#include "mutation/preceding.h"

#include <cuda_runtime.h>

#include <algorithm>

#include "ptx/sync.cuh"
#include "support/device_memory.h"

namespace mutation {
namespace {

constexpr uint32_t kThreads = 64;

__global__ void preceding(PrecedingBuffers buffers) {
  dualgemm::ptx::griddepcontrol_launch_dependents();
  for (int i = 0; i < buffers.count; ++i) {
    const PrecedingBuffer& buffer = buffers.buffer[i];
    if (threadIdx.x >= buffer.count) continue;
    volatile uint32_t* word = buffer.words + threadIdx.x * buffer.pitch;
    const uint32_t value = *word;
    if (buffer.write) *word = value;
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

}  // namespace mutation
