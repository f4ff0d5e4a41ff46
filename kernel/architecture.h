// architecture.h -- the GPU architectures that instances are compiled for: the limits that a kernel has to
// keep on each, and all other differences between architectures that shared code depends on. Shared code
// reads them here and names no architecture (test/tree/architectures.py). This is plain C++: kernels, host/
// and tests read it.
#pragma once

#include <cstdint>

#include "ptx/host_device.h"

namespace dualgemm {

enum class Arch : int32_t { kSm90, kSm100 };

struct Architecture {
  Arch arch;
  const char* target;      // nvcc's name of the machine code
  const char* capability;  // of the devices that run it, as it stands in messages
  int32_t cc_major, cc_minor_first, cc_minor_last;
  int32_t max_smem_bytes;  // shared memory that a CTA can opt in to
  int32_t tmem_columns;    // tensor memory of an SM: 128 lanes x this many columns x 32 bits
  int32_t store_bytes;     // that one lane can store at once
  // These are the SMs of the largest chip, and the SMs of each part of that chip. A cluster of more than two
  // CTAs stays within one part.
  int32_t sms;
  int32_t parts[8];
  // How kernels for this architecture work.
  const char* name_prefix;   // of the names of its instances
  bool multiplies_16_bits;   // so that A may be bf16 or fp16; else NVFP4 is multiplied with nothing else
  bool warps_read_operands;  // from shared memory, through the generic proxy; else only mma read them
  bool split_k_in_waves;     // clusters that share a tile may wait for others to end
  bool tiles_agree;   // whatever the tile, a sum over K that is split alike has the same bits, on real GPUs
  int32_t band_rows;  // rows of A, as they are multiplied, that L2 is meant to keep (common/scheduler.cuh)
};

// The entries are in the order of Arch. The limits are from the CUDA C++ Programming Guide, "Technical
// Specifications per Compute Capability". By the nvcc manual, "GPU Feature List", sm_90a runs only on 9.0,
// and the family target sm_100f on every 10.x. The widths of stores are from PTX ISA 9.0, 9.7.9.11 (st). The
// parts of an H200 are its GPCs, one of which gives half of its SMs to clusters of more than two CTAs. As
// measured, 30 clusters of four and 15 of eight run at once with one CTA to an SM, and 62 and 30 with two.
// The GPC sizes that are published for a B200 have room for 34 clusters of four. The parts here have room for
// 32, to be safe. A band of 1024 rows of 16 bits with K = 7168 takes 14 MiB of the 50 MB of L2 of an H100; a
// band of 4096 rows in NVFP4 with K = 16384 takes 36 MiB of the 126 MB of a B200, factors included. A test
// shows that tiles agree (dual_gemm_test.cpp), but no document says so for any tensor core, and no B200 has
// run that test.
inline constexpr Architecture kArchitectures[] = {
    {.arch = Arch::kSm90,
     .target = "sm_90a",
     .capability = "9.0",
     .cc_major = 9,
     .cc_minor_first = 0,
     .cc_minor_last = 0,
     .max_smem_bytes = 232448,
     .tmem_columns = 0,
     .store_bytes = 16,
     .sms = 132,
     .parts = {18, 18, 16, 16, 16, 16, 16, 8},
     .name_prefix = "sm90",
     .multiplies_16_bits = true,
     .warps_read_operands = true,
     .split_k_in_waves = true,
     .tiles_agree = true,
     .band_rows = 1024},
    {.arch = Arch::kSm100,
     .target = "sm_100f",
     .capability = "10.x",
     .cc_major = 10,
     .cc_minor_first = 0,
     .cc_minor_last = 9,
     .max_smem_bytes = 232448,
     .tmem_columns = 512,
     .store_bytes = 32,
     .sms = 148,
     .parts = {16, 16, 16, 16, 16, 16, 16, 16},
     .name_prefix = "",
     .multiplies_16_bits = false,
     .warps_read_operands = false,
     .split_k_in_waves = false,
     .tiles_agree = false,
     .band_rows = 4096},
};
static_assert(kArchitectures[static_cast<int32_t>(Arch::kSm90)].arch == Arch::kSm90 &&
              kArchitectures[static_cast<int32_t>(Arch::kSm100)].arch == Arch::kSm100);

DUALGEMM_HOST_DEVICE constexpr const Architecture& limits_of(Arch arch) {
  return kArchitectures[static_cast<int32_t>(arch)];
}

}  // namespace dualgemm
