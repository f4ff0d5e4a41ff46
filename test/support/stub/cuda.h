// cuda.h -- a CUDA runtime that does nothing, for programs that look at the host side alone: every
// function that a launch calls returns at once. Any number of devices, each a B200 unless stub_h100() says
// otherwise.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace dualgemm_test {

// Returns how many calls this thread has made.
uint64_t stub_calls();

// The next call that this thread makes of this function, a literal, of the runtime or the driver, fails so.
void stub_fail(const char* function, cudaError_t error);

// The version of the runtime, as this thread is told from now on: that of the build unless this was called.
void stub_runtime_version(int runtime_version);

// From now on each device that this thread asks about is an H100. What is known of one stays known.
void stub_h100();

// What this thread has asked devices to do, also where the stream was bad.
struct StubWork {
  uint64_t launches, fills;
  // Of the last launch.
  dim3 grid, block;
  unsigned cluster;
  size_t smem_bytes;
};
const StubWork& stub_work();

// To cuPointerGetAttributes all addresses below are memory of the current device, and none from here on.
inline constexpr uint64_t kStubMemoryEnd = uint64_t{1} << 47;

// A launch or a fill in this stream fails with cudaErrorInvalidResourceHandle.
cudaStream_t stub_bad_stream();

// A stream of a device, wherever it is used: what it is given fails with cudaErrorInvalidValue, as a driver
// answered that did not know the kernel on that device.
cudaStream_t stub_stream_of(int ordinal);

}  // namespace dualgemm_test
