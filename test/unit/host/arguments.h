// arguments.h -- what the tests of this folder start from: arguments that break no rule, and a device that is
// not there. The pointers are made up; nothing here may follow one.
#pragma once

#include <cstdint>

#include "host/include/dualgemm.h"
#include "kernel/instance.h"

namespace dualgemm_test {

// Statuses that tables of rules name.
inline constexpr auto kGood = DUALGEMM_STATUS_SUCCESS, kVersion = DUALGEMM_STATUS_VERSION_MISMATCH,
                      kValue = DUALGEMM_STATUS_INVALID_VALUE, kShape = DUALGEMM_STATUS_INVALID_SHAPE,
                      kNull = DUALGEMM_STATUS_NULL_POINTER, kStride = DUALGEMM_STATUS_INVALID_STRIDE,
                      kMisaligned = DUALGEMM_STATUS_MISALIGNED, kAliasing = DUALGEMM_STATUS_ALIASING,
                      kUnsupported = DUALGEMM_STATUS_NOT_SUPPORTED;

template <typename T = void>
T* address(uintptr_t value) {
  return reinterpret_cast<T*>(value);
}

inline dualgemm_device_t b200() {
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  device.cc_major = 10;
  device.sm_count = 148;
  device.driver_version = 13000;
  return device;
}

inline dualgemm_device_t h100() {
  dualgemm_device_t device = b200();
  device.cc_major = 9;
  device.sm_count = 132;
  return device;
}

// Returns a device that runs what is compiled for this architecture.
inline dualgemm_device_t device_for(dualgemm::Arch arch) {
  return arch == dualgemm::Arch::kSm90 ? h100() : b200();
}
inline dualgemm_device_t device_for(const dualgemm::Instance& instance) {
  return device_for(instance.plan.arch);
}

// Returns a problem of 256 x 128 outputs, K = 512; every tensor has a gigabyte of its own.
inline dualgemm_args_t valid_args() {
  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.m = 256;
  args.n = 128;
  args.k = 512;
  args.a = address(0x1'0000'0000);
  args.b1 = address(0x1'4000'0000);
  args.b2 = address(0x1'8000'0000);
  args.sfa = address(0x1'c000'0000);
  args.sfb1 = address(0x2'0000'0000);
  args.sfb2 = address(0x2'4000'0000);
  args.c = address(0x2'8000'0000);
  return args;
}

// Returns three such problems.
inline dualgemm_args_t batch_args() {
  dualgemm_args_t args = valid_args();
  args.batch = 3;
  return args;
}

// Returns three groups with weights of their own: in 256 rows together, or in 256 rows each.
inline dualgemm_args_t grouped_args(dualgemm_group_mode_t mode) {
  dualgemm_args_t args = valid_args();
  args.group_mode = mode;
  args.groups = 3;
  args.group_rows = address<const int32_t>(0x2'c000'0000);
  return args;
}
inline dualgemm_args_t offsets_args() { return grouped_args(DUALGEMM_GROUP_OFFSETS); }
inline dualgemm_args_t masked_args() { return grouped_args(DUALGEMM_GROUP_MASKED); }

// Returns these arguments with another output, and the scale factors that it may need. N becomes the next
// multiple of 32, which every output can have compact, for those that cannot have each multiple of 8.
inline dualgemm_args_t with_output(int32_t c_dtype, dualgemm_args_t args) {
  args.c_dtype = c_dtype;
  args.sfc = c_dtype == DUALGEMM_DTYPE_NVFP4 ? address(0x3'8000'0000) : nullptr;
  if (c_dtype == DUALGEMM_DTYPE_NVFP4 || c_dtype == DUALGEMM_DTYPE_FP8_E4M3) args.n = (args.n + 31) / 32 * 32;
  return args;
}

// Returns these arguments with an A of this type, and the scale factors that it may need.
inline dualgemm_args_t with_a(int32_t a_dtype, dualgemm_args_t args) {
  args.a_dtype = a_dtype;
  args.sfa = a_dtype == DUALGEMM_DTYPE_NVFP4 ? valid_args().sfa : nullptr;
  if (!args.sfa) args.batch_stride_sfa = 0;
  return args;
}

// Returns these arguments with weights in MXFP4, exponents of their rows, and the A that goes with them.
inline dualgemm_args_t with_mxfp4(dualgemm_args_t args) {
  args = with_a(DUALGEMM_DTYPE_FP8_E4M3, args);
  args.b_dtype = DUALGEMM_DTYPE_MXFP4;
  args.b1_row_exponent = address<const int16_t>(0x5'a000'0000);
  args.b2_row_exponent = address<const int16_t>(0x5'b000'0000);
  return args;
}

// Returns these arguments, with the types of A and B of an instance.
inline dualgemm_args_t with_types_of(const dualgemm::Instance& instance, const dualgemm_args_t& args) {
  dualgemm_args_t out = with_a(static_cast<int32_t>(instance.plan.a_type), args);
  out.b_dtype = out.a_dtype == DUALGEMM_DTYPE_FP8_E4M3 ? DUALGEMM_DTYPE_MXFP4 : DUALGEMM_DTYPE_NVFP4;
  return out;
}

// Returns the ids of the instances that launches of two products take.
inline std::vector<int32_t> launched_ids() {
  std::vector<int32_t> out;
  for (int32_t id = 1; id <= dualgemm_instance_count(); ++id)
    if (dualgemm::instance(id - 1).plan.mma.products == 2) out.push_back(id);
  return out;
}

// Returns these arguments, for the instance `id` and what it computes, with the room that it may need. Of the
// types of C that general instances write, each has one, in turn.
inline dualgemm_args_t forced(int32_t id, const dualgemm_args_t& args) {
  const dualgemm::Instance& instance = dualgemm::instance(id - 1);
  const dualgemm::EpilogueKind& epilogue = instance.epilogue;
  const dualgemm::OutputKind& output = epilogue.outputs[id % epilogue.output_count];
  dualgemm_args_t out = with_types_of(instance, with_output(static_cast<int32_t>(output.type), args));
  out.instance_id = id;
  if (instance.plan.prepared_a()) {
    out.workspace = args.workspace ? args.workspace : address(uintptr_t{1} << 58);
    out.workspace_size = args.workspace ? args.workspace_size : (size_t{1} << 47);
  }
  return out;
}

}  // namespace dualgemm_test
