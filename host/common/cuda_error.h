// cuda_error.h -- how the CUDA runtime's errors become statuses, and whose they are.
#pragma once

#include <cuda_runtime_api.h>

#include "host/include/dualgemm.h"

namespace dualgemm {

// Says whether an error is that of a context that has failed: a kernel or a copy met it while it ran, and
// from then on CUDA answers with it to whatever is asked. It says nothing about the call that returns it.
bool ends_context(cudaError_t error);

// Reports a failed CUDA call: CUDA_ERROR, or NO_DEVICE, DRIVER_TOO_OLD and ARCH_MISMATCH where the error says
// so. The call is one that puts no work on the device, so a context that has failed had done so before.
dualgemm_status_t fail_cuda(cudaError_t error, const char* call);

// Reports a kernel or a fill that could not be launched into a stream: as above, and where the stream belongs
// to another device than the current one, that it does.
dualgemm_status_t fail_launch(cudaError_t error, const char* launched, cudaStream_t stream);

// Reports a driver that is older than the CUDA version of the build. Versions are as in cudaDriverGetVersion.
dualgemm_status_t fail_driver_too_old(int driver_version);

// The runtime remembers the last error of a thread. This scope keeps the errors of our own calls from staying
// behind; an error that was already pending belongs to the caller and is left alone.
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
