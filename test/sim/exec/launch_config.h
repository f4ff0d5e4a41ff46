// launch_config.h -- the shape of a launch, and what is counted while it runs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sim {

constexpr uint32_t kMaxThreads = 1024;  // in a block
// A grid is given up after so many warp instructions that changed nothing another thread could see.
constexpr uint64_t kDefaultPatience = uint64_t{1} << 30;

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
};

struct LaunchConfig {
  Dim3 grid, block, cluster;
  size_t dynamic_smem = 0;
};

struct LaunchStats {
  uint64_t warp_instructions = 0, async_operations = 0;
};

}  // namespace sim
