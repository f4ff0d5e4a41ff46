// tcgen05_mem.cuh -- tensor memory: allocation, copies into it from shared memory and loads out of it to
// registers (PTX ISA 9.0, 9.7.16.7 to 9.7.16.9). A tensor-memory address is 32 bits: lane in bits 16-31,
// column in bits 0-15. Instructions marked "warp" are .sync.aligned: all 32 lanes execute them together. The
// others belong to one thread.
#pragma once

#include "ptx/common.cuh"

namespace dualgemm::ptx {

// tcgen05.alloc.cta_group::G.sync.aligned.shared::cta.b32 [result], columns;      9.7.16.7.1, warp
// Writes the address of the first column to `result`. Blocks while the SM has too few free columns.
template <int kCtaGroup>
DUALGEMM_DEVICE void tcgen05_alloc(uint32_t* result, uint32_t columns) {
  asm volatile("tcgen05.alloc.cta_group::%2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(smem_u32(result)),
               "r"(columns), "n"(kCtaGroup)
               : "memory");
}

// tcgen05.relinquish_alloc_permit.cta_group::G.sync.aligned;      9.7.16.7.1, warp
// After this the CTA allocates no more.
template <int kCtaGroup>
DUALGEMM_DEVICE void tcgen05_relinquish_alloc_permit() {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::%0.sync.aligned;" ::"n"(kCtaGroup) : "memory");
}

// tcgen05.dealloc.cta_group::G.sync.aligned.b32 tmem, columns;      9.7.16.7.1, warp
template <int kCtaGroup>
DUALGEMM_DEVICE void tcgen05_dealloc(uint32_t tmem, uint32_t columns) {
  asm volatile("tcgen05.dealloc.cta_group::%2.sync.aligned.b32 %0, %1;" ::"r"(tmem), "r"(columns),
               "n"(kCtaGroup)
               : "memory");
}

// tcgen05.cp.cta_group::G.32x128b.warpx4 [tmem], smem_descriptor;      9.7.16.9.2
// Copies 32 rows of 16 bytes to four columns; row i goes to lanes i, i + 32, i + 64 and i + 96. It is
// asynchronous, but comes before mma that the same thread issues later.
template <int kCtaGroup>
DUALGEMM_DEVICE void tcgen05_cp_32x128b_warpx4(uint32_t tmem, uint64_t smem_descriptor) {
  asm volatile("tcgen05.cp.cta_group::%2.32x128b.warpx4 [%0], %1;" ::"r"(tmem), "l"(smem_descriptor),
               "n"(kCtaGroup)
               : "memory");
}

// tcgen05.ld.sync.aligned.32x32b.x32.b32 {values[0], ..., values[31]}, [tmem];      9.7.16.8.3, warp
// Lane l of the warp receives columns 0-31 of tensor-memory lane l of its quarter. The registers are defined
// only after tcgen05.wait::ld.
DUALGEMM_DEVICE void tcgen05_ld_32x32b(uint32_t (&values)[32], uint32_t tmem) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x32.b32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];"
      : "=r"(values[0]), "=r"(values[1]), "=r"(values[2]), "=r"(values[3]), "=r"(values[4]), "=r"(values[5]),
        "=r"(values[6]), "=r"(values[7]), "=r"(values[8]), "=r"(values[9]), "=r"(values[10]),
        "=r"(values[11]), "=r"(values[12]), "=r"(values[13]), "=r"(values[14]), "=r"(values[15]),
        "=r"(values[16]), "=r"(values[17]), "=r"(values[18]), "=r"(values[19]), "=r"(values[20]),
        "=r"(values[21]), "=r"(values[22]), "=r"(values[23]), "=r"(values[24]), "=r"(values[25]),
        "=r"(values[26]), "=r"(values[27]), "=r"(values[28]), "=r"(values[29]), "=r"(values[30]),
        "=r"(values[31])
      : "r"(tmem)
      : "memory");
}

// tcgen05.ld.sync.aligned.32x32b.x16.b32 {values[0], ..., values[15]}, [tmem];      9.7.16.8.3, warp
DUALGEMM_DEVICE void tcgen05_ld_32x32b(uint32_t (&values)[16], uint32_t tmem) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x16.b32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, [%16];"
      : "=r"(values[0]), "=r"(values[1]), "=r"(values[2]), "=r"(values[3]), "=r"(values[4]), "=r"(values[5]),
        "=r"(values[6]), "=r"(values[7]), "=r"(values[8]), "=r"(values[9]), "=r"(values[10]),
        "=r"(values[11]), "=r"(values[12]), "=r"(values[13]), "=r"(values[14]), "=r"(values[15])
      : "r"(tmem)
      : "memory");
}

// tcgen05.ld.sync.aligned.32x32b.x8.b32 {values[0], ..., values[7]}, [tmem];      9.7.16.8.3, warp
DUALGEMM_DEVICE void tcgen05_ld_32x32b(uint32_t (&values)[8], uint32_t tmem) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
               : "=r"(values[0]), "=r"(values[1]), "=r"(values[2]), "=r"(values[3]), "=r"(values[4]),
                 "=r"(values[5]), "=r"(values[6]), "=r"(values[7])
               : "r"(tmem)
               : "memory");
}

// tcgen05.wait::ld.sync.aligned;      9.7.16.8.5, warp
// Returns when every earlier tcgen05.ld of this thread has written its registers.
DUALGEMM_DEVICE void tcgen05_wait_ld() { asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }

}  // namespace dualgemm::ptx
