// nvml.h -- what NVIDIA's management library says of the GPU beside the times of a report. It is loaded at
// run time, so that neither a build nor a run needs it.
#pragma once

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

}  // namespace bench
