// budget.h -- what a launch costs before anything runs: bytes and operations that follow from the shape, from
// the rows that groups really have, and from the chosen instance. It is arithmetic, not time, and needs no
// GPU.
#pragma once

#include <cstdint>

#include "arguments.h"
#include "dualgemm.h"
#include "kernel/instance.h"
#include "shapes.h"

namespace bench {

struct Budget {
  const dualgemm::Instance* instance;
  int64_t tiles;          // of C
  int64_t cluster;        // CTAs that share a tile: those of a pair, times the parts of K
  int64_t ctas;           // at work at the same time, one per SM
  int64_t tiles_per_sm;   // that the busiest SM has a part in
  int64_t dram_bytes;     // every input once, C and its factors once; of groups those that have rows
  int64_t fill_bytes;     // into the shared memory of the busiest SM
  int64_t tensor_clocks;  // of the busiest SM, were its tensor core never idle
  double flops;           // of the shape
};

// One SM's tensor cores do this many operations per clock, with the operands that the kernel gives them:
// NVFP4 on 10.x, where one 128 x 256 x 64 multiply-add takes 128 clocks, and on 9.0 fp16, or bf16 if A is,
// where one of 64 x 256 x 16 takes as many, or FP8 if A is, where one of 64 x 256 x 32 does.
struct TensorRate {
  const char* operands;
  int64_t flops_per_clock;
};
constexpr TensorRate tensor_rate(const dualgemm_device_t& device,
                                 dualgemm_dtype_t a_dtype = DUALGEMM_DTYPE_NVFP4) {
  if (device.cc_major == 9 && a_dtype == DUALGEMM_DTYPE_FP8_E4M3) return {"FP8", 2ll * 64 * 256 * 32 / 128};
  if (device.cc_major == 9)
    return {a_dtype == DUALGEMM_DTYPE_BF16 ? "bf16" : "fp16", 2ll * 64 * 256 * 16 / 128};
  return {"NVFP4", 2ll * 128 * 256 * 64 / 128};
}

Budget budget_of(const Shape& shape, const Epilogue& epilogue, const dualgemm_device_t& device);

// Returns a B200, to ask about when there is none.
dualgemm_device_t described_b200();

}  // namespace bench
