// front.h -- the preceding kernel: what a launch that may start before it has ended has to wait for. It
// rewrites a little of everything the launch reads, and reads a little of what the launch writes.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace mutation {

// These are words spread over a buffer.
struct FrontBuffer {
  uint32_t* words;
  uint32_t count, pitch;  // pitch: words from one to the next
  bool write;             // read, and written back as they were
};

inline constexpr int kMostFrontBuffers = 9;
struct FrontBuffers {
  FrontBuffer buffer[kMostFrontBuffers];
  int32_t count;
};

// Returns at most 64 words of [data, data + bytes).
FrontBuffer spread(const void* data, size_t bytes, bool write);

// Throws std::runtime_error when the launch failed.
void launch_front(const FrontBuffers& buffers, cudaStream_t stream);

}  // namespace mutation
