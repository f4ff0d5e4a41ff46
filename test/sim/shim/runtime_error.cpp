// runtime_error.cpp -- the names and meanings of the error codes this runtime can return, and the version it
// claims.
#include <cuda_runtime_api.h>

namespace {

struct ErrorText {
  cudaError_t code;
  const char* name;
  const char* meaning;
};

#define SIM_ERROR(code, meaning) \
  { code, #code, meaning }
constexpr ErrorText kErrors[] = {
    SIM_ERROR(cudaSuccess, "no error"),
    SIM_ERROR(cudaErrorInvalidValue, "invalid argument"),
    SIM_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    SIM_ERROR(cudaErrorInitializationError, "initialization error"),
    SIM_ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    SIM_ERROR(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    SIM_ERROR(cudaErrorInvalidSymbol, "invalid device symbol"),
    SIM_ERROR(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    SIM_ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    SIM_ERROR(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"),
    SIM_ERROR(cudaErrorMissingConfiguration, "kernel launch without a configuration"),
    SIM_ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    SIM_ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    SIM_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    SIM_ERROR(cudaErrorInvalidKernelImage, "device kernel image is invalid"),
    SIM_ERROR(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device"),
    SIM_ERROR(cudaErrorInvalidPtx, "a PTX compilation failed"),
    SIM_ERROR(cudaErrorUnsupportedPtxVersion, "the PTX uses something this machine does not support"),
    SIM_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    SIM_ERROR(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
    SIM_ERROR(cudaErrorSymbolNotFound, "named symbol not found"),
    SIM_ERROR(cudaErrorNotReady, "device not ready"),
    SIM_ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    SIM_ERROR(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    SIM_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    SIM_ERROR(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    SIM_ERROR(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    SIM_ERROR(cudaErrorAssert, "device-side assert triggered"),
    SIM_ERROR(cudaErrorHostMemoryAlreadyRegistered,
              "part or all of the requested memory range is already mapped"),
    SIM_ERROR(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region"),
    SIM_ERROR(cudaErrorIllegalInstruction, "an illegal instruction was encountered"),
    SIM_ERROR(cudaErrorMisalignedAddress, "misaligned address"),
    SIM_ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    SIM_ERROR(cudaErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch"),
    SIM_ERROR(cudaErrorTensorMemoryLeak, "tensor memory was not deallocated"),
    SIM_ERROR(cudaErrorNotPermitted, "operation not permitted"),
    SIM_ERROR(cudaErrorNotSupported, "operation not supported"),
    SIM_ERROR(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    SIM_ERROR(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
    SIM_ERROR(cudaErrorStreamCaptureMerge, "operation would result in a merge of separate capture sequences"),
    SIM_ERROR(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began"),
    SIM_ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    SIM_ERROR(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream"),
    SIM_ERROR(cudaErrorStreamCaptureImplicit,
              "operation would make the legacy stream depend on a capturing stream"),
    SIM_ERROR(cudaErrorCapturedEvent,
              "operation not permitted on an event last recorded in a capturing stream"),
    SIM_ERROR(cudaErrorStreamCaptureWrongThread,
              "attempt to terminate a thread-local capture from another thread"),
    SIM_ERROR(cudaErrorInvalidClusterSize, "invalid cluster size"),
    SIM_ERROR(cudaErrorUnknown, "unknown error"),
};
#undef SIM_ERROR

constexpr int kVersion = CUDART_VERSION;

}  // namespace

extern "C" {

const char* cudaGetErrorName(cudaError_t code) {
  for (const ErrorText& error : kErrors)
    if (error.code == code) return error.name;
  return "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t code) {
  for (const ErrorText& error : kErrors)
    if (error.code == code) return error.meaning;
  return "unrecognized error code";
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (!version) return cudaErrorInvalidValue;
  *version = kVersion;
  return cudaSuccess;
}

// Calls no other function: a program may put one of its own in the place of any.
cudaError_t cudaDriverGetVersion(int* version) {
  if (!version) return cudaErrorInvalidValue;
  *version = kVersion;
  return cudaSuccess;
}

}  // extern "C"
