// driver.cpp -- the driver API that CUDA programs reach around the runtime for: tensor maps above all, and
// what cudaGetDriverEntryPoint or cuGetProcAddress hand out. A device has one context, its primary one, and
// the context of one device is always current. Calls that are not in this file do not link, or are reported
// by name as not found.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>

#include "sim/engine/tensor_map.h"
#include "sim/shim/device.h"
#include "sim/shim/launch_call.h"
#include "sim/shim/pointer.h"
#include "sim/shim/state.h"

using namespace sim::shim;

namespace {

// The two enumerations share their numbers except where the driver has no such error.
CUresult driver_result(cudaError_t error) {
  switch (error) {
    case cudaErrorInvalidDeviceFunction: return CUDA_ERROR_INVALID_HANDLE;
    case cudaErrorInvalidConfiguration: return CUDA_ERROR_INVALID_VALUE;
    default: return static_cast<CUresult>(error);
  }
}

template <class Body>
CUresult driver_call(const char* function, Body body) {
  return driver_result(call(function, body));
}

struct ResultName {
  CUresult code;
  const char* name;
};
#define SIM_RESULT(code) \
  { code, #code }
constexpr ResultName kResults[] = {
    SIM_RESULT(CUDA_SUCCESS),
    SIM_RESULT(CUDA_ERROR_INVALID_VALUE),
    SIM_RESULT(CUDA_ERROR_OUT_OF_MEMORY),
    SIM_RESULT(CUDA_ERROR_NOT_INITIALIZED),
    SIM_RESULT(CUDA_ERROR_NO_DEVICE),
    SIM_RESULT(CUDA_ERROR_INVALID_DEVICE),
    SIM_RESULT(CUDA_ERROR_INVALID_IMAGE),
    SIM_RESULT(CUDA_ERROR_NO_BINARY_FOR_GPU),
    SIM_RESULT(CUDA_ERROR_INVALID_PTX),
    SIM_RESULT(CUDA_ERROR_UNSUPPORTED_PTX_VERSION),
    SIM_RESULT(CUDA_ERROR_INVALID_HANDLE),
    SIM_RESULT(CUDA_ERROR_NOT_FOUND),
    SIM_RESULT(CUDA_ERROR_NOT_READY),
    SIM_RESULT(CUDA_ERROR_ILLEGAL_ADDRESS),
    SIM_RESULT(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES),
    SIM_RESULT(CUDA_ERROR_LAUNCH_TIMEOUT),
    SIM_RESULT(CUDA_ERROR_MISALIGNED_ADDRESS),
    SIM_RESULT(CUDA_ERROR_LAUNCH_FAILED),
    SIM_RESULT(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE),
    SIM_RESULT(CUDA_ERROR_NOT_PERMITTED),
    SIM_RESULT(CUDA_ERROR_NOT_SUPPORTED),
    SIM_RESULT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED),
    SIM_RESULT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED),
    SIM_RESULT(CUDA_ERROR_INVALID_CLUSTER_SIZE),
    SIM_RESULT(CUDA_ERROR_UNKNOWN),
};
#undef SIM_RESULT

const ResultName* find_result(CUresult code) {
  for (const ResultName& result : kResults)
    if (result.code == code) return &result;
  return nullptr;
}

// Any addresses will do, because programs only compare them.
std::array<char, sim::shim::kMaxDevices> contexts;
CUcontext context_of(int device) {
  return reinterpret_cast<CUcontext>(&contexts[static_cast<size_t>(device)]);
}

template <class T>
void store(void* place, T value) {
  std::memcpy(place, &value, sizeof value);
}

void write_attribute(const sim::shim::Pointer& found, CUdeviceptr pointer, CUpointer_attribute attribute,
                     void* place) {
  const bool known = found.type != cudaMemoryTypeUnregistered;
  const bool managed = found.type == cudaMemoryTypeManaged;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return store<unsigned>(place, !known                             ? 0
                                    : found.type == cudaMemoryTypeHost ? CU_MEMORYTYPE_HOST
                                                                       : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return store<int>(place, found.device);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return store<unsigned>(place, managed);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return store<CUdeviceptr>(place, known ? pointer : 0);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return store<CUdeviceptr>(place, found.start);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return store<size_t>(place, found.size);
    default: fail(cudaErrorNotSupported, "this attribute of a pointer is not simulated");
  }
}

void encode(CUtensorMap* map, uint32_t type, uint32_t rank, void* base, const uint64_t* dims,
            const uint64_t* strides, const uint32_t* box, const uint32_t* element_strides,
            uint32_t interleave, uint32_t swizzle, uint32_t l2_promotion, uint32_t fill) {
  require(map, "the tensor map is null");
  std::string why;
  const int code = sim::encode_tiled(map, type, rank, base, dims, strides, box, element_strides, interleave,
                                     swizzle, l2_promotion, fill, &why);
  if (code != CUDA_SUCCESS) fail(static_cast<cudaError_t>(code), why);
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned flags) {
  return driver_call("cuInit", [&](Runtime&) { require(flags == 0, "flags other than 0"); });
}

CUresult cuDriverGetVersion(int* version) { return driver_result(cudaDriverGetVersion(version)); }

CUresult cuGetErrorString(CUresult code, const char** text) {
  if (!text) return CUDA_ERROR_INVALID_VALUE;
  const bool known = find_result(code);
  *text = known ? cudaGetErrorString(static_cast<cudaError_t>(code)) : nullptr;
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult code, const char** text) {
  if (!text) return CUDA_ERROR_INVALID_VALUE;
  const ResultName* known = find_result(code);
  *text = known ? known->name : nullptr;
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return driver_call("cuDeviceGet", [&](Runtime& runtime) {
    require(device, "no place for the device");
    sim::shim::require_device(runtime, ordinal);
    *device = ordinal;
  });
}

CUresult cuDeviceGetCount(int* count) { return driver_result(cudaGetDeviceCount(count)); }

CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  return driver_call("cuDeviceGetName", [&](Runtime& runtime) {
    require(name && size > 0, "no place for the name");
    sim::shim::require_device(runtime, device);
    std::snprintf(name, static_cast<size_t>(size), "%s", sim::shim::device_name(runtime.machine).c_str());
  });
}

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  return driver_call("cuDeviceTotalMem", [&](Runtime& runtime) {
    require(bytes, "no place for the size");
    sim::shim::require_device(runtime, device);
    *bytes = runtime.machine.memory_bytes;
  });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return driver_call("cuDeviceGetAttribute", [&](Runtime& runtime) {
    require(value, "no place for the value");
    sim::shim::require_device(runtime, device);
    *value = sim::shim::device_attribute(runtime.machine, attribute);
  });
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return driver_call("cuDevicePrimaryCtxRetain", [&](Runtime& runtime) {
    require(context, "no place for the context");
    sim::shim::require_device(runtime, device);
    *context = context_of(device);
  });
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return driver_call("cuDevicePrimaryCtxRelease",
                     [&](Runtime& runtime) { sim::shim::require_device(runtime, device); });
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  return driver_call("cuCtxGetCurrent", [&](Runtime&) {
    require(context, "no place for the context");
    *context = context_of(sim::shim::current_device());
  });
}

CUresult cuCtxSetCurrent(CUcontext context) {
  return driver_call("cuCtxSetCurrent", [&](Runtime& runtime) {
    int device = 0;
    while (device < runtime.device_count && context != context_of(device)) ++device;
    require(device < runtime.device_count, "not the context of a device");
    sim::shim::set_current_device(device);
  });
}

CUresult cuCtxGetDevice(CUdevice* device) { return driver_result(cudaGetDevice(device)); }
CUresult cuCtxSynchronize() { return driver_result(cudaDeviceSynchronize()); }

// For memory that CUDA does not know every attribute is 0, as on an H200.
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr pointer) {
  return driver_call("cuPointerGetAttributes", [&](Runtime& runtime) {
    require(count > 0 && attributes && data, "no attributes, or no places for them");
    const sim::shim::Pointer found =
        sim::shim::look_up(runtime, reinterpret_cast<const void*>(static_cast<uintptr_t>(pointer)));
    for (unsigned i = 0; i < count; ++i) write_attribute(found, pointer, attributes[i], data[i]);
  });
}

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* base,
                                const cuuint64_t* dims, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2_promotion,
                                CUtensorMapFloatOOBfill fill) {
  return driver_call("cuTensorMapEncodeTiled", [&](Runtime&) {
    encode(map, type, rank, base, dims, strides, box, element_strides, interleave, swizzle, l2_promotion,
           fill);
  });
}

CUresult cuTensorMapReplaceAddress(CUtensorMap* map, void* base) {
  return driver_call("cuTensorMapReplaceAddress", [&](Runtime&) {
    require(map, "no tensor map");
    const sim::TensorMap old = sim::decode_tensor_map(map);
    encode(map, old.type, old.rank, base, old.dims.data(), old.strides.data() + 1, old.box.data(),
           old.element_strides.data(), old.interleave, static_cast<uint32_t>(old.swizzle), old.l2_promotion,
           old.nan_fill);
  });
}

// A CUfunction is the runtime's kernel handle (cudaGetFuncBySymbol), and both APIs number the attributes
// alike.
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return driver_result(cudaFuncSetAttribute(function, static_cast<cudaFuncAttribute>(attribute), value));
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** args, void** extra) {
  static_assert(sizeof(CUlaunchAttribute) == sizeof(cudaLaunchAttribute));
  return driver_call("cuLaunchKernelEx", [&](Runtime& runtime) {
    require(config && !extra, "no launch configuration, or packed arguments");
    cudaLaunchConfig_t converted{};
    converted.gridDim = {config->gridDimX, config->gridDimY, config->gridDimZ};
    converted.blockDim = {config->blockDimX, config->blockDimY, config->blockDimZ};
    converted.dynamicSmemBytes = config->sharedMemBytes;
    converted.attrs = reinterpret_cast<cudaLaunchAttribute*>(config->attrs);
    converted.numAttrs = config->numAttrs;
    sim::shim::launch_kernel(runtime, sim::shim::read_request(runtime, converted, function), args,
                             config->hStream);
  });
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned smem, CUstream stream,
                        void** args, void** extra) {
  CUlaunchConfig config{};
  config.gridDimX = grid_x, config.gridDimY = grid_y, config.gridDimZ = grid_z;
  config.blockDimX = block_x, config.blockDimY = block_y, config.blockDimZ = block_z;
  config.sharedMemBytes = smem;
  config.hStream = stream;
  return cuLaunchKernelEx(&config, function, args, extra);
}

CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult* status);

}  // extern "C"

namespace {

struct EntryPoint {
  const char* name;
  void* address;
};

// The runtime that nvcc links into a program by default asks for every function of the driver, and first for
// one without a name. That runtime cannot work here. This is said once, and not for each function.
void say_missing(const char* name) {
  static std::atomic<bool> own_runtime = false;
  if (own_runtime) return;
  own_runtime = *name == 0;
  if (own_runtime)
    std::fprintf(stderr,
                 "simulated CUDA: this program holds its own copy of the CUDA runtime: "
                 "compile with -cudart shared -lineinfo\n");
  else std::fprintf(stderr, "simulated CUDA: the driver function %s is not simulated\n", name);
}

void* entry_point(const char* name) {
#define SIM_ENTRY(function) \
  { #function, reinterpret_cast < void*>(::function) }
#define SIM_ENTRY_AS(public_name, function) \
  { public_name, reinterpret_cast<void*>(::function) }
  static const EntryPoint kEntryPoints[] = {
      SIM_ENTRY(cuInit),
      SIM_ENTRY(cuDriverGetVersion),
      SIM_ENTRY(cuGetErrorString),
      SIM_ENTRY(cuGetErrorName),
      SIM_ENTRY(cuDeviceGet),
      SIM_ENTRY(cuDeviceGetCount),
      SIM_ENTRY(cuDeviceGetName),
      SIM_ENTRY_AS("cuDeviceTotalMem", cuDeviceTotalMem),
      SIM_ENTRY(cuDeviceGetAttribute),
      SIM_ENTRY(cuDevicePrimaryCtxRetain),
      SIM_ENTRY_AS("cuDevicePrimaryCtxRelease", cuDevicePrimaryCtxRelease),
      SIM_ENTRY(cuCtxGetCurrent),
      SIM_ENTRY(cuCtxSetCurrent),
      SIM_ENTRY(cuCtxGetDevice),
      SIM_ENTRY(cuCtxSynchronize),
      SIM_ENTRY(cuPointerGetAttributes),
      SIM_ENTRY(cuTensorMapEncodeTiled),
      SIM_ENTRY(cuTensorMapReplaceAddress),
      SIM_ENTRY(cuFuncSetAttribute),
      SIM_ENTRY(cuLaunchKernel),
      SIM_ENTRY(cuLaunchKernelEx),
      SIM_ENTRY_AS("cuGetProcAddress", cuGetProcAddress),
  };
#undef SIM_ENTRY_AS
#undef SIM_ENTRY
  for (const EntryPoint& entry : kEntryPoints)
    if (std::strcmp(entry.name, name) == 0) return entry.address;
  say_missing(name);
  return nullptr;
}

cudaError_t look_up(const char* caller, const char* symbol, void** function, unsigned version,
                    cudaDriverEntryPointQueryResult* status) {
  return call(caller, [&](Runtime&) {
    require(symbol && function, "no symbol, or no place for the function");
    const bool too_new = version > CUDART_VERSION;
    *function = too_new ? nullptr : entry_point(symbol);
    if (status)
      *status = too_new     ? cudaDriverEntryPointVersionNotSufficent
                : *function ? cudaDriverEntryPointSuccess
                            : cudaDriverEntryPointSymbolNotFound;
    if (!*function && !status) fail(cudaErrorSymbolNotFound, symbol);
  });
}

}  // namespace

extern "C" {

// As documented, an unknown symbol is reported as a status and not as an error if the caller gives a place
// for the status.
CUresult cuGetProcAddress(const char* symbol, void** function, int, cuuint64_t,
                          CUdriverProcAddressQueryResult* status) {
  if (!symbol || !function) return CUDA_ERROR_INVALID_VALUE;
  *function = entry_point(symbol);
  if (status) *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return *function || status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* status) {
  return look_up("cudaGetDriverEntryPoint", symbol, function, CUDART_VERSION, status);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                             unsigned long long, cudaDriverEntryPointQueryResult* status) {
  return look_up("cudaGetDriverEntryPointByVersion", symbol, function, version, status);
}

}  // extern "C"

// Spelled out because the plain name is deprecated and may not be mentioned.
extern "C" cudaError_t cudaGetDriverEntryPoint_ptsz(const char*, void**, unsigned long long,
                                                    cudaDriverEntryPointQueryResult*)
    __attribute__((alias("cudaGetDriverEntryPoint")));
SIM_PER_THREAD_STREAM(cudaGetDriverEntryPointByVersion);
