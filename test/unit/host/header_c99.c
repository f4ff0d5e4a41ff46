/* The public header seen by a C99 compiler that is told to be pedantic: it must compile, and what it says
 * about sizes and defaults must be what the C++ side says. abi_test.cpp, structure_test.cpp,
 * conversion_test.cpp and moe_rules_test.cpp call this. */
#pragma GCC diagnostic error "-Wpedantic"

#include "host/include/dualgemm.h"

#if !defined(__STDC_VERSION__) || __STDC_VERSION__ != 199901L
#error "this file is here to be compiled as C99"
#endif

size_t c99_args_size(void);
size_t c99_device_size(void);
size_t c99_instance_info_size(void);
size_t c99_sf_args_size(void);
size_t c99_quantize_args_size(void);
size_t c99_moe_permute_args_size(void);
size_t c99_moe_gather_args_size(void);
size_t c99_moe_combine_args_size(void);
void c99_args_init(dualgemm_args_t* args);
void c99_device_init(dualgemm_device_t* device);
void c99_instance_info_init(dualgemm_instance_info_t* info);

size_t c99_args_size(void) { return sizeof(dualgemm_args_t); }
size_t c99_device_size(void) { return sizeof(dualgemm_device_t); }
size_t c99_instance_info_size(void) { return sizeof(dualgemm_instance_info_t); }
size_t c99_sf_args_size(void) { return sizeof(dualgemm_sf_args_t); }
size_t c99_quantize_args_size(void) { return sizeof(dualgemm_quantize_args_t); }
size_t c99_moe_permute_args_size(void) { return sizeof(dualgemm_moe_permute_args_t); }
size_t c99_moe_gather_args_size(void) { return sizeof(dualgemm_moe_gather_args_t); }
size_t c99_moe_combine_args_size(void) { return sizeof(dualgemm_moe_combine_args_t); }
void c99_args_init(dualgemm_args_t* args) { dualgemm_args_init(args); }
void c99_device_init(dualgemm_device_t* device) { dualgemm_device_init(device); }
void c99_instance_info_init(dualgemm_instance_info_t* info) { dualgemm_instance_info_init(info); }
