// model_config.h -- from a model's config.json, as checkpoints have it, to the sizes of its linear layers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/shapes.h"

namespace bench {

// Returns the launches of a model's layers on one of `gpus` GPUs for each of these numbers of tokens: qkv, o,
// gate and up, down; of experts all of a layer in one launch, as many rows as tokens choose, spread over them
// unevenly (README.md). What does not divide by the GPUs, or has sizes that no launch takes, is left out, and
// `left_out` says so. Throws std::runtime_error for a text that is no configuration of a model.
std::vector<Shape> shapes_of_model(const std::string& config_json, const std::string& name, int32_t gpus,
                                   const std::vector<int32_t>& tokens, std::vector<std::string>* left_out);

}  // namespace bench
