// global.cuh -- wide stores to global memory that leave L1 alone, and a reduction (PTX ISA 9.0).
#pragma once

#include "ptx/common.cuh"

namespace dualgemm::ptx {

// st.global.L1::no_allocate.v8.b32 [address], {values[0], ..., values[7]};      9.7.9.11
// One full 32-byte sector per lane; `address` is a multiple of 32.
DUALGEMM_DEVICE void st_global_v8_b32(void* address, const uint32_t* values) {
  asm volatile("st.global.L1::no_allocate.v8.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};" ::"l"(
                   __cvta_generic_to_global(address)),
               "r"(values[0]), "r"(values[1]), "r"(values[2]), "r"(values[3]), "r"(values[4]), "r"(values[5]),
               "r"(values[6]), "r"(values[7])
               : "memory");
}

// st.global.L1::no_allocate.v4.b32 [address], {values[0], ..., values[3]};      9.7.9.11
// Half a sector per lane; `address` is a multiple of 16.
DUALGEMM_DEVICE void st_global_v4_b32(void* address, const uint32_t* values) {
  asm volatile(
      "st.global.L1::no_allocate.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(address)),
      "r"(values[0]), "r"(values[1]), "r"(values[2]), "r"(values[3])
      : "memory");
}

// st.global.L1::no_allocate.v2.b32 [address], {values[0], values[1]};      9.7.9.11
// `address` is a multiple of 8.
DUALGEMM_DEVICE void st_global_v2_b32(void* address, const uint32_t* values) {
  asm volatile("st.global.L1::no_allocate.v2.b32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(address)),
               "r"(values[0]), "r"(values[1])
               : "memory");
}

// red.relaxed.gpu.global.max.s32 [address], value;      9.7.13.6
DUALGEMM_DEVICE void red_global_max_s32(void* address, int32_t value) {
  asm volatile("red.relaxed.gpu.global.max.s32 [%0], %1;" ::"l"(__cvta_generic_to_global(address)), "r"(value)
               : "memory");
}

}  // namespace dualgemm::ptx
