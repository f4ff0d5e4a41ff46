// timing.cpp -- see timing.h.
#include "timing.h"

#include <algorithm>
#include <cstdint>

#include "test/support/device_memory.h"

namespace bench {
namespace {

using dualgemm_test::check_cuda;
using dualgemm_test::DeviceArray;

constexpr size_t kFlushBytes = size_t{512} << 20;  // four times the L2 of a B200
constexpr int kFlushPasses = 16;  // 8 GiB written: over a millisecond, in which the launches queue up
constexpr int kWarmUpReplays = 3;

void wait_for(cudaStream_t stream) { check_cuda(cudaStreamSynchronize(stream), "the kernel"); }

}  // namespace

class Event {
 public:
  Event() { check_cuda(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(cudaStream_t stream) const { check_cuda(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  double us_since(const Event& start) const {
    float ms;
    check_cuda(cudaEventElapsedTime(&ms, start.event_, event_), "cudaEventElapsedTime");
    return ms * 1e3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// The launches of one way, as a graph.
class Graph {
 public:
  Graph(cudaStream_t stream, const std::function<void()>& launch) : stream_(stream) {
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    cudaGraph_t graph = nullptr;
    try {
      launch();
    } catch (...) {
      cudaStreamEndCapture(stream, &graph);  // what comes next finds the stream as it was
      if (graph != nullptr) cudaGraphDestroy(graph);
      throw;
    }
    check_cuda(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    const cudaError_t status = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    check_cuda(status, "cudaGraphInstantiate");
  }
  ~Graph() { cudaGraphExecDestroy(executable_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void replay() const { check_cuda(cudaGraphLaunch(executable_, stream_), "cudaGraphLaunch"); }

 private:
  cudaStream_t stream_;
  cudaGraphExec_t executable_ = nullptr;
};

Timing summarise(std::vector<double> us) {
  std::sort(us.begin(), us.end());
  const auto at = [&](double share) { return us[static_cast<size_t>(share * (us.size() - 1) + 0.5)]; };
  return {at(0.5), at(0.1), at(0.9)};
}

std::vector<Timing> in_turns(size_t ways, int repeats, const std::function<double(size_t)>& time) {
  std::vector<std::vector<double>> us(ways);
  for (int repeat = 0; repeat < repeats; ++repeat)
    for (size_t way = 0; way < ways; ++way) us[way].push_back(time(way));
  std::vector<Timing> out;
  for (const std::vector<double>& of_way : us) out.push_back(summarise(of_way));
  return out;
}

std::vector<Timing> time_stream(const std::vector<Enqueue>& ways, int launches, int repeats,
                                cudaStream_t stream) {
  const DeviceArray<uint8_t> flush(kFlushBytes);
  const Event start, stop;
  for (const Enqueue& way : ways) way(stream);
  return in_turns(ways.size(), repeats, [&](size_t way) {
    wait_for(stream);
    for (int pass = 0; pass < kFlushPasses; ++pass)
      check_cuda(cudaMemsetAsync(flush.data(), pass, kFlushBytes, stream), "cudaMemsetAsync");
    start.record(stream);
    ways[way](stream);
    stop.record(stream);
    wait_for(stream);
    return stop.us_since(start) / launches;
  });
}

struct TimedGraph::Impl {
  Impl(const Enqueue& way, int count, cudaStream_t on)
      : launches(count), stream(on), graph(on, [&] { way(on); }) {}
  int launches;
  cudaStream_t stream;
  Graph graph;
  Event start, stop;
};

TimedGraph::TimedGraph(const Enqueue& way, int launches, cudaStream_t stream)
    : impl_(std::make_unique<Impl>(way, launches, stream)) {}
TimedGraph::~TimedGraph() = default;
TimedGraph::TimedGraph(TimedGraph&&) noexcept = default;

double TimedGraph::replay_us() const {
  impl_->start.record(impl_->stream);
  impl_->graph.replay();
  impl_->stop.record(impl_->stream);
  wait_for(impl_->stream);
  return impl_->stop.us_since(impl_->start) / impl_->launches;
}

std::vector<Timing> time_graph(const std::vector<Enqueue>& ways, int launches, int repeats,
                               cudaStream_t stream) {
  std::vector<TimedGraph> graphs;
  for (const Enqueue& way : ways) graphs.emplace_back(way, launches, stream);
  const auto time = [&](size_t way) { return graphs[way].replay_us(); };
  in_turns(ways.size(), kWarmUpReplays, time);
  return in_turns(ways.size(), repeats, time);
}

}  // namespace bench
