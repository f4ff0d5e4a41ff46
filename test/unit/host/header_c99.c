/* The public header seen by a C99 compiler that is told to be pedantic: it must compile, and what it says
 * about sizes and defaults must be what the C++ side says. abi_test.cpp and structure_test.cpp call this. */
#pragma GCC diagnostic error "-Wpedantic"

#include "host/include/dualgemm.h"

#if !defined(__STDC_VERSION__) || __STDC_VERSION__ != 199901L
#error "this file is here to be compiled as C99"
#endif

void c99_args_init(dualgemm_args_t* args);
void c99_device_init(dualgemm_device_t* device);
void c99_instance_info_init(dualgemm_instance_info_t* info);

/* The sizes are those that C++ sees, or an array would have a negative one. */
#define STRUCT(type, size) typedef char type##_is_as_recorded[sizeof(type) == (size) ? 1 : -1];
#include "test/support/interface.def"

void c99_args_init(dualgemm_args_t* args) { dualgemm_args_init(args); }
void c99_device_init(dualgemm_device_t* device) { dualgemm_device_init(device); }
void c99_instance_info_init(dualgemm_instance_info_t* info) { dualgemm_instance_info_init(info); }
