// shim_test.cu -- an ordinary CUDA program as nvcc builds it, on the simulated runtime:
// registration, launches, memory, symbols, errors, captures and queries.
// Every case that breaks the device repairs it with clear_fault().
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "sim/parse/module.h"
#include "sim/shim/shim.h"
#include "sim/unit/host_work.hpp"
#include "support/catch.hpp"
#include "support/device_memory.h"

namespace {

using dualgemm_test::DeviceArray;

__device__ int device_scale = 3;
__constant__ int constant_offset;

__global__ void affine(int* out, int n, int offset) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[i] = i * device_scale + constant_offset + offset;
}

__global__ void store_at(int* out, long index) { out[index] = 1; }

__global__ void shared_size(unsigned* out) {
  if (threadIdx.x == 0) asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(*out));
}

__global__ void cluster_ranks(unsigned* out) {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) out[blockIdx.x] = rank;
}

struct CapturedStream {
  CapturedStream() { REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess); }
  Stream stream;
};

// Memory of every kind.
struct Pointers {
  Pointers() {
    REQUIRE(cudaMallocHost(&pinned, 64) == cudaSuccess);
    REQUIRE(cudaMallocManaged(&managed, 64) == cudaSuccess);
  }
  DeviceArray<int> device{4};
  int local = 0, *pinned = nullptr, *managed = nullptr;
};

int set_offset(int offset) {
  REQUIRE(cudaMemcpyToSymbol(constant_offset, &offset, sizeof offset) == cudaSuccess);
  return offset;
}

}  // namespace

TEST_CASE("a launch sees its parameters and the module's variables", "[shim]") {
  const int n = 100, offset = set_offset(1000);
  const int scale = GENERATE(3, -7);
  REQUIRE(cudaMemcpyToSymbol(device_scale, &scale, sizeof scale) == cudaSuccess);
  DeviceArray<int> out(n);
  affine<<<4, 32>>>(out.data(), n, 5);
  REQUIRE(cudaGetLastError() == cudaSuccess);
  const auto values = out.host();
  for (int i = 0; i < n; ++i) CHECK(values[i] == i * scale + offset + 5);

  int read_back = 0;
  REQUIRE(cudaMemcpyFromSymbol(&read_back, device_scale, sizeof read_back) == cudaSuccess);
  CHECK(read_back == scale);
  size_t size = 0;
  REQUIRE(cudaGetSymbolSize(&size, device_scale) == cudaSuccess);
  CHECK(size == sizeof(int));
}

TEST_CASE("dynamic shared memory is bounded by the function attribute, and the refusal is not sticky",
          "[shim]") {
  DeviceArray<unsigned> out(1);
  const int limit = sim::kB200.smem_per_block_optin;
  REQUIRE(cudaFuncSetAttribute(shared_size, cudaFuncAttributeMaxDynamicSharedMemorySize, 49152) ==
          cudaSuccess);
  shared_size<<<1, 32, 49152 + 16>>>(out.data());
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaSuccess);

  CHECK(cudaFuncSetAttribute(shared_size, cudaFuncAttributeMaxDynamicSharedMemorySize, limit + 1) ==
        cudaErrorInvalidValue);
  REQUIRE(cudaFuncSetAttribute(shared_size, cudaFuncAttributeMaxDynamicSharedMemorySize, limit) ==
          cudaSuccess);
  cudaFuncAttributes attributes;
  REQUIRE(cudaFuncGetAttributes(&attributes, shared_size) == cudaSuccess);
  CHECK(attributes.maxDynamicSharedSizeBytes == limit);
  cudaGetLastError();
  shared_size<<<1, 32, limit>>>(out.data());
  REQUIRE(cudaGetLastError() == cudaSuccess);
  CHECK(out.host()[0] == static_cast<unsigned>(limit));
}

TEST_CASE("a fault is sticky, explained, and refuses every later call", "[shim]") {
  DeviceArray<int> out(8);
  store_at<<<1, 1>>>(out.data(), 1 << 20);
  CHECK(cudaPeekAtLastError() == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  int* more = nullptr;
  CHECK(cudaMalloc(&more, 16) == cudaErrorIllegalAddress);
  CHECK_FALSE(sim::shim::last_fault_text().empty());
  sim::shim::clear_fault();
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(sim::shim::last_fault_text().empty());
  store_at<<<1, 1>>>(out.data(), 7);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

TEST_CASE("launch attributes: clusters form, unknown attributes are refused", "[shim]") {
  DeviceArray<unsigned> out(8);
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {4, 1, 1};
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = 8;
  config.blockDim = 32;
  config.attrs = attributes;
  config.numAttrs = 2;

  SECTION("ranks count up within each cluster") {
    REQUIRE(cudaLaunchKernelEx(&config, cluster_ranks, out.data()) == cudaSuccess);
    const auto ranks = out.host();
    for (unsigned i = 0; i < 8; ++i) CHECK(ranks[i] == i % 4);
  }
  SECTION("more than 8 blocks need the non-portable attribute") {
    attributes[0].val.clusterDim = {16, 1, 1};
    config.gridDim = 16;
    CHECK(cudaLaunchKernelEx(&config, cluster_ranks, out.data()) == cudaErrorInvalidClusterSize);
  }
  SECTION("an attribute the runtime does not know") {
    attributes[1].id = cudaLaunchAttributeDeviceUpdatableKernelNode;
    CHECK(cudaLaunchKernelEx(&config, cluster_ranks, out.data()) == cudaErrorNotSupported);
  }
  cudaGetLastError();
}

TEST_CASE("a cluster that has room nowhere is counted as 0, and fails its launch", "[shim]") {
  struct OnPart {
    OnPart() { sim::shim::set_machine(sim::machine_named("b200,sms=78,clusters_of_2=3,clusters_of_4=0")); }
    ~OnPart() { sim::shim::set_machine(sim::kB200); }
  } const here;
  DeviceArray<unsigned> out(std::vector<unsigned>(8, 9));
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  cudaLaunchConfig_t config = {};
  config.gridDim = 8;
  config.blockDim = 1024;
  config.dynamicSmemBytes = 40000;
  config.attrs = &attribute;
  config.numAttrs = 1;
  const auto counted = [&](unsigned size) {
    attribute.val.clusterDim = {size, 1, 1};
    int clusters = -1;
    CHECK(cudaOccupancyMaxActiveClusters(&clusters, cluster_ranks, &config) == cudaSuccess);
    return clusters;
  };
  CHECK(counted(1) == 78);
  CHECK(counted(2) == 3);
  CHECK(counted(4) == 0);
  CHECK(cudaLaunchKernelEx(&config, cluster_ranks, out.data()) == cudaErrorInvalidClusterSize);
  CHECK(sim::shim::last_fault_text().find("no cluster of 4 blocks has room on the B200,sms=78") !=
        std::string::npos);
  CHECK(out.host() == std::vector<unsigned>(8, 9));
  int largest = 0;
  CHECK(cudaOccupancyMaxPotentialClusterSize(&largest, cluster_ranks, &config) == cudaSuccess);
  CHECK(largest == 2);
  attribute.val.clusterDim = {2, 1, 1};
  CHECK(cudaLaunchKernelEx(&config, cluster_ranks, out.data()) == cudaSuccess);
  CHECK(out.host() == std::vector<unsigned>{0, 1, 0, 1, 0, 1, 0, 1});
  cudaGetLastError();
  sim::shim::clear_fault();
}

TEST_CASE("a capture runs nothing and keeps its own copy of the parameters", "[shim]") {
  const int n = 32, offset = set_offset(0), scale = 1;
  REQUIRE(cudaMemcpyToSymbol(device_scale, &scale, sizeof scale) == cudaSuccess);
  DeviceArray<int> out(n), copy(n);
  out.fill(0xff);
  copy.fill(0xff);
  CapturedStream captured;
  {
    int value = 40;
    int* target = out.data();
    int count = n;
    void* args[] = {&target, &count, &value};
    REQUIRE(cudaLaunchKernel(reinterpret_cast<const void*>(affine), 1, n, args, 0, captured.stream) ==
            cudaSuccess);
    value = -1;
    target = nullptr;
  }
  REQUIRE(cudaMemcpyAsync(copy.data(), out.data(), n * sizeof(int), cudaMemcpyDeviceToDevice,
                          captured.stream) == cudaSuccess);
  cudaStreamCaptureStatus status;
  REQUIRE(cudaStreamIsCapturing(captured.stream, &status) == cudaSuccess);
  CHECK(status == cudaStreamCaptureStatusActive);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaStreamEndCapture(captured.stream, &graph) == cudaSuccess);
  size_t nodes = 0;
  REQUIRE(cudaGraphGetNodes(graph, nullptr, &nodes) == cudaSuccess);
  CHECK(nodes == 2);
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  CHECK(copy.host() == std::vector<int>(n, -1));

  for (int repeat = 0; repeat < 2; ++repeat) {
    copy.fill(0xff);
    REQUIRE(cudaGraphLaunch(exec, captured.stream) == cudaSuccess);
    const auto values = copy.host();
    for (int i = 0; i < n; ++i) CHECK(values[i] == i + offset + 40);
  }
  CHECK(cudaGraphExecDestroy(exec) == cudaSuccess);
  CHECK(cudaGraphExecDestroy(exec) == cudaErrorInvalidResourceHandle);
  cudaGetLastError();
}

TEST_CASE("forked streams must join the capture they left", "[shim]") {
  DeviceArray<int> out(8);
  out.fill(0);
  CapturedStream origin;
  const Stream side;
  const Event fork, join;
  REQUIRE(cudaEventRecord(fork, origin.stream) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(side, fork, 0) == cudaSuccess);
  store_at<<<1, 1, 0, side>>>(out.data(), 5);
  const bool joined = GENERATE(true, false);
  if (joined) {
    REQUIRE(cudaEventRecord(join, side) == cudaSuccess);
    REQUIRE(cudaStreamWaitEvent(origin.stream, join, 0) == cudaSuccess);
  }
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(origin.stream, &graph) ==
        (joined ? cudaSuccess : cudaErrorStreamCaptureUnjoined));
  CHECK((graph != nullptr) == joined);
  cudaStreamCaptureStatus status;
  REQUIRE(cudaStreamIsCapturing(side, &status) == cudaSuccess);
  CHECK(status == cudaStreamCaptureStatusNone);
  CHECK(out.host()[5] == 0);
  if (graph) cudaGraphDestroy(graph);
  cudaGetLastError();
}

TEST_CASE("calls that may synchronise are refused during a capture and spoil it", "[shim]") {
  CapturedStream captured;
  int* memory = nullptr;
  cudaGraph_t graph = nullptr;
  SECTION("allocation") { CHECK(cudaMalloc(&memory, 16) == cudaErrorStreamCaptureUnsupported); }
  SECTION("device synchronisation") { CHECK(cudaDeviceSynchronize() == cudaErrorStreamCaptureUnsupported); }
  SECTION("waiting for the stream") {
    CHECK(cudaStreamSynchronize(captured.stream) == cudaErrorStreamCaptureUnsupported);
  }
  CHECK(cudaStreamEndCapture(captured.stream, &graph) == cudaErrorStreamCaptureInvalidated);
  CHECK(graph == nullptr);
  cudaGetLastError();
}

TEST_CASE("legacy-stream work beside a captured blocking stream is an implicit dependency", "[shim]") {
  DeviceArray<int> out(4);
  const Stream stream(cudaStreamDefault);
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  CHECK(cudaMemsetAsync(out.data(), 0, 16, nullptr) == cudaErrorStreamCaptureImplicit);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
}

TEST_CASE("copies and fills stay inside allocations and rows", "[shim]") {
  DeviceArray<uint8_t> device(64);
  device.fill(0x11);
  std::vector<uint8_t> host(80, 0x22);
  SECTION("a copy past the end") {
    CHECK(cudaMemcpy(device.data(), host.data(), 65, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    CHECK(cudaMemcpy(host.data(), device.data() + 1, 64, cudaMemcpyDefault) == cudaErrorInvalidValue);
    CHECK(device.host() == std::vector<uint8_t>(64, 0x11));
    CHECK(host == std::vector<uint8_t>(80, 0x22));
  }
  SECTION("a direction that contradicts the pointers") {
    CHECK(cudaMemcpy(host.data(), device.data(), 8, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  }
  SECTION("rectangles leave the gap between rows alone") {
    REQUIRE(cudaMemset2D(device.data(), 16, 0x33, 10, 4) == cudaSuccess);
    REQUIRE(cudaMemcpy2D(host.data(), 20, device.data(), 16, 12, 4, cudaMemcpyDeviceToHost) == cudaSuccess);
    for (int row = 0; row < 4; ++row)
      for (int column = 0; column < 20; ++column)
        CHECK(host[row * 20 + column] == (column < 10 ? 0x33 : column < 12 ? 0x11 : 0x22));
  }
  SECTION("a row wider than its pitch") {
    CHECK(cudaMemset2D(device.data(), 8, 0, 9, 2) == cudaErrorInvalidPitchValue);
  }
  cudaGetLastError();
}

TEST_CASE("bytes nobody wrote reach the host as no plausible value and poison their copies", "[shim]") {
  DeviceArray<uint8_t> from(32), to(32);
  to.fill(0);
  REQUIRE(cudaMemset(from.data() + 8, 1, 8) == cudaSuccess);
  REQUIRE(cudaMemcpy(to.data(), from.data(), 32, cudaMemcpyDeviceToDevice) == cudaSuccess);
  const auto* copy = sim::shim::memory().find(reinterpret_cast<uint64_t>(to.data()), 32);
  REQUIRE(copy != nullptr);
  const auto values = to.host();
  for (size_t i = 0; i < 32; ++i) {
    const bool written = i >= 8 && i < 16;
    CHECK((copy->states[i] == sim::kWritten) == written);
    CHECK((written ? values[i] == 1 : values[i] != 0));
  }
  CHECK(cudaMemcpy(from.data(), from.data() + 4, 8, cudaMemcpyDeviceToDevice) == cudaErrorInvalidValue);
  cudaGetLastError();
}

TEST_CASE("pointers are classified", "[shim]") {
  Pointers all;
  auto& [device, local, pinned, managed] = all;
  const auto type = [](const void* pointer) {
    cudaPointerAttributes attributes;
    REQUIRE(cudaPointerGetAttributes(&attributes, pointer) == cudaSuccess);
    return attributes.type;
  };
  CHECK(type(device.data() + 1) == cudaMemoryTypeDevice);
  CHECK(type(pinned + 15) == cudaMemoryTypeHost);
  CHECK(type(managed) == cudaMemoryTypeManaged);
  CHECK(type(&local) == cudaMemoryTypeUnregistered);
  CHECK(cudaFree(pinned) == cudaErrorInvalidValue);
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
  CHECK(cudaFree(managed) == cudaSuccess);
  CHECK(cudaFree(managed) == cudaErrorInvalidValue);
  CHECK(cudaFree(nullptr) == cudaSuccess);
  cudaGetLastError();
}

// The numbers are those of an H200.
TEST_CASE("the driver says of an address whose it is, and of which allocation", "[shim]") {
  Pointers all;
  auto& [device, local, pinned, managed] = all;
  const auto check = [](const void* address, unsigned type, unsigned managed_or_not, const void* start,
                        size_t size) {
    unsigned memory_type = 9, is_managed = 9;
    int ordinal = 9;
    CUdeviceptr seen_at = 9, range_start = 9;
    size_t range_size = 9;
    CUpointer_attribute attributes[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,      CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,   CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void* places[] = {&memory_type, &is_managed, &ordinal, &seen_at, &range_start, &range_size};
    const auto pointer = reinterpret_cast<CUdeviceptr>(address);
    REQUIRE(cuPointerGetAttributes(6, attributes, places, pointer) == CUDA_SUCCESS);
    CHECK(memory_type == type);
    CHECK(is_managed == managed_or_not);
    CHECK(ordinal == (type == 0 ? cudaInvalidDeviceId : 0));
    CHECK(seen_at == (type == 0 ? 0 : pointer));
    CHECK(range_start == reinterpret_cast<CUdeviceptr>(start));
    CHECK(range_size == size);
  };
  check(device.data() + 1, CU_MEMORYTYPE_DEVICE, 0, device.data(), 16);
  check(pinned + 15, CU_MEMORYTYPE_HOST, 0, pinned, 64);
  check(managed, CU_MEMORYTYPE_DEVICE, 1, managed, 64);
  check(&local, 0, 0, nullptr, 0);
  check(device.data() + 4, 0, 0, nullptr, 0);
  CHECK(cuPointerGetAttributes(0, nullptr, nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
  cudaGetLastError();
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
  CHECK(cudaFree(managed) == cudaSuccess);
}

TEST_CASE("the device describes itself consistently", "[shim]") {
  cudaDeviceProp properties;
  REQUIRE(cudaGetDeviceProperties(&properties, 0) == cudaSuccess);
  CHECK(properties.major == 10);
  CHECK(properties.minor == 0);
  const auto attribute = [](cudaDeviceAttr which) {
    int value = -1;
    REQUIRE(cudaDeviceGetAttribute(&value, which, 0) == cudaSuccess);
    return value;
  };
  CHECK(attribute(cudaDevAttrMultiProcessorCount) == properties.multiProcessorCount);
  CHECK(static_cast<size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)) ==
        properties.sharedMemPerBlockOptin);
  CHECK(properties.sharedMemPerBlockOptin + properties.reservedSharedMemPerBlock ==
        properties.sharedMemPerMultiprocessor);
  int value = 0;
  CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxTexture1DWidth, 0) == cudaErrorInvalidValue);
  CHECK(cudaSetDevice(1) == cudaErrorInvalidDevice);
  cudaGetLastError();
}

TEST_CASE("occupancy falls with shared memory and never exceeds the threads of a multiprocessor", "[shim]") {
  REQUIRE(cudaFuncSetAttribute(shared_size, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               sim::kB200.smem_per_block_optin) == cudaSuccess);
  int light = 0, heavy = 0;
  REQUIRE(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&light, shared_size, 256, 0) == cudaSuccess);
  REQUIRE(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&heavy, shared_size, 256, 200 * 1024) == cudaSuccess);
  CHECK(heavy == 1);
  CHECK(light > 1);
  CHECK(light * 256 <= sim::kB200.threads_per_sm);
}

TEST_CASE("driver entry points are found by name, and only those", "[shim]") {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult status;
  REQUIRE(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault,
                                           &status) == cudaSuccess);
  CHECK(status == cudaDriverEntryPointSuccess);
  CHECK(function == reinterpret_cast<void*>(cuTensorMapEncodeTiled));
  REQUIRE(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &function, 12000, cudaEnableDefault,
                                           &status) == cudaSuccess);
  CHECK(status == cudaDriverEntryPointSymbolNotFound);
  CHECK(function == nullptr);
  const char* text = nullptr;
  CHECK(cuGetErrorName(CUDA_ERROR_INVALID_VALUE, &text) == CUDA_SUCCESS);
  CHECK(std::strcmp(text, "CUDA_ERROR_INVALID_VALUE") == 0);
}

TEST_CASE("a bad tensor map is refused through the driver's own code", "[shim]") {
  DeviceArray<uint8_t> data(4096);
  alignas(64) CUtensorMap map;
  const cuuint64_t dims[2] = {64, 64}, strides[1] = {64};
  const cuuint32_t box[2] = {64, 8}, steps[2] = {1, 1};
  const auto encode = [&](void* base) {
    return cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, base, dims, strides, box, steps,
                                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                  CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  CHECK(encode(data.data()) == CUDA_SUCCESS);
  CHECK(cuTensorMapReplaceAddress(&map, data.data() + 16) == CUDA_SUCCESS);
  CHECK(cuTensorMapReplaceAddress(&map, data.data() + 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(encode(data.data() + 8) == CUDA_ERROR_INVALID_VALUE);
  CHECK_FALSE(sim::shim::last_fault_text().empty());
  sim::shim::clear_fault();
}

TEST_CASE("events order host time and refuse to be read unrecorded", "[shim]") {
  cudaEvent_t begin = nullptr, end = nullptr;
  REQUIRE(cudaEventCreate(&begin) == cudaSuccess);
  REQUIRE(cudaEventCreate(&end) == cudaSuccess);
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, begin, end) == cudaErrorInvalidResourceHandle);
  REQUIRE(cudaEventRecord(begin) == cudaSuccess);
  REQUIRE(cudaEventRecord(end) == cudaSuccess);
  REQUIRE(cudaEventSynchronize(end) == cudaSuccess);
  REQUIRE(cudaEventElapsedTime(&milliseconds, begin, end) == cudaSuccess);
  CHECK(milliseconds >= 0);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaGetLastError();
}

TEST_CASE("a kernel's name is its entry's in the PTX", "[shim]") {
  std::vector<std::string> entries;
  sim::shim::set_module_editor([&](sim::ptx::Module& module) {
    for (const sim::ptx::Function& function : module.functions)
      if (function.is_entry) entries.push_back(function.name);
  });
  sim::shim::reload_modules();
  cudaFuncAttributes attributes;
  REQUIRE(cudaFuncGetAttributes(&attributes, store_at) == cudaSuccess);
  sim::shim::set_module_editor({});
  const char* name = nullptr;
  REQUIRE(cudaFuncGetName(&name, reinterpret_cast<const void*>(store_at)) == cudaSuccess);
  CHECK(std::string(name).find("store_at") != std::string::npos);
  CHECK(std::count(entries.begin(), entries.end(), name) == 1);
  cudaKernel_t kernel = nullptr;
  REQUIRE(cudaGetKernel(&kernel, reinterpret_cast<const void*>(store_at)) == cudaSuccess);
  const char* again = nullptr;
  REQUIRE(cudaFuncGetName(&again, kernel) == cudaSuccess);
  CHECK(std::string(again) == name);

  const char* kept = name;
  const int no_kernel = 0;
  CHECK(cudaFuncGetName(nullptr, reinterpret_cast<const void*>(store_at)) == cudaErrorInvalidValue);
  CHECK(cudaFuncGetName(nullptr, nullptr) == cudaErrorInvalidValue);
  CHECK(cudaFuncGetName(&name, nullptr) == cudaErrorInvalidDeviceFunction);
  CHECK(cudaFuncGetName(&name, &no_kernel) == cudaErrorInvalidDeviceFunction);
  CHECK(name == kept);
  cudaGetLastError();
}

TEST_CASE("a module editor changes what a kernel does, and only from the next load on", "[shim]") {
  DeviceArray<int> out(1);
  const auto stored = [&] {
    out.fill(0);
    store_at<<<1, 1>>>(out.data(), 0);
    REQUIRE(cudaGetLastError() == cudaSuccess);
    return out.host()[0];
  };
  REQUIRE(stored() == 1);
  sim::shim::set_module_editor([](sim::ptx::Module& module) {
    for (sim::ptx::Function& function : module.functions)
      if (function.name.find("store_at") != std::string::npos)
        for (sim::ptx::Statement& statement : function.body)
          for (sim::ptx::Operand& operand : statement.operands)
            if (statement.opcode == "mov" || statement.opcode == "st")
              if (operand.kind == sim::ptx::Operand::Kind::kInteger && operand.value == 1) operand.value = 7;
  });
  CHECK(stored() == 1);
  sim::shim::reload_modules();
  CHECK(stored() == 7);
  sim::shim::set_module_editor({});
  sim::shim::reload_modules();
  CHECK(stored() == 1);
}
