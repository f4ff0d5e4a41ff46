// instances.h -- every instance of the library with its whole plan, for people and for tools that look at the
// machine code (instances.py, test/sass): what is known of a kernel when it is compiled, and the name of its
// entry in there.
#pragma once

#include <nlohmann/json.hpp>

namespace bench {

// Returns an array in the order of the ids. The objects have the shape of struct Instance; this needs the
// CUDA runtime, no GPU.
nlohmann::json instances_json();

}  // namespace bench
