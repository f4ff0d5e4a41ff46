// preceding.h -- the preceding kernel: what a launch that may start before it has ended has to wait for. It
// rewrites a little of everything the launch reads, and reads a little of what the launch writes.
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

inline constexpr int kMostPrecedingBuffers = 19;
struct PrecedingBuffers {
  PrecedingBuffer buffer[kMostPrecedingBuffers];
  int32_t count;
};

// Returns at most 64 words of [data, data + bytes).
PrecedingBuffer spread(const void* data, size_t bytes, bool write);

// Throws std::runtime_error when the launch failed.
void launch_preceding(const PrecedingBuffers& buffers, cudaStream_t stream);

}  // namespace mutation
