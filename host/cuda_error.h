// cuda_error.h -- how the CUDA runtime's errors become statuses, and whose they are.
#pragma once

#include <cuda_runtime_api.h>

#include "host/dualgemm.h"

namespace dualgemm {

// Reports a failed CUDA call: CUDA_ERROR, or NO_DEVICE, DRIVER_TOO_OLD and ARCH_MISMATCH where the error says
// so.
dualgemm_status_t fail_cuda(cudaError_t error, const char* call);

// Reports a driver that is older than the CUDA version of the build. Versions are as in cudaDriverGetVersion.
dualgemm_status_t fail_driver_too_old(int driver_version);

// The runtime remembers the last error of a thread. This scope keeps the errors of our own calls from staying
// behind; an error that was already pending belongs to the caller and is left alone.
class CudaErrorScope {
 public:
  CudaErrorScope() : pending_(cudaPeekAtLastError()) {}
  ~CudaErrorScope() {
    if (pending_ == cudaSuccess) cudaGetLastError();
  }
  CudaErrorScope(const CudaErrorScope&) = delete;
  CudaErrorScope& operator=(const CudaErrorScope&) = delete;

 private:
  cudaError_t pending_;
};

}  // namespace dualgemm
