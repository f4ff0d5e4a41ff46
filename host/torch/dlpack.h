// dlpack.h -- what version 1.3 of DLPack's header (github.com/dmlc/dlpack) lays down, as far as it is used: a
// tensor, and the table of functions that a class of tensors has as __dlpack_c_exchange_api__. Names are
// DLPack's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dualgemm::torch_ops {

constexpr char kDLPackExchangeApi[] = "dlpack_exchange_api";  // name of the capsule
constexpr uint32_t kDLPackMajor = 1;                          // other versions have other layouts

enum : int32_t { kDLCPU = 1, kDLCUDA = 2 };
enum : uint8_t {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLBfloat = 4,
  kDLFloat8_e4m3fn = 10,
  kDLFloat8_e8m0fnu = 14,
  kDLFloat4_e2m1fn = 17
};

struct DLDevice {
  int32_t device_type, device_id;
};

struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape, *strides;  // the tensor's own, in elements
  uint64_t byte_offset;
};

struct DLPackVersion {
  uint32_t major, minor;
};

struct DLPackExchangeAPI {
  DLPackVersion version;
  const DLPackExchangeAPI* prev_api;  // of an older version, or null
  void* managed_tensor_allocator;
  void* managed_tensor_from_py_object_no_sync;
  void* managed_tensor_to_py_object_no_sync;
  // Describes a tensor for as long as the caller holds the object. Returns 0, or -1 with an exception of
  // Python. The pointer may be null.
  int (*dltensor_from_py_object_no_sync)(void* object, DLTensor* out);
  void* current_work_stream;
};
static_assert(sizeof(DLTensor) == 48 && offsetof(DLTensor, shape) == 24);
static_assert(offsetof(DLPackExchangeAPI, dltensor_from_py_object_no_sync) == 40);

}  // namespace dualgemm::torch_ops
