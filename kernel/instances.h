// instances.h -- the table of kernel instances that exist in the library: what host/ may choose from and
// launch.
#pragma once

#include <cstdint>

#include "kernel/config.h"

namespace dualgemm {

struct Instance {
  const char* name;    // "m128n64k256_fp16"
  const void* kernel;  // the __global__ function, for cudaLaunchKernelExC and cudaFuncSetAttribute
  CType c_type;
  int32_t cta_group, tile_m, tile_n, tile_k;
  int32_t split_k;                              // parts of K, one per CTA or pair of a cluster
  int32_t a_box_rows, b_box_rows, sfb_blocks;   // of one copy: params.h
  int32_t stages, scale_stages, scale_k_tiles;  // depths of the rings; k-tiles in a slot of scale factors
  int32_t acc_stages, overlapped;               // accumulator pairs; 1 where they share columns
  int32_t grouped;                              // 1: for groups only
  int32_t mma_n, mmas_per_step;                 // mmas_per_step: tcgen05.mma per 64 elements of K
  int32_t keeps_a;                              // 1: the second of them finds A in the tensor core
  int32_t threads;
  int32_t smem_bytes;    // dynamic shared memory of a launch
  int32_t tmem_columns;  // tensor memory allocated per CTA
};

inline constexpr int kInstanceCount = 28;
extern const Instance kInstances[kInstanceCount];

}  // namespace dualgemm
