// problems.h -- launches that the rules may well let through, before something in them is changed.
#pragma once

#include "fuzz/bytes.h"
#include "host/include/dualgemm.h"

namespace dualgemm_fuzz {

dualgemm_args_t some_launch(Bytes& bytes);
dualgemm_sf_args_t some_factors(Bytes& bytes);
dualgemm_quantize_args_t some_quantization(Bytes& bytes);
dualgemm_moe_permute_args_t some_permutation(Bytes& bytes);
dualgemm_moe_gather_args_t some_gathering(Bytes& bytes);
dualgemm_moe_combine_args_t some_combination(Bytes& bytes);

// What functions of the library fill in.
inline dualgemm_device_t blank_device() {
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  return device;
}
inline dualgemm_instance_info_t blank_info() {
  dualgemm_instance_info_t info;
  dualgemm_instance_info_init(&info);
  return info;
}

// The device that is current on the stub, and one that may be anything.
dualgemm_device_t current_device();
dualgemm_device_t some_device(Bytes& bytes);

// The parts of the above that say how much there is, but for addresses: from few rows and columns.
void choose_rows(Bytes& bytes, int32_t* batch, int32_t* group_mode, int32_t* groups);
void choose_mxfp4(Bytes& bytes, dualgemm_args_t* args);
void choose_epilogue(Bytes& bytes, dualgemm_args_t* args);

// An address that is far from those with other numbers. Nobody looks there.
void* far_address(uint64_t number);

}  // namespace dualgemm_fuzz
