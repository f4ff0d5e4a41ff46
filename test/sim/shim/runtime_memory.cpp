// runtime_memory.cpp -- allocation, copies, fills, symbols and pointer queries of the runtime API.
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "sim/shim/copy.h"
#include "sim/shim/device.h"
#include "sim/shim/held.h"
#include "sim/shim/pointer.h"
#include "sim/shim/state.h"

using namespace sim::shim;

constexpr size_t kHostAlignment = 4096, kPitchAlignment = 512;

static uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

static size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

// Returns what reports call an allocation: "cudaMalloc 3".
static std::string numbered(Runtime& runtime, const char* what) {
  return what + (" " + std::to_string(++runtime.allocations));
}

static void* allocate_device(Runtime& runtime, size_t size, const char* what, int device) {
  if (size > runtime.machine.memory_bytes - runtime.memory.bytes_in_use(device))
    fail(cudaErrorMemoryAllocation, "the device has no " + std::to_string(size) + " bytes left");
  return runtime.memory.allocate(size, numbered(runtime, what), device);
}

static void release_device(Runtime& runtime, void* pointer) {
  if (!pointer) return;
  if (runtime.host_blocks.contains(address_of(pointer)))
    fail(cudaErrorInvalidValue, "the pointer is host memory");
  runtime.memory.release(pointer);
}

static void* allocate_host(Runtime& runtime, size_t size, cudaMemoryType type, unsigned flags,
                           const char* what) {
  if (size == 0) return nullptr;
  void* memory = std::aligned_alloc(kHostAlignment, round_up(size, kHostAlignment));
  if (!memory) throw std::bad_alloc();
  runtime.memory.adopt(memory, size, numbered(runtime, what));
  runtime.host_blocks[address_of(memory)] = {size, type, HostBlock::Owner::kRuntime, flags, current_device()};
  return memory;
}

static void release_host(Runtime& runtime, void* pointer, cudaMemoryType type) {
  const auto block = runtime.host_blocks.find(address_of(pointer));
  if (block == runtime.host_blocks.end() || block->second.type != type ||
      block->second.owner != HostBlock::Owner::kRuntime)
    fail(cudaErrorInvalidValue, "the pointer is not the start of such an allocation");
  runtime.memory.release(pointer);
  runtime.host_blocks.erase(block);
  std::free(pointer);
}

static bool is_device(Runtime& runtime, const void* pointer) {
  return device_of(runtime, pointer) != sim::kNoDevice;
}

static bool between_devices(Runtime& runtime, const void* to, const void* from) {
  return is_device(runtime, to) && is_device(runtime, from) &&
         device_of(runtime, to) != device_of(runtime, from);
}

// Synchronous copies and fills go through the legacy default stream and are therefore no part of any capture.
static sim::shim::Frontier now(Runtime& runtime, const char* what, sim::shim::Work work) {
  runtime.streams.forbid_during_capture(what);
  return submit(runtime, nullptr, {cudaGraphNodeTypeMemcpy, what, std::move(work)});
}

// A copy with a host side has completed when the call returns; one between device memories, and a fill, need
// not have. The copy of pageable memory to the device may end after the call as well, but no kernel can be
// seen to overtake it.
static void copy_now(Runtime& runtime, const char* what, const void* to, const void* from,
                     sim::shim::Work work) {
  if (between_devices(runtime, to, from)) {
    runtime.streams.forbid_during_capture(what);
    sim::shim::submit_between(runtime, device_of(runtime, to), device_of(runtime, from),
                              {cudaGraphNodeTypeMemcpy, what, std::move(work)});
    return;
  }
  const auto done = now(runtime, what, std::move(work));
  if (!is_device(runtime, to) || !is_device(runtime, from)) runtime.order.host_waited(done);
}

// An asynchronous copy to pageable memory returns when it has completed.
static void copy_later(Runtime& runtime, const char* what, const void* to, const void* from,
                       cudaStream_t stream, sim::shim::Work work) {
  if (runtime.streams.is_legacy(runtime.streams.find(stream)) && between_devices(runtime, to, from)) {
    sim::shim::submit_between(runtime, device_of(runtime, to), device_of(runtime, from),
                              {cudaGraphNodeTypeMemcpy, what, std::move(work)});
    return;
  }
  const bool waits = !runtime.streams.find(stream).capture && is_device(runtime, from) &&
                     !runtime.memory.find(address_of(to), 1);
  const auto done = submit(runtime, stream, {cudaGraphNodeTypeMemcpy, what, std::move(work)});
  if (waits) runtime.order.host_waited(done);
}

// Memory goes back when the work of its device has ended.
static void wait_for_device(Runtime& runtime, const char* what, int device) {
  runtime.order.host_waits(runtime, what, runtime.order.everything(runtime, device));
}

// Memory of the host goes with the device that was current when it was allocated.
static int home_of(Runtime& runtime, const void* pointer) {
  if (const HostBlock* block = host_block_of(runtime, pointer)) return block->device;
  const int device = device_of(runtime, pointer);
  return device == sim::kNoDevice ? current_device() : device;
}

static uint8_t* symbol_range(Runtime& runtime, const void* symbol, size_t n, size_t offset) {
  const sim::GlobalVariable variable = runtime.registry.variable(symbol, runtime.memory, current_device());
  require(offset <= variable.size && n <= variable.size - offset, "the copy exceeds the symbol");
  return reinterpret_cast<uint8_t*>(variable.address) + offset;
}

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t size) {
  return call("cudaMalloc", [&](Runtime& runtime) {
    require(pointer, "no place for the pointer");
    runtime.streams.forbid_during_capture("cudaMalloc");
    *pointer = allocate_device(runtime, size, "cudaMalloc", current_device());
  });
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  return call("cudaMallocPitch", [&](Runtime& runtime) {
    require(pointer && pitch, "no place for the pointer or the pitch");
    runtime.streams.forbid_during_capture("cudaMallocPitch");
    *pitch = round_up(width, kPitchAlignment);
    *pointer = allocate_device(runtime, *pitch * height, "cudaMallocPitch", current_device());
  });
}

cudaError_t cudaFree(void* pointer) {
  return call("cudaFree", [&](Runtime& runtime) {
    runtime.streams.forbid_during_capture("cudaFree");
    if (pointer) wait_for_device(runtime, "cudaFree", home_of(runtime, pointer));
    const auto block = runtime.host_blocks.find(address_of(pointer));
    if (block != runtime.host_blocks.end() && block->second.type == cudaMemoryTypeManaged)
      release_host(runtime, pointer, cudaMemoryTypeManaged);
    else release_device(runtime, pointer);
  });
}

cudaError_t cudaMallocAsync(void** pointer, size_t size, cudaStream_t stream) {
  return call("cudaMallocAsync", [&](Runtime& runtime) {
    require(pointer, "no place for the pointer");
    if (runtime.streams.find(stream).capture)
      fail(cudaErrorStreamCaptureUnsupported, "memory nodes in graphs are not simulated");
    submit(runtime, stream, {cudaGraphNodeTypeMemAlloc, "cudaMallocAsync", [&](Runtime& r) {
                               *pointer =
                                   allocate_device(r, size, "cudaMallocAsync", r.order.current->device);
                               r.order.announce(r, sim::HostWork::Kind::kHost, {});
                             }});
  });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return call("cudaFreeAsync", [&](Runtime& runtime) {
    if (runtime.streams.find(stream).capture)
      fail(cudaErrorStreamCaptureUnsupported, "memory nodes in graphs are not simulated");
    submit(runtime, stream, {cudaGraphNodeTypeMemFree, "cudaFreeAsync", [&](Runtime& r) {
                               std::vector<sim::Region> regions;
                               if (const auto* whole = r.memory.find(address_of(pointer), 1))
                                 sim::shim::append_region(regions, whole->base, whole->size, true);
                               r.order.announce(r, sim::HostWork::Kind::kHost, std::move(regions));
                               release_device(r, pointer);
                             }});
  });
}

cudaError_t cudaHostAlloc(void** pointer, size_t size, unsigned flags) {
  return call("cudaHostAlloc", [&](Runtime& runtime) {
    require(pointer, "no place for the pointer");
    require(
        (flags & ~unsigned{cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined}) == 0,
        "unknown host allocation flags");
    runtime.streams.forbid_during_capture("cudaHostAlloc");
    *pointer = allocate_host(runtime, size, cudaMemoryTypeHost, flags, "cudaHostAlloc");
  });
}

cudaError_t cudaMallocHost(void** pointer, size_t size) {
  return cudaHostAlloc(pointer, size, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void* pointer) {
  return call("cudaFreeHost", [&](Runtime& runtime) {
    runtime.streams.forbid_during_capture("cudaFreeHost");
    if (pointer) wait_for_device(runtime, "cudaFreeHost", home_of(runtime, pointer));
    if (pointer) release_host(runtime, pointer, cudaMemoryTypeHost);
  });
}

cudaError_t cudaMallocManaged(void** pointer, size_t size, unsigned flags) {
  return call("cudaMallocManaged", [&](Runtime& runtime) {
    require(pointer && size > 0, "no place for the pointer, or no bytes");
    require(flags == cudaMemAttachGlobal || flags == cudaMemAttachHost, "unknown attachment flags");
    runtime.streams.forbid_during_capture("cudaMallocManaged");
    *pointer = allocate_host(runtime, size, cudaMemoryTypeManaged, flags, "cudaMallocManaged");
  });
}

cudaError_t cudaHostRegister(void* pointer, size_t size, unsigned flags) {
  return call("cudaHostRegister", [&](Runtime& runtime) {
    require(pointer && size > 0, "nothing to register");
    if (runtime.memory.find(address_of(pointer), 1))
      fail(cudaErrorHostMemoryAlreadyRegistered, "the memory is already known to the device");
    runtime.memory.adopt(pointer, size, numbered(runtime, "cudaHostRegister"));
    runtime.host_blocks[address_of(pointer)] = {size, cudaMemoryTypeHost, HostBlock::Owner::kProgram, flags,
                                                current_device()};
  });
}

cudaError_t cudaHostUnregister(void* pointer) {
  return call("cudaHostUnregister", [&](Runtime& runtime) {
    const auto block = runtime.host_blocks.find(address_of(pointer));
    if (block == runtime.host_blocks.end() || block->second.owner != HostBlock::Owner::kProgram)
      fail(cudaErrorHostMemoryNotRegistered, "the pointer was not registered");
    run_held(runtime);
    runtime.memory.release(pointer);
    runtime.host_blocks.erase(block);
  });
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned flags) {
  return call("cudaHostGetDevicePointer", [&](Runtime& runtime) {
    require(device && flags == 0, "no place for the pointer, or flags other than 0");
    require(host_block_of(runtime, host), "the pointer is no pinned or managed memory");
    *device = host;
  });
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* host) {
  return call("cudaHostGetFlags", [&](Runtime& runtime) {
    const HostBlock* block = host_block_of(runtime, host);
    require(flags && block, "no place for the flags, or no pinned memory");
    *flags = block->flags;
  });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return call("cudaMemGetInfo", [&](Runtime& runtime) {
    require(free && total, "no place for the answer");
    *total = runtime.machine.memory_bytes;
    *free = runtime.machine.memory_bytes - runtime.memory.bytes_in_use(current_device());
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return call("cudaPointerGetAttributes", [&](Runtime& runtime) {
    require(attributes, "no place for the attributes");
    const sim::shim::Pointer found = sim::shim::look_up(runtime, pointer);
    *attributes = {};
    attributes->type = found.type;
    attributes->device = found.device;
    void* const address = const_cast<void*>(pointer);
    if (found.type != cudaMemoryTypeUnregistered) attributes->devicePointer = address;
    if (found.type != cudaMemoryTypeDevice) attributes->hostPointer = address;
  });
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t n, cudaMemcpyKind kind) {
  return call("cudaMemcpy", [&](Runtime& runtime) {
    copy_now(runtime, "cudaMemcpy", to, from,
             [=](Runtime& r) { sim::shim::copy_bytes(r, to, from, n, kind); });
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t n, cudaMemcpyKind kind, cudaStream_t stream) {
  return call("cudaMemcpyAsync", [&](Runtime& runtime) {
    copy_later(runtime, "cudaMemcpyAsync", to, from, stream,
               [=](Runtime& r) { sim::shim::copy_bytes(r, to, from, n, kind); });
  });
}

cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                         size_t height, cudaMemcpyKind kind) {
  return call("cudaMemcpy2D", [&](Runtime& runtime) {
    copy_now(runtime, "cudaMemcpy2D", to, from, [=](Runtime& r) {
      sim::shim::copy_rows(r, to, to_pitch, from, Rows{from_pitch, width, height}, kind);
    });
  });
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return call("cudaMemcpy2DAsync", [&](Runtime& runtime) {
    copy_later(runtime, "cudaMemcpy2DAsync", to, from, stream, [=](Runtime& r) {
      sim::shim::copy_rows(r, to, to_pitch, from, Rows{from_pitch, width, height}, kind);
    });
  });
}

// The devices of the two sides follow from the pointers. The arguments say them once more, and an H200 does
// not compare the two.
cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t n) {
  return call("cudaMemcpyPeer", [&](Runtime& runtime) {
    sim::shim::require_device(runtime, to_device);
    sim::shim::require_device(runtime, from_device);
    copy_now(runtime, "cudaMemcpyPeer", to, from,
             [=](Runtime& r) { sim::shim::copy_bytes(r, to, from, n, cudaMemcpyDeviceToDevice); });
  });
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t n,
                                cudaStream_t stream) {
  return call("cudaMemcpyPeerAsync", [&](Runtime& runtime) {
    sim::shim::require_device(runtime, to_device);
    sim::shim::require_device(runtime, from_device);
    copy_later(runtime, "cudaMemcpyPeerAsync", to, from, stream,
               [=](Runtime& r) { sim::shim::copy_bytes(r, to, from, n, cudaMemcpyDeviceToDevice); });
  });
}

cudaError_t cudaMemset(void* to, int value, size_t n) {
  return call("cudaMemset", [&](Runtime& runtime) {
    now(runtime, "cudaMemset", [=](Runtime& r) { sim::shim::fill_rows(r, to, value, Rows{n, n, 1}); });
  });
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t n, cudaStream_t stream) {
  return call("cudaMemsetAsync", [&](Runtime& runtime) {
    submit(runtime, stream, {cudaGraphNodeTypeMemset, "cudaMemsetAsync", [=](Runtime& r) {
                               sim::shim::fill_rows(r, to, value, Rows{n, n, 1});
                             }});
  });
}

cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return call("cudaMemset2D", [&](Runtime& runtime) {
    now(runtime, "cudaMemset2D", [=](Runtime& r) {
      sim::shim::fill_rows(r, to, value, Rows{pitch, width, height});
    });
  });
}

cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return call("cudaMemset2DAsync", [&](Runtime& runtime) {
    submit(runtime, stream, {cudaGraphNodeTypeMemset, "cudaMemset2DAsync", [=](Runtime& r) {
                               sim::shim::fill_rows(r, to, value, Rows{pitch, width, height});
                             }});
  });
}

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  return call("cudaGetSymbolAddress", [&](Runtime& runtime) {
    require(address, "no place for the address");
    *address = symbol_range(runtime, symbol, 0, 0);
  });
}

cudaError_t cudaGetSymbolSize(size_t* size, const void* symbol) {
  return call("cudaGetSymbolSize", [&](Runtime& runtime) {
    require(size, "no place for the size");
    *size = runtime.registry.variable(symbol, runtime.memory, current_device()).size;
  });
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t n, size_t offset,
                               cudaMemcpyKind kind) {
  return call("cudaMemcpyToSymbol", [&](Runtime& runtime) {
    void* to = symbol_range(runtime, symbol, n, offset);
    copy_now(runtime, "cudaMemcpyToSymbol", to, from,
             [=](Runtime& r) { sim::shim::copy_bytes(r, to, from, n, kind); });
  });
}

cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t n, size_t offset, cudaMemcpyKind kind) {
  return call("cudaMemcpyFromSymbol", [&](Runtime& runtime) {
    const void* from = symbol_range(runtime, symbol, n, offset);
    copy_now(runtime, "cudaMemcpyFromSymbol", to, from,
             [=](Runtime& r) { sim::shim::copy_bytes(r, to, from, n, kind); });
  });
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t n, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
  return call("cudaMemcpyToSymbolAsync", [&](Runtime& runtime) {
    void* to = symbol_range(runtime, symbol, n, offset);
    copy_later(runtime, "cudaMemcpyToSymbolAsync", to, from, stream,
               [=](Runtime& r) { sim::shim::copy_bytes(r, to, from, n, kind); });
  });
}

cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t n, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  return call("cudaMemcpyFromSymbolAsync", [&](Runtime& runtime) {
    const void* from = symbol_range(runtime, symbol, n, offset);
    copy_later(runtime, "cudaMemcpyFromSymbolAsync", to, from, stream,
               [=](Runtime& r) { sim::shim::copy_bytes(r, to, from, n, kind); });
  });
}

}  // extern "C"

SIM_PER_THREAD_STREAM(cudaMallocAsync);
SIM_PER_THREAD_STREAM(cudaFreeAsync);
SIM_PER_THREAD_STREAM(cudaMemcpyAsync);
SIM_PER_THREAD_STREAM(cudaMemcpy2DAsync);
SIM_PER_THREAD_STREAM(cudaMemsetAsync);
SIM_PER_THREAD_STREAM(cudaMemset2DAsync);
SIM_PER_THREAD_STREAM(cudaMemcpyToSymbolAsync);
SIM_PER_THREAD_STREAM(cudaMemcpyFromSymbolAsync);
SIM_PER_THREAD_DEFAULT(cudaMemcpy);
SIM_PER_THREAD_DEFAULT(cudaMemcpy2D);
SIM_PER_THREAD_DEFAULT(cudaMemset);
SIM_PER_THREAD_DEFAULT(cudaMemset2D);
SIM_PER_THREAD_DEFAULT(cudaMemcpyToSymbol);
SIM_PER_THREAD_DEFAULT(cudaMemcpyFromSymbol);
