// driver_function.cpp -- see driver_function.h.

#include "host/common/driver_function.h"

#include <cuda_runtime_api.h>

#include "host/common/cuda_error.h"
#include "host/common/status.h"
#include "host/common/text.h"

namespace dualgemm {

dualgemm_status_t DriverFunction::look_up(void** function) {
  cudaDriverEntryPointQueryResult result{};
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name_, function, version_, cudaEnableDefault, &result);
  if (error != cudaSuccess) {
    Text<96> call;
    call.add("cudaGetDriverEntryPointByVersion(%s)", name_);
    return fail_cuda(error, call.get());
  }
  if (result != cudaDriverEntryPointSuccess || !*function) {
    int driver_version = 0;
    cudaDriverGetVersion(&driver_version);
    return fail(DUALGEMM_STATUS_DRIVER_TOO_OLD, "driver_version=%d: has no %s (query result %d)",
                driver_version, name_, static_cast<int>(result));
  }
  found_.store(*function, std::memory_order_relaxed);
  return DUALGEMM_STATUS_SUCCESS;
}

}  // namespace dualgemm
