// architecture.h -- the GPU architectures that instances are compiled for, and the limits that a kernel has
// to keep on each. Plain C++: kernels, host/ and tests read it.
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
};

// In the order of Arch. CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; nvcc
// manual, "GPU Feature List": sm_90a runs on 9.0 alone, the family target sm_100f on every 10.x.
inline constexpr Architecture kArchitectures[] = {
    {Arch::kSm90, "sm_90a", "9.0", 9, 0, 0, 232448, 0},
    {Arch::kSm100, "sm_100f", "10.x", 10, 0, 9, 232448, 512},
};

DUALGEMM_HOST_DEVICE constexpr const Architecture& limits_of(Arch arch) {
  return kArchitectures[static_cast<int32_t>(arch)];
}

}  // namespace dualgemm
