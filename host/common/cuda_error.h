// cuda_error.h -- how the CUDA runtime's errors become statuses, and whose they are.
#pragma once

#include <cuda_runtime_api.h>

#include "host/include/dualgemm.h"

namespace dualgemm {

// Returns whether an error says that a context has failed: a kernel or a copy met the error while it ran, and
// from then on every CUDA call returns it. Such an error says nothing about the call that returns it.
bool ends_context(cudaError_t error);

// Reports a failed CUDA call: CUDA_ERROR, or NO_DEVICE, DRIVER_TOO_OLD and ARCH_MISMATCH where the error says
// so. `call` has to be a call that puts no work on the device: if the context has failed, it had failed
// before the call.
dualgemm_status_t fail_cuda(cudaError_t error, const char* call);

// Reports a kernel or a fill that could not be launched into a stream: as above; if the stream belongs to
// another device than the current one, the text says so.
dualgemm_status_t fail_launch(cudaError_t error, const char* launched, cudaStream_t stream);

// Reports a driver that is older than the CUDA version of the build. Versions are as in cudaDriverGetVersion.
dualgemm_status_t fail_driver_too_old(int driver_version);

// The runtime remembers the last error of a thread. This scope keeps the errors of our own calls from staying
// behind; an error that was already pending belongs to the caller, and stays.
class CudaErrorScope {
 public:
  CudaErrorScope();
  ~CudaErrorScope();
  CudaErrorScope(const CudaErrorScope&) = delete;
  CudaErrorScope& operator=(const CudaErrorScope&) = delete;

 private:
  cudaError_t pending_;
};

}  // namespace dualgemm
