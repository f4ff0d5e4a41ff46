// options.h -- what dualgemm_bench is told on its command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layer.h"
#include "shapes.h"

namespace bench {

struct Options {
  std::vector<std::string> suites{"contest"}, shapes;
  std::vector<std::string> contenders;
  std::vector<int32_t> rows;
  int32_t products = 0;  // 0: those of the suites
  std::string a_dtype = "nvfp4", dtype = "fp16", activation = "SWIGLU", linear_activation = "NONE", json_path,
              compare_path, calibrate_path, ablation, chain, part;
  std::vector<std::string> keep_paths;
  int repeats = 20, input_sets = 50, samples = 1000;
  bool verify_only = false, baseline_only = false, instances = false, model = false, cube = false,
       errors = false, every_instance = false, suites_only = false;
};

// Fills in the options. Returns the exit status where the program ends here: after --help, or an error, which
// has been printed.
std::optional<int> parse_options(int argc, char** argv, Options* options);

// Returns the type of A.
dualgemm_dtype_t a_dtype_of(const Options& options);

// Return what is run; throw std::runtime_error for what cannot be read or does not go together.
std::vector<Shape> chosen_shapes(const Options& options);
std::vector<Layer> chosen_layers(const Options& options);

// Returns what the options say of the products, or refuses what belongs to another number of them.
Epilogue chosen_epilogue(const Options& options, int32_t products);

}  // namespace bench
