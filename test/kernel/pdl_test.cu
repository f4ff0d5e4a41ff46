// pdl_test.cu -- programmatic dependent launch: with the flag a launch may start before the preceding
// kernel of its stream has ended. The tests are judged, because the simulator runs grids one after the other
// and only the judge sees that nothing orders them: a producer that writes the activations late, a consumer
// that reads C, an earlier reader of C; and what must be found when the promise of STATIC_WEIGHTS is broken.
#include <cuda_runtime.h>

#include <string>

#include "kernel/grouped.h"
#include "kernel/judged.h"
#include "ptx/sync.cuh"
#include "support/programmatic.h"
#include "support/stream.h"

using namespace dualgemm_test;

namespace {

// Waits for the preceding kernel, lets what follows start at once, and only then copies.
__global__ void copy_late(uint4* to, const uint4* from, unsigned words) {
  dualgemm::ptx::griddepcontrol_wait();
  dualgemm::ptx::griddepcontrol_launch_dependents();
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x)
    to[i] = from[i];
}

void launch_copy(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  const ProgrammaticLaunch launch(2, 64, stream);
  check_cuda(cudaLaunchKernelEx(&launch.config(), copy_late, static_cast<uint4*>(to),
                                static_cast<const uint4*>(from), static_cast<unsigned>(bytes / 16)),
             "cudaLaunchKernelEx");
}

// The kernel that precedes the launch may write this.
struct Input {
  const char* name;
  const void* data;
  size_t bytes;
  bool weight;
};

std::vector<Input> inputs_of(const DeviceSet& device, const ProblemSet& set) {
  const dualgemm_args_t& args = device.args();
  const Problem& p = set.problems[0];
  std::vector<Input> out = {{"a", args.a, p.a.size(), false},
                            {"sfa", args.sfa, p.sfa.size(), false},
                            {"b1", args.b1, p.b1.size(), true},
                            {"b2", args.b2, p.b2.size(), true},
                            {"sfb1", args.sfb1, p.sfb1.size(), true},
                            {"sfb2", args.sfb2, p.sfb2.size(), true},
                            {"alphas", args.alpha1_dev, set.problems.size() * 8, false}};
  if (args.group_rows != nullptr) out.push_back({"group_rows", args.group_rows, 16, false});
  return out;
}

// Runs on one stream, twice over, with each kernel allowed to overlap the preceding one: a kernel that writes
// the input again, late, the dual GEMM, and a reader of C. Returns what the judge finds, after checking C.
std::string findings_of_chain(const ProblemSet& set, const SetOptions& options, size_t written) {
  DeviceSet device(set, options);
  const Input input = inputs_of(device, set)[written];
  const size_t c_bytes = static_cast<size_t>(set.m) * set.n * 2 / 16 * 16;
  const DeviceArray<uint8_t> copy(input.bytes / 16 * 16), c(c_bytes);
  check_cuda(cudaMemcpy(copy.data(), input.data, copy.size(), cudaMemcpyDeviceToDevice), "cudaMemcpy");
  INFO(input.name);
  Judged judged;
  const Stream stream;
  for (int repeat = 0; repeat < 2; ++repeat) {
    launch_copy(const_cast<void*>(input.data), copy.data(), copy.size(), stream.get());
    device.launch(stream.get());
    device.launch(stream.get());
    launch_copy(c.data(), device.args().c, c.size(), stream.get());
  }
  check_cuda(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
  check_values(set, device.download());
  return judged.findings();
}

ProblemSet dense_set(const NamedInstance& instance) {
  return make_batch(Data::kFullRange, 2, 40, instance.info.tile_n, 528, 1, Alphas::kOwn);
}

}  // namespace

TEST_CASE("with PDL nothing is touched before the preceding kernel has ended", "[pdl]") {
  for (const NamedInstance& instance : dense_instances()) {
    if (instance.info.c_dtype != DUALGEMM_DTYPE_BF16) continue;
    DYNAMIC_SECTION(instance.info.name) {
      SetOptions options = use(instance);
      options.flags = DUALGEMM_FLAG_PDL;
      for (size_t written = 0; written < 7; ++written)
        CHECK(findings_of_chain(dense_set(instance), options, written) == "");
    }
  }
}

TEST_CASE("with PDL nothing of groups is touched before the preceding kernel has ended", "[pdl][grouped]") {
  for (const NamedInstance& instance : grouped_instances()) {
    if (instance.info.c_dtype != DUALGEMM_DTYPE_BF16) continue;
    for (dualgemm_group_mode_t mode : kGroupModes) {
      DYNAMIC_SECTION(instance.info.name << " " << text(mode)) {
        for (uint32_t weights : {0u, static_cast<uint32_t>(DUALGEMM_FLAG_STATIC_WEIGHTS)}) {
          SetOptions options = use(instance);
          options.flags = DUALGEMM_FLAG_PDL | weights;
          const ProblemSet set =
              make_groups(mode, Data::kFullRange, {70, 0, 9, 5}, instance.info.tile_n, 272, 2, 1);
          for (size_t written : {0, 1, 6, 7}) CHECK(findings_of_chain(set, options, written) == "");
        }
      }
    }
  }
}

TEST_CASE("with STATIC_WEIGHTS only the weights may be read before the preceding kernel has ended", "[pdl]") {
  for (const NamedInstance& instance : dense_instances()) {
    if (instance.info.c_dtype != DUALGEMM_DTYPE_FP16) continue;
    DYNAMIC_SECTION(instance.info.name) {
      SetOptions options = use(instance);
      options.flags = DUALGEMM_FLAG_PDL | DUALGEMM_FLAG_STATIC_WEIGHTS;
      const ProblemSet set = dense_set(instance);
      for (size_t written : {0, 1, 6}) CHECK(findings_of_chain(set, options, written) == "");
      // A preceding kernel that does write them breaks the promise, and the judge sees the race: the launch
      // does overlap, and the weights are what it reads early.
      for (size_t written : {2, 3, 4, 5}) {
        const std::string found = findings_of_chain(set, options, written);
        INFO(found);
        CHECK(found.find("race") != std::string::npos);
      }
      // Without the other flag it changes nothing.
      options.flags = DUALGEMM_FLAG_STATIC_WEIGHTS;
      for (size_t written : {2, 4}) CHECK(findings_of_chain(set, options, written) == "");
    }
  }
}

TEST_CASE("the flags of programmatic launches survive a capture into a graph", "[pdl]") {
  SetOptions options;
  options.flags = DUALGEMM_FLAG_PDL | DUALGEMM_FLAG_STATIC_WEIGHTS;
  const ProblemSet set = make_batch(Data::kFullRange, 1, 100, 136, 272, 3);
  DeviceSet device(set, options);
  const DeviceArray<uint8_t> a(set.problems[0].a);
  device.launch(nullptr);  // the capture finds the kernel loaded
  Judged judged;
  const Stream stream;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  check_cuda(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
  launch_copy(const_cast<void*>(device.args().a), a.data(), a.size(), stream.get());
  device.launch(stream.get());
  check_cuda(cudaStreamEndCapture(stream.get(), &graph), "cudaStreamEndCapture");
  check_cuda(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  for (int replay = 0; replay < 2; ++replay) {
    check_cuda(cudaGraphLaunch(executable, stream.get()), "cudaGraphLaunch");
    check_cuda(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
    check_values(set, device.download());
  }
  CHECK(judged.findings() == "");
  check_cuda(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
  check_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
}
