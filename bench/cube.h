// cube.h -- every combination of what a launch may ask for, of two products and of one: the output, the
// activation, biases, factors of rows, an addend, the kind of launch, and the flags that change how it runs.
#pragma once

#include <string>
#include <vector>

#include "host/include/dualgemm.h"

namespace bench {

struct Combination {
  int32_t products;
  dualgemm_dtype_t c_dtype;
  dualgemm_activation_t activation = DUALGEMM_ACTIVATION_SWIGLU;                     // of two products
  dualgemm_linear_activation_t linear_activation = DUALGEMM_LINEAR_ACTIVATION_NONE;  // of one
  bool c_add = false;                                                                // of one
  bool biases = false, row_scale = false;
  dualgemm_group_mode_t group_mode = DUALGEMM_GROUP_NONE;
  int32_t batch = 1;   // 1 with groups
  uint32_t flags = 0;  // of PDL and BATCH_INVARIANT
  int32_t max_sms = 0;
};
std::vector<Combination> every_combination();

// Nothing is added to a C that is scaled before its conversion.
bool takes_addend(dualgemm_dtype_t c_dtype);

// Returns a table in Markdown: of the combinations of a number of products and an output with a kind of
// launch, how many the library accepts on this device, and the first refusal. No kernel runs.
std::string cube_markdown(const dualgemm_device_t& device);

}  // namespace bench
