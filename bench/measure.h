// measure.h -- a launch on the GPU: cold input sets, verification on sampled outputs, and two ways of
// timing. The method is described in README.md.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dualgemm.h"
#include "shapes.h"
#include "verify.h"

namespace bench {

struct Timing {
  double median_us, p10_us, p90_us;  // per launch, over the repeats
};

// Calls `time` for each of `ways` in turns, `repeats` times, and summarises what it returned for each.
std::vector<Timing> in_turns(size_t ways, int repeats, const std::function<double(size_t)>& time);

// Enqueues one way to compute all input sets.
using Enqueue = std::function<void(cudaStream_t)>;

// Both time ways, in turns: each repeat times every way once, so that what clocks and temperature do
// meanwhile happens to all of them. Each way makes `launches` of what is timed, one per input set, and a time
// is that of one of them.

// Times from launch to launch: flush L2, then one event pair around a way, back to back on the stream.
std::vector<Timing> time_stream(const std::vector<Enqueue>& ways, int launches, int repeats,
                                cudaStream_t stream);

// Times each way captured into one CUDA graph, with an event pair around each replay.
std::vector<Timing> time_graph(const std::vector<Enqueue>& ways, int launches, int repeats,
                               cudaStream_t stream);

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
