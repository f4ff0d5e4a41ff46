// measure.h -- a launch on the GPU: cold input sets, verification on sampled outputs, and timing. The method
// is described in README.md.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dualgemm.h"
#include "shapes.h"
#include "timing.h"
#include "verify.h"

namespace bench {

// Computes C of one input set.
using Launch = std::function<void(const dualgemm_args_t&, cudaStream_t)>;

// The library does.
void launch_library(const dualgemm_args_t& args, cudaStream_t stream);

class Workload {
 public:
  Workload(const Shape& shape, const Epilogue& epilogue, int input_sets, uint64_t seed);
  ~Workload();

  const Shape& shape() const;
  const Epilogue& epilogue() const;
  int input_sets() const;
  const InputSet& input_set(int index) const;

  // Launches two input sets and compares `samples` outputs of each, or more if there are many problems, with
  // a double-precision reference. Returns the first mismatch, or an empty string.
  std::string verify(int samples, const Launch& launch = launch_library, Rounding rounding = Rounding::kOnce);

  // Time several ways to compute the input sets, as the functions above do.
  std::vector<Timing> time_stream(const std::vector<Launch>& ways, int repeats);
  std::vector<Timing> time_graph(const std::vector<Launch>& ways, int repeats);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bench
