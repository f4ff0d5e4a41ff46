// configurations.h -- linear layers of published models, whole and divided among GPUs, each with some number
// of rows: what the suites "models-gate-up" and "models-linear" have.
#pragma once

#include <cstdint>
#include <vector>

#include "shapes.h"

namespace bench {

// Returns those of gate and up, which have two products, or all others, which have one. Both together are 400
// problems, and none is there twice.
std::vector<Shape> layers_of_models(int32_t products);

}  // namespace bench
