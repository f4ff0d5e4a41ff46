// check_pointers.cpp -- see check_pointers.h.
//
// cuPointerGetAttributes answers for any address, in a stream capture and without a current context, too. For
// an address that CUDA does not know it sets all attributes to 0. On an H200 with CUDA 13.0 the range was the
// allocation, as many bytes as were asked for, for cudaMalloc, cudaMallocAsync, cudaMallocHost,
// cudaMallocManaged and cudaHostRegister. For memory that cuMemMap maps it was the reserved range, of which
// parts may not be mapped: so the last byte of a tensor is asked about as well. (cuMemGetAddressRange says
// one mapping there, but a tensor may go on in the next.) The documents say no more than that the range is
// the allocation, or the mappable range.

#include "host/launch/check_pointers.h"

#include <cudaTypedefs.h>

#include <cinttypes>
#include <cstdint>

#include "host/common/cuda_error.h"
#include "host/common/driver_function.h"
#include "host/common/status.h"

namespace dualgemm {
namespace {

using GetAttributes = PFN_cuPointerGetAttributes_v7000;
constinit DriverFunction get_attributes{"cuPointerGetAttributes", 7000};

// What the driver knows of the memory at an address.
struct Memory {
  unsigned type = 0;  // CUmemorytype; 0: CUDA does not know it
  unsigned managed = 0;
  int device = 0;
  CUdeviceptr seen_at = 0;  // by the device; 0: the driver does not say, as without a context
  CUdeviceptr start = 0;
  size_t size = 0;
};

dualgemm_status_t look_up(GetAttributes get, const Tensor& t, uintptr_t address, Memory* memory) {
  CUpointer_attribute attributes[] = {
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE,      CU_POINTER_ATTRIBUTE_IS_MANAGED,
      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,   CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
      CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  void* places[] = {&memory->type,    &memory->managed, &memory->device,
                    &memory->seen_at, &memory->start,   &memory->size};
  static_assert(sizeof attributes / sizeof *attributes == sizeof places / sizeof *places);
  const CUresult result = get(sizeof places / sizeof *places, attributes, places, address);
  if (result == CUDA_SUCCESS) return kOk;
  // CUresult and cudaError_t share their numbers.
  if (const auto error = static_cast<cudaError_t>(result); ends_context(error))
    return fail_cuda(error, "cuPointerGetAttributes");
  set_last_cuda_error(static_cast<int>(result));
  return fail(DUALGEMM_STATUS_CUDA_ERROR, "%s=%p: cuPointerGetAttributes failed with %d", t.name, t.base,
              static_cast<int>(result));
}

dualgemm_status_t check_seen(const Tensor& t, const Memory& memory, int32_t ordinal) {
  if (memory.type == 0)
    return fail(DUALGEMM_STATUS_INVALID_VALUE,
                "%s=%p: is no memory that device %" PRId32 " sees: CUDA neither allocated nor registered it",
                t.name, t.base, ordinal);
  if (memory.type == CU_MEMORYTYPE_HOST && memory.seen_at != 0 &&
      memory.seen_at != reinterpret_cast<uintptr_t>(t.base))
    return fail(DUALGEMM_STATUS_INVALID_VALUE,
                "%s=%p: is host memory, which device %" PRId32 " sees at 0x%llx", t.name, t.base, ordinal,
                memory.seen_at);
  if (memory.type == CU_MEMORYTYPE_DEVICE && !memory.managed && memory.device != ordinal)
    return fail(DUALGEMM_STATUS_INVALID_VALUE,
                "%s=%p: is memory of device %d, but device %" PRId32 " is current", t.name, t.base,
                memory.device, ordinal);
  return kOk;
}

dualgemm_status_t check_tensor(GetAttributes get, const Tensor& t, int32_t ordinal) {
  const auto address = reinterpret_cast<uintptr_t>(t.base);
  Memory memory;
  if (auto status = look_up(get, t, address, &memory)) return status;
  if (auto status = check_seen(t, memory, ordinal)) return status;
  const auto bytes = static_cast<uint64_t>(t.all_bytes());
  if (memory.size == 0 || bytes == 0) return kOk;  // the end is not known, or no byte is used
  const uint64_t left = memory.start + memory.size - address;
  if (bytes > left)
    return fail(DUALGEMM_STATUS_INVALID_VALUE,
                "%s=%p: takes %" PRIu64 " bytes, but its allocation has %" PRIu64 " left", t.name, t.base,
                bytes, left);
  Memory last;
  if (auto status = look_up(get, t, address + bytes - 1, &last)) return status;
  if (last.type == memory.type) return kOk;
  return fail(DUALGEMM_STATUS_INVALID_VALUE, "%s=%p: takes %" PRIu64 " bytes, but the last is not mapped",
              t.name, t.base, bytes);
}

}  // namespace

dualgemm_status_t check_pointers(const Problem& problem, int32_t ordinal) {
  GetAttributes get = nullptr;
  if (auto status = get_attributes.find(&get)) return status;
  for (const Tensor& t : problem.read_inputs())
    if (auto status = check_tensor(get, t, ordinal)) return status;
  for (const Tensor& t : problem.written_outputs())
    if (auto status = check_tensor(get, t, ordinal)) return status;
  return problem.workspace.given() ? check_tensor(get, problem.workspace, ordinal) : kOk;
}

}  // namespace dualgemm
