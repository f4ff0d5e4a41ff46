// measure.cpp -- see measure.h.
#include "measure.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "budget.h"
#include "inputs.h"

namespace bench {

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
  void synchronize() const { check_cuda(cudaStreamSynchronize(stream), "the kernel"); }

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
