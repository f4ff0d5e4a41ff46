// cuda_error.cpp -- see cuda_error.h.

#include "host/common/cuda_error.h"

#include "host/common/status.h"

namespace dualgemm {
namespace {

// The error that was pending on this thread when the exported function that runs now was called.
thread_local cudaError_t pending_at_entry = cudaSuccess;

// `when` says when the context failed, and through whose work; `told` is the call that returned the error.
dualgemm_status_t fail_context(cudaError_t error, const char* when, const char* told) {
  set_last_cuda_error(error);
  return fail(DUALGEMM_STATUS_CUDA_ERROR, "the CUDA context %s: %s (%d): %s (as %s was told)", when,
              cudaGetErrorName(error), static_cast<int>(error), cudaGetErrorString(error), told);
}

constexpr const char* kFailedBefore = "had failed before this call, by work that ran earlier";

}  // namespace

// CUDA's driver_types.h says about each of these errors that any further CUDA work returns the same error, or
// that the process has to be started anew. About the first two it says only that they are found during
// execution.
bool ends_context(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice: return true;
    default: return false;
  }
}

dualgemm_status_t fail_driver_too_old(int driver_version) {
  return fail(DUALGEMM_STATUS_DRIVER_TOO_OLD,
              "driver_version=%d: supports CUDA %d.%d, the library is built with CUDA %d.%d", driver_version,
              driver_version / 1000, driver_version % 1000 / 10, CUDART_VERSION / 1000,
              CUDART_VERSION % 1000 / 10);
}

// The machine code in this program is for other devices than the current one: a build may leave out some
// architectures.
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
  if (ends_context(error)) return fail_context(error, kFailedBefore, call);
  if (error == cudaErrorInsufficientDriver) {
    // The runtime returns the same error when there is no driver at all; the version tells the two cases
    // apart.
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

// A kernel runs after its launch has returned, so an error that ends the context comes from earlier work.
// Where launches block (CUDA_LAUNCH_BLOCKING), and on the simulator, it may come from this kernel, which has
// run before its launch returns.
dualgemm_status_t fail_launch(cudaError_t error, const char* launched, cudaStream_t stream) {
  if (ends_context(error))
    return fail_context(error,
                        ends_context(pending_at_entry)
                            ? kFailedBefore
                            : "has failed, by work that ran earlier or, if launches block, by this one",
                        launched);
  int of_stream = 0, current = 0;
  if (cudaStreamGetDevice(stream, &of_stream) != cudaSuccess || cudaGetDevice(&current) != cudaSuccess ||
      of_stream == current)
    return fail_cuda(error, launched);
  set_last_cuda_error(error);
  return fail(DUALGEMM_STATUS_CUDA_ERROR,
              "stream=%p: belongs to device %d, but device %d is current: %s: %s (%d): %s",
              static_cast<void*>(stream), of_stream, current, launched, cudaGetErrorName(error),
              static_cast<int>(error), cudaGetErrorString(error));
}

CudaErrorScope::CudaErrorScope() : pending_(cudaPeekAtLastError()) { pending_at_entry = pending_; }

CudaErrorScope::~CudaErrorScope() {
  if (pending_ == cudaSuccess) cudaGetLastError();
  pending_at_entry = cudaSuccess;
}

}  // namespace dualgemm
