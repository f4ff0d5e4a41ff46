// cuda.cpp -- see cuda.h. Everything that is remembered is a thread's own, so that the stub puts no
// threads into an order that the library relies on by mistake.
#include "support/stub/cuda.h"

#include <cuda.h>

#include <cstdio>
#include <cstring>
#include <thread>

namespace {

thread_local int device = 0;
thread_local cudaError_t last_error = cudaSuccess;
thread_local uint64_t calls = 0;
thread_local const char* failing = nullptr;  // the next call of this function fails
thread_local cudaError_t failure = cudaSuccess;
thread_local int version = CUDART_VERSION;  // of the runtime
thread_local bool h100 = false;
thread_local dualgemm_test::StubWork work{};

cudaError_t answer(cudaError_t error = cudaSuccess, const char* function = __builtin_FUNCTION()) {
  ++calls;
  if (failing && std::strcmp(failing, function) == 0) {
    failing = nullptr;
    error = failure;
  }
  if (error != cudaSuccess) last_error = error;
  return error;
}

// A stream of another device is its number, from here on.
constexpr uintptr_t kStreamsOfDevices = 0xdede0000;

bool of_device(cudaStream_t stream) { return reinterpret_cast<uintptr_t>(stream) >= kStreamsOfDevices; }

cudaError_t answer_in(cudaStream_t stream, const char* function = __builtin_FUNCTION()) {
  return answer(stream == dualgemm_test::stub_bad_stream() ? cudaErrorInvalidResourceHandle
                : of_device(stream)                        ? cudaErrorInvalidValue
                                                           : cudaSuccess,
                function);
}

CUresult encode_tiled(CUtensorMap* map, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                      const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                      CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  std::memset(map, 0, sizeof *map);
  return static_cast<CUresult>(answer(cudaSuccess, "cuTensorMapEncodeTiled"));
}

// Memory is the device's, and nobody knows where it ends, up to where CUDA knows none.
CUresult pointer_attributes(unsigned count, CUpointer_attribute* attributes, void** data,
                            CUdeviceptr address) {
  for (unsigned i = 0; i < count; ++i) {
    if (attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
      *static_cast<unsigned*>(data[i]) = address < dualgemm_test::kStubMemoryEnd ? CU_MEMORYTYPE_DEVICE : 0;
    if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) *static_cast<int*>(data[i]) = device;
  }
  return static_cast<CUresult>(answer(cudaSuccess, "cuPointerGetAttributes"));
}

CUresult get_device(CUdevice* handle, int ordinal) {
  *handle = ordinal;
  return static_cast<CUresult>(answer(cudaSuccess, "cuDeviceGet"));
}

CUresult get_name(char* name, int size, CUdevice) {
  std::snprintf(name, static_cast<size_t>(size), "stub of %s", h100 ? "an H100" : "a B200");
  return static_cast<CUresult>(answer(cudaSuccess, "cuDeviceGetName"));
}

void* driver_function(const char* name) {
  if (std::strcmp(name, "cuTensorMapEncodeTiled") == 0) return reinterpret_cast<void*>(encode_tiled);
  if (std::strcmp(name, "cuPointerGetAttributes") == 0) return reinterpret_cast<void*>(pointer_attributes);
  if (std::strcmp(name, "cuDeviceGet") == 0) return reinterpret_cast<void*>(get_device);
  if (std::strcmp(name, "cuDeviceGetName") == 0) return reinterpret_cast<void*>(get_name);
  return nullptr;
}

}  // namespace

namespace dualgemm_test {

uint64_t stub_calls() { return calls; }
void stub_fail(const char* function, cudaError_t error) {
  failing = function;
  failure = error;
}
const StubWork& stub_work() { return work; }
cudaStream_t stub_bad_stream() { return reinterpret_cast<cudaStream_t>(uintptr_t{0xbad}); }
cudaStream_t stub_stream_of(int ordinal) {
  return reinterpret_cast<cudaStream_t>(kStreamsOfDevices + static_cast<uintptr_t>(ordinal));
}
void stub_h100() { h100 = true; }
void stub_runtime_version(int runtime_version) { version = runtime_version; }

}  // namespace dualgemm_test

extern "C" {

cudaError_t cudaSetDevice(int ordinal) {
  device = ordinal;
  return answer();
}

cudaError_t cudaGetDevice(int* ordinal) {
  *ordinal = device;
  return answer();
}

// Lets other threads come in between, which ask the same at that moment.
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  std::this_thread::yield();
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? (h100 ? 9 : 10)
           : attribute == cudaDevAttrMultiProcessorCount  ? (h100 ? 132 : 148)
                                                          : 0;
  return answer();
}

cudaError_t cudaRuntimeGetVersion(int* runtime_version) {
  *runtime_version = version;
  return answer();
}

cudaError_t cudaDriverGetVersion(int* driver_version) {
  *driver_version = CUDART_VERSION;
  return answer();
}

cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return answer();
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* ordinal) {
  *ordinal =
      of_device(stream) ? static_cast<int>(reinterpret_cast<uintptr_t>(stream) - kStreamsOfDevices) : device;
  return answer();
}

cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void*, const cudaLaunchConfig_t* config) {
  *clusters = config->attrs[0].val.clusterDim.x == 2 ? (h100 ? 66 : 74) : (h100 ? 32 : 34);
  return answer();
}

cudaError_t cudaPeekAtLastError() {
  ++calls;
  return last_error;
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  last_error = cudaSuccess;
  return error;
}

const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorIllegalAddress ? "cudaErrorIllegalAddress" : "cudaErrorInvalidResourceHandle";
}
const char* cudaGetErrorString(cudaError_t) { return "what the runtime says of it"; }

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* status) {
  *function = driver_function(name);
  *status = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return answer();
}

cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return answer(); }

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void*, void**) {
  ++work.launches;
  work.grid = config->gridDim;
  work.block = config->blockDim;
  work.smem_bytes = config->dynamicSmemBytes;
  work.cluster = 1;
  for (unsigned i = 0; i < config->numAttrs; ++i)
    if (config->attrs[i].id == cudaLaunchAttributeClusterDimension)
      work.cluster = config->attrs[i].val.clusterDim.x;
  return answer_in(config->stream);
}

cudaError_t cudaMemset2DAsync(void*, size_t, int, size_t, size_t, cudaStream_t stream) {
  ++work.fills;
  return answer_in(stream);
}

cudaError_t cudaMemsetAsync(void*, int, size_t, cudaStream_t stream) {
  ++work.fills;
  return answer_in(stream);
}

// What nvcc's host objects call: when they register, and in the stubs of kernels, which nobody runs.
void** __cudaRegisterFatBinary(void*) { return nullptr; }
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {}
cudaError_t __cudaGetKernel(cudaKernel_t*, const void*) { return answer(); }
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t stream) {
  return answer_in(stream);
}
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*) { return answer(); }

}  // extern "C"
