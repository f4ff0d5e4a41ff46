// preceding.h -- the kernels around a launch. The preceding one is what a launch that may start before it has
// ended has to wait for: it rewrites a little of everything the launch reads, and reads a little of what the
// launch writes. The following one may start as soon as the launch lets it, and reads weights that the
// preceding one wrote before it waits for anything, as a launch with STATIC_WEIGHTS does.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace mutation {

// These are words spread over a buffer.
struct PrecedingBuffer {
  uint32_t* words;
  uint32_t count, pitch;  // pitch: words from one to the next
  bool write;             // read, and written back as they were
};

inline constexpr int kMostPrecedingBuffers = 20;
struct PrecedingBuffers {
  PrecedingBuffer buffer[kMostPrecedingBuffers];
  int32_t count;
};

// Returns at most 64 words of [data, data + bytes).
PrecedingBuffer spread(const void* data, size_t bytes, bool write);

// These throw std::runtime_error when the launch failed.
void launch_preceding(const PrecedingBuffers& buffers, cudaStream_t stream);
void launch_following(const PrecedingBuffers& weights, cudaStream_t stream);

}  // namespace mutation
