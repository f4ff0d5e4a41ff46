// cube.h -- every combination of what a launch may ask for: the output, the activation, biases, factors of
// rows, the kind of launch, and the flags that change how it runs.
#pragma once

#include <string>
#include <vector>

#include "host/include/dualgemm.h"

namespace bench {

struct Combination {
  dualgemm_dtype_t c_dtype;
  dualgemm_activation_t activation;
  bool biases, row_scale;
  dualgemm_group_mode_t group_mode;
  int32_t batch;   // 1 with groups
  uint32_t flags;  // of PDL and BATCH_INVARIANT
  int32_t max_sms;
};
std::vector<Combination> every_combination();

// Returns a table in Markdown: of the combinations of an output with a kind of launch, how many the library
// accepts on this device, and the first refusal. No kernel runs.
std::string cube_markdown(const dualgemm_device_t& device);

}  // namespace bench
