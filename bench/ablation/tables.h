// tables.h -- the ideas of ideas.h on the problems of the benchmark: verified and timed on a GPU,
// predicted by the cost model where there is none.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/shapes.h"
#include "dualgemm.h"

namespace bench {

// Returns the values of --ablation: the ideas, and "all".
std::vector<std::string> idea_names();

struct AblationRun {
  std::string idea;
  int repeats, input_sets, samples;
  bool verify_only;
};

// Prints one table for each problem and idea. `wrong` counts what did not verify; that is not timed.
nlohmann::json print_ablations(const std::vector<Shape>& shapes, const AblationRun& run,
                               const dualgemm_device_t& device, int& wrong);

// Prints the same tables without a GPU: what the cost model expects on `device`.
nlohmann::json print_modelled_ablations(const std::vector<Shape>& shapes, const std::string& idea,
                                        const dualgemm_device_t& device);

}  // namespace bench
