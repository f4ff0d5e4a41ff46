// measure.cpp -- see measure.h.
#include "measure.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <utility>

#include "budget.h"
#include "inputs.h"

namespace bench {
namespace {

constexpr size_t kFlushBytes = size_t{512} << 20;  // four times the L2 of a B200
constexpr int kFlushPasses = 16;  // 8 GiB written: over a millisecond, in which the launches queue up

class Event {
 public:
  Event() { check_cuda(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(cudaStream_t stream) { check_cuda(cudaEventRecord(event_, stream), "cudaEventRecord"); }
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

}  // namespace

struct Workload::Impl {
  Impl(const Shape& s, const Epilogue& e, int count, uint64_t seed) : shape(s), epilogue(e), random(seed) {
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    for (int i = 0; i < count; ++i) {
      sets.push_back(std::make_unique<InputSet>(shape, epilogue, random));
      if (i >= kVerifiedSets) sets.back()->forget_host_copy();
    }
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  ~Impl() { cudaStreamDestroy(stream); }

  void launch(const InputSet& x) const { launch_one(x.args(), stream); }
  void launch_all() const {
    for (const auto& set : sets) launch(*set);
  }
  void synchronize() const { check_cuda(cudaStreamSynchronize(stream), "the kernel"); }

  // The first two sets are verified. More would only cost host memory.
  static constexpr int kVerifiedSets = 2;

  Shape shape;
  Epilogue epilogue;
  Rng random;
  cudaStream_t stream = nullptr;
  Launch launch_one = [](const dualgemm_args_t& args, cudaStream_t on) {
    check(dualgemm_launch_ex(&args, on), "dualgemm_launch_ex");
  };
  std::vector<std::unique_ptr<InputSet>> sets;
};

Workload::Workload(const Shape& shape, const Epilogue& epilogue, int input_sets, uint64_t seed)
    : impl_(std::make_unique<Impl>(shape, epilogue, input_sets, seed)) {}
Workload::~Workload() = default;

const Shape& Workload::shape() const { return impl_->shape; }
const Epilogue& Workload::epilogue() const { return impl_->epilogue; }
int Workload::input_sets() const { return static_cast<int>(impl_->sets.size()); }
const InputSet& Workload::input_set(int index) const { return *impl_->sets[static_cast<size_t>(index)]; }

void Workload::use(Launch launch) { impl_->launch_one = std::move(launch); }

std::string Workload::verify(int samples, Rounding rounding) {
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
    impl_->launch(x);
    impl_->synchronize();
    const Written written{download(x.args().c, x.c_bytes()), download(x.args().sfc, x.sfc_bytes())};
    const std::string text =
        bench::verify(impl_->shape, impl_->epilogue, x, written, samples, rounding, impl_->random);
    if (!text.empty()) return "input set " + std::to_string(set) + ": " + text;
  }
  return {};
}

Timing Workload::time_stream(int repeats) {
  const DeviceArray<uint8_t> flush(kFlushBytes);
  Event start, stop;
  std::vector<double> us;
  impl_->launch_all();
  for (int repeat = 0; repeat < repeats; ++repeat) {
    impl_->synchronize();
    for (int pass = 0; pass < kFlushPasses; ++pass) {
      check_cuda(cudaMemsetAsync(flush.data(), pass, kFlushBytes, impl_->stream), "cudaMemsetAsync");
    }
    start.record(impl_->stream);
    impl_->launch_all();
    stop.record(impl_->stream);
    impl_->synchronize();
    us.push_back(stop.us_since(start) / static_cast<double>(impl_->sets.size()));
  }
  return summarise(us);
}

Timing Workload::time_graph(int repeats) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  check_cuda(cudaStreamBeginCapture(impl_->stream, cudaStreamCaptureModeThreadLocal),
             "cudaStreamBeginCapture");
  impl_->launch_all();
  check_cuda(cudaStreamEndCapture(impl_->stream, &graph), "cudaStreamEndCapture");
  check_cuda(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  const int warm_up = 3;
  Event start, stop;
  std::vector<double> us;
  for (int repeat = -warm_up; repeat < repeats; ++repeat) {
    start.record(impl_->stream);
    check_cuda(cudaGraphLaunch(executable, impl_->stream), "cudaGraphLaunch");
    stop.record(impl_->stream);
    impl_->synchronize();
    if (repeat >= 0) us.push_back(stop.us_since(start) / static_cast<double>(impl_->sets.size()));
  }
  check_cuda(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
  check_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
  return summarise(us);
}

}  // namespace bench
