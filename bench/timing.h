// timing.h -- how long launches take, in two ways: on a stream, and in a CUDA graph. The method is described
// in README.md.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <vector>

namespace bench {

struct Timing {
  double median_us, p10_us, p90_us;  // per launch, over the repeats
};

// Sorts times and summarises them.
Timing summarise(std::vector<double> us);

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

// One way as a CUDA graph, for callers who decide themselves which way has its turn.
class TimedGraph {
 public:
  TimedGraph(const Enqueue& way, int launches, cudaStream_t stream);
  ~TimedGraph();
  TimedGraph(TimedGraph&&) noexcept;

  // Replays it, and returns the time of one launch.
  double replay_us() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bench
