// nvml.h -- what NVIDIA's management library says of the GPU beside the times of a report. It is loaded at
// run time, so that neither a build nor a run needs it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace bench {

// What the library does not say, or all where there is none, is left out.
struct GpuState {
  std::optional<std::string> driver;                     // the version of its package: "580.159.04"
  std::optional<unsigned> sm_mhz, memory_mhz;            // now
  std::optional<unsigned> sm_most_mhz, memory_most_mhz;  // allowed
  std::optional<double> power_limit_w;
};

// `ordinal` is that of the CUDA runtime.
GpuState gpu_state(int ordinal);

// What share of the time from one reading to a later one the power limit held the clocks down; nothing where
// either is not known.
struct PowerReading {
  uint64_t at_us, limited_ns;  // limited_ns: since the driver was loaded
};
std::optional<PowerReading> power_reading(int ordinal);
std::optional<double> power_limited_share(const std::optional<PowerReading>& before,
                                          const std::optional<PowerReading>& after);

}  // namespace bench
