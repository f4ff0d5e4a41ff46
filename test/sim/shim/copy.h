// copy.h -- host-side copies and fills on simulated memory, shared by the runtime's memory, symbol and graph
// calls.
#pragma once

#include <cuda_runtime_api.h>

#include "sim/shim/state.h"

namespace sim::shim {

struct Rows {  // a rectangle: `height` rows of `width` bytes, `pitch` apart
  size_t pitch, width, height;
};

// These throw Failure when a device side is not inside one live allocation or the direction contradicts the
// pointers. Bytes that nobody wrote stay poison when copied between device allocations, and reach the host
// as a telling pattern. A copy may reach the memory of every device. A fill may reach the memory of the
// device that does it and of the devices it has access to. An H200 behaves so. The observer is told which
// device bytes are read and written before they are touched.
void copy_bytes(Runtime& runtime, void* to, const void* from, size_t n, cudaMemcpyKind kind);
void copy_rows(Runtime& runtime, void* to, size_t to_pitch, const void* from, const Rows& rows,
               cudaMemcpyKind kind);
void fill_rows(Runtime& runtime, void* to, int value, const Rows& rows);

}  // namespace sim::shim
