// cuda_error.cpp -- see cuda_error.h.

#include "host/cuda_error.h"

#include "host/status.h"

namespace dualgemm {

dualgemm_status_t fail_driver_too_old(int driver_version) {
  return fail(DUALGEMM_STATUS_DRIVER_TOO_OLD,
              "driver_version=%d: supports CUDA %d.%d, the library is built with CUDA %d.%d", driver_version,
              driver_version / 1000, driver_version % 1000 / 10, CUDART_VERSION / 1000,
              CUDART_VERSION % 1000 / 10);
}

// The machine code in this program is for other devices than the current one: a build may leave some out.
static dualgemm_status_t fail_no_image(cudaError_t error, const char* call) {
  int ordinal = 0, major = 0, minor = 0;
  cudaGetDevice(&ordinal);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, ordinal);
  return fail(DUALGEMM_STATUS_ARCH_MISMATCH,
              "cc_major=%d, cc_minor=%d: this program has no kernel for device %d: %s: %s (%d)", major, minor,
              ordinal, call, cudaGetErrorName(error), static_cast<int>(error));
}

dualgemm_status_t fail_cuda(cudaError_t error, const char* call) {
  if (error == cudaErrorInsufficientDriver) {
    // The runtime says the same when there is no driver at all; the version tells the two apart.
    int driver_version = 0;
    if (cudaDriverGetVersion(&driver_version) == cudaSuccess && driver_version > 0)
      return fail_driver_too_old(driver_version);
    return fail(DUALGEMM_STATUS_NO_DEVICE, "%s: cudaErrorInsufficientDriver (%d): there is no CUDA driver",
                call, static_cast<int>(error));
  }
  if (error == cudaErrorNoDevice)
    return fail(DUALGEMM_STATUS_NO_DEVICE, "%s: cudaErrorNoDevice (%d): there is no CUDA device", call,
                static_cast<int>(error));
  if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidKernelImage ||
      error == cudaErrorInvalidDeviceFunction)
    return fail_no_image(error, call);
  set_last_cuda_error(error);
  return fail(DUALGEMM_STATUS_CUDA_ERROR, "%s: %s (%d): %s", call, cudaGetErrorName(error),
              static_cast<int>(error), cudaGetErrorString(error));
}

}  // namespace dualgemm
