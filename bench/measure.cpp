// measure.cpp -- see measure.h.
#include "measure.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "budget.h"
#include "inputs.h"

namespace bench {
namespace {

constexpr size_t kFlushBytes = size_t{512} << 20;  // four times the L2 of a B200
constexpr int kFlushPasses = 16;  // 8 GiB written: over a millisecond, in which the launches queue up
constexpr int kWarmUpReplays = 3;

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

Timing summarise(std::vector<double> us) {
  std::sort(us.begin(), us.end());
  const auto at = [&](double share) { return us[static_cast<size_t>(share * (us.size() - 1) + 0.5)]; };
  return {at(0.5), at(0.1), at(0.9)};
}

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

void synchronize(cudaStream_t stream) { check_cuda(cudaStreamSynchronize(stream), "the kernel"); }

}  // namespace

struct Workload::Impl {
  Impl(const Shape& s, const Epilogue& e, int count, uint64_t seed)
      : shape(s), epilogue(e), random(seed), workspace(workspace_bytes(s, e)) {
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    for (int i = 0; i < count; ++i)
      sets.push_back(i < kVerifiedSets ? std::make_unique<InputSet>(shape, epilogue, workspace, random)
                                       : std::make_unique<InputSet>(*sets[i % kVerifiedSets]));
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  ~Impl() { cudaStreamDestroy(stream); }

  // Returns for each of them how it computes all sets.
  std::vector<Enqueue> of_all_sets(const std::vector<Launch>& launches) const {
    std::vector<Enqueue> ways;
    for (const Launch& launch : launches)
      ways.emplace_back([this, &launch](cudaStream_t on) {
        for (const auto& set : sets) launch(set->args(), on);
      });
    return ways;
  }
  void synchronize() const { bench::synchronize(stream); }

  // The first two sets are verified, and the others hold the numbers of one of them at other addresses: they
  // are as cold, and need not be made on the CPU.
  static constexpr int kVerifiedSets = 2;

  Shape shape;
  Epilogue epilogue;
  Rng random;
  DeviceArray<uint8_t> workspace;  // of all sets, which are launched one after the other
  cudaStream_t stream = nullptr;
  std::vector<std::unique_ptr<InputSet>> sets;
};

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
    synchronize(stream);
    for (int pass = 0; pass < kFlushPasses; ++pass)
      check_cuda(cudaMemsetAsync(flush.data(), pass, kFlushBytes, stream), "cudaMemsetAsync");
    start.record(stream);
    ways[way](stream);
    stop.record(stream);
    synchronize(stream);
    return stop.us_since(start) / launches;
  });
}

std::vector<Timing> time_graph(const std::vector<Enqueue>& ways, int launches, int repeats,
                               cudaStream_t stream) {
  std::vector<std::unique_ptr<Graph>> graphs;
  for (const Enqueue& way : ways) graphs.push_back(std::make_unique<Graph>(stream, [&] { way(stream); }));
  const Event start, stop;
  const auto time = [&](size_t way) {
    start.record(stream);
    graphs[way]->replay();
    stop.record(stream);
    synchronize(stream);
    return stop.us_since(start) / launches;
  };
  in_turns(ways.size(), kWarmUpReplays, time);
  return in_turns(ways.size(), repeats, time);
}

void launch_library(const dualgemm_args_t& args, cudaStream_t stream) {
  check(dualgemm_launch_ex(&args, stream), "dualgemm_launch_ex");
}

Workload::Workload(const Shape& shape, const Epilogue& epilogue, int input_sets, uint64_t seed)
    : impl_(std::make_unique<Impl>(shape, epilogue, input_sets, seed)) {}
Workload::~Workload() = default;

const Shape& Workload::shape() const { return impl_->shape; }
const Epilogue& Workload::epilogue() const { return impl_->epilogue; }
int Workload::input_sets() const { return static_cast<int>(impl_->sets.size()); }
const InputSet& Workload::input_set(int index) const { return *impl_->sets[static_cast<size_t>(index)]; }

std::string Workload::verify(int samples, const Launch& launch, Rounding rounding) {
  const auto fill = [this](void* device, size_t bytes) {
    if (bytes > 0) check_cuda(cudaMemsetAsync(device, kUnwritten, bytes, impl_->stream), "cudaMemsetAsync");
  };
  const auto download = [](const void* device, size_t bytes) {
    std::vector<uint8_t> host(bytes);
    if (bytes > 0) check_cuda(cudaMemcpy(host.data(), device, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return host;
  };
  for (int set = 0; set < std::min<int>(impl_->sets.size(), Impl::kVerifiedSets); ++set) {
    const InputSet& x = *impl_->sets[set];
    fill(x.args().c, x.c_bytes());
    fill(x.args().sfc, x.sfc_bytes());
    launch(x.args(), impl_->stream);
    impl_->synchronize();
    const Written written{download(x.args().c, x.c_bytes()), download(x.args().sfc, x.sfc_bytes())};
    const std::string text =
        bench::verify(impl_->shape, impl_->epilogue, x, written, samples, rounding, impl_->random);
    if (!text.empty()) return "input set " + std::to_string(set) + ": " + text;
  }
  return {};
}

std::vector<Timing> Workload::time_stream(const std::vector<Launch>& ways, int repeats) {
  return bench::time_stream(impl_->of_all_sets(ways), input_sets(), repeats, impl_->stream);
}

std::vector<Timing> Workload::time_graph(const std::vector<Launch>& ways, int repeats) {
  return bench::time_graph(impl_->of_all_sets(ways), input_sets(), repeats, impl_->stream);
}

}  // namespace bench
