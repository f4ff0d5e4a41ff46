// clock.cuh -- the two clocks of a GPU.
#pragma once

#include <cstdint>

#include "ptx/host_device.h"

namespace bench {

// %globaltimer: nanoseconds, in steps of the device's own.
DUALGEMM_DEVICE uint64_t global_timer() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}

// clock64, which the compiler moves past no other statement of these programs.
DUALGEMM_DEVICE int64_t cycles_now() {
  int64_t now;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(now)::"memory");
  return now;
}

}  // namespace bench
