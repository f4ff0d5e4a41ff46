// matrix.cuh -- stores of 8x8 matrices of 16-bit elements from the registers of a warp to shared memory (PTX
// ISA 9.0, 9.7.14.5.16). All 32 lanes execute them together. Lane l holds the elements 2 (l % 4) and 2 (l %
// 4) + 1 of row l / 4 of each matrix. With .trans this row becomes column l / 4: for matrix i, lane 8 i + j
// names the 16 bytes to which element j of every row goes.
#pragma once

#include "ptx/common.cuh"

namespace dualgemm::ptx {

// stmatrix.sync.aligned.m8n8.x1.trans.shared::cta.b16 [address], {matrices[0]};      9.7.14.5.16
// Lanes 0-7 name addresses; the addresses of the other lanes are not used.
DUALGEMM_DEVICE void stmatrix_m8n8_trans(uint32_t address, const uint32_t (&matrices)[1]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared::cta.b16 [%0], {%1};" ::"r"(address),
               "r"(matrices[0])
               : "memory");
}

// stmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 [address], {matrices[0], matrices[1]};      9.7.14.5.16
// Lanes 0-15 name addresses.
DUALGEMM_DEVICE void stmatrix_m8n8_trans(uint32_t address, const uint32_t (&matrices)[2]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 [%0], {%1, %2};" ::"r"(address),
               "r"(matrices[0]), "r"(matrices[1])
               : "memory");
}

// stmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16 [address], {matrices[0], ..., matrices[3]};
// 9.7.14.5.16
DUALGEMM_DEVICE void stmatrix_m8n8_trans(uint32_t address, const uint32_t (&matrices)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
               "r"(matrices[0]), "r"(matrices[1]), "r"(matrices[2]), "r"(matrices[3])
               : "memory");
}

}  // namespace dualgemm::ptx
