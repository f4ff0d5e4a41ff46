// global.cuh -- wide accesses to global memory that do not allocate in L1, and atomics (PTX ISA 9.0).
#pragma once

#include "ptx/common.cuh"

namespace dualgemm::ptx {

// st.global.L1::no_allocate.v8.b32 [address], {values[0], ..., values[7]};      9.7.9.11
// Writes one full 32-byte sector per lane; `address` is a multiple of 32.
DUALGEMM_DEVICE void st_global_v8_b32(void* address, const uint32_t* values) {
  asm volatile("st.global.L1::no_allocate.v8.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};" ::"l"(
                   __cvta_generic_to_global(address)),
               "r"(values[0]), "r"(values[1]), "r"(values[2]), "r"(values[3]), "r"(values[4]), "r"(values[5]),
               "r"(values[6]), "r"(values[7])
               : "memory");
}

// st.global.L1::no_allocate.v4.b32 [address], {values[0], ..., values[3]};      9.7.9.11
// Writes half a sector per lane; `address` is a multiple of 16.
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

// ld.global.L1::no_allocate.v4.b32 {values[0], ..., values[3]}, [address];      9.7.9.8
// `address` is a multiple of 16. Other threads may have written the memory before, so it is never read
// through the incoherent path.
DUALGEMM_DEVICE void ld_global_v4_b32(uint32_t (&values)[4], const void* address) {
  asm volatile("ld.global.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(values[0]), "=r"(values[1]), "=r"(values[2]), "=r"(values[3])
               : "l"(__cvta_generic_to_global(address))
               : "memory");
}

// @predicate ld.acquire.gpu.global.u32 value, [address];      9.7.9.8
// What happened before the releases whose result the load reads comes before what this thread does next. If
// `predicate` is false, nothing is read, and the value is 0. A predicate takes the place of a branch, after
// which ptxas would not know that the warp is converged.
DUALGEMM_DEVICE uint32_t ld_acquire_gpu_global_u32_if(const void* address, bool predicate) {
  uint32_t value;
  asm volatile(
      "{\n\t"
      ".reg .pred here;\n\t"
      "setp.ne.u32 here, %2, 0;\n\t"
      "mov.u32 %0, 0;\n\t"
      "@here ld.acquire.gpu.global.u32 %0, [%1];\n\t"
      "}"
      : "=&r"(value)
      : "l"(__cvta_generic_to_global(address)), "r"(static_cast<uint32_t>(predicate))
      : "memory");
  return value;
}

// @predicate atom.acq_rel.gpu.global.add.u32 old, [address], value;      9.7.13.5
// What this thread did before the atomic, and what threads did that it has met at a barrier, comes before
// what follows a later atomic or acquiring load of the same address. If `predicate` is false, nothing is
// added, and `old` is 0.
DUALGEMM_DEVICE uint32_t atom_acq_rel_gpu_global_add_u32_if(void* address, uint32_t value, bool predicate) {
  uint32_t old;
  asm volatile(
      "{\n\t"
      ".reg .pred here;\n\t"
      "setp.ne.u32 here, %3, 0;\n\t"
      "mov.u32 %0, 0;\n\t"
      "@here atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;\n\t"
      "}"
      : "=&r"(old)
      : "l"(__cvta_generic_to_global(address)), "r"(value), "r"(static_cast<uint32_t>(predicate))
      : "memory");
  return old;
}

// red.relaxed.gpu.global.max.s32 [address], value;      9.7.13.6
DUALGEMM_DEVICE void red_global_max_s32(void* address, int32_t value) {
  asm volatile("red.relaxed.gpu.global.max.s32 [%0], %1;" ::"l"(__cvta_generic_to_global(address)), "r"(value)
               : "memory");
}

}  // namespace dualgemm::ptx
