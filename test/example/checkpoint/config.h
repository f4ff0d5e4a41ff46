// config.h -- what the JSON beside the tensors says of a model: how its weights are quantised, and which
// activation it has.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "example/checkpoint/tensor.h"

namespace checkpoint {

struct Config {
  // One entry of config_groups or of quantized_layers.
  struct Layers {
    std::vector<std::string> targets;  // names of layers, "re:" and a pattern, or names of classes
    std::string error;                 // why they cannot be read, or nothing
  };
  std::vector<std::vector<Layers>>
      layers;  // of each file, the entries that say something of some layers alone

  bool gpt_oss = false;    // fused rows are in turns, and the activation is that of gpt-oss
  float swiglu_limit = 7;  // of gpt-oss
};

// Adds what a config.json or a hf_quant_config.json says. Entries about quantisation are looked for at any
// depth. Throws FormatError where one is not known, or has a value that is not that of NVFP4 or MXFP4, with
// its path, key and value; and where the activation is not one of those that are done here.
void read_config(Bytes file, Config& config);
// The same of a file that is about quantisation alone, as quantize_config.json.
void read_quantisation(Bytes file, Config& config);

// Refuses the weight STEM if the entries that are about it say that it is something else.
void check_layer(const Config& config, const std::string& stem);

// JSON that is nested at most 32 deep. Throws FormatError.
nlohmann::json parse_json(Bytes file);

}  // namespace checkpoint
