// pdl_test.cu -- programmatic dependent launch: with the flag a launch may start before the preceding
// kernel of its stream has ended. The tests are judged, because most schedules run grids one after the other
// and only the judge sees that nothing orders them: a producer that writes an input late, a consumer that
// reads an output, an earlier reader of it; and what must be found when the promise of STATIC_WEIGHTS is
// broken. Under `overlap` the grids do run together.
#include <cuda_runtime.h>

#include <deque>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/extras.h"
#include "kernel/judged.h"
#include "ptx/sync.cuh"
#include "ref/formats.h"
#include "support/programmatic.h"
#include "support/stream.h"
#include "support/thorough.h"

using namespace dualgemm_test;

namespace {

// This is what another kernel of the stream may write or read.
struct Buffer {
  const char* name;
  const void* data;
  size_t bytes;
};

struct Copy {
  uint32_t* to;
  const uint32_t* from;
  unsigned words;
};

struct Copies {
  Copy each[8];
};

// Waits for the preceding kernel, lets what follows start at once, and only then copies.
__global__ void copy_late(const __grid_constant__ Copies copies) {
  dualgemm::ptx::griddepcontrol_wait();
  dualgemm::ptx::griddepcontrol_launch_dependents();
#pragma unroll
  for (const Copy& copy : copies.each)
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < copy.words; i += gridDim.x * blockDim.x)
      copy.to[i] = copy.from[i];
}

void launch_copies(const std::vector<Buffer>& to, const std::vector<Buffer>& from, cudaStream_t stream) {
  Copies copies = {};
  REQUIRE(to.size() <= std::size(copies.each));
  for (size_t i = 0; i < to.size(); ++i)
    copies.each[i] = {static_cast<uint32_t*>(const_cast<void*>(to[i].data)),
                      static_cast<const uint32_t*>(from[i].data), static_cast<unsigned>(to[i].bytes / 4)};
  const ProgrammaticLaunch launch(2, 64, stream);
  check_cuda(cudaLaunchKernelEx(&launch.config(), copy_late, copies), "cudaLaunchKernelEx");
}

std::vector<Buffer> given_of(std::vector<Buffer> all) {
  std::erase_if(all, [](const Buffer& buffer) { return buffer.data == nullptr; });
  return all;
}

std::vector<Buffer> weights_of(const dualgemm_args_t& args, const ProblemSet& set) {
  const Problem& p = set.problems[0];
  return given_of({{"b1", args.b1, p.b1.size()},
                   {"b2", args.b2, p.b2.size()},
                   {"sfb1", args.sfb1, p.sfb1.size()},
                   {"sfb2", args.sfb2, p.sfb2.size()}});
}

// Returns everything else that a plain launch reads.
std::vector<Buffer> inputs_of(const dualgemm_args_t& args, const ProblemSet& set) {
  const Problem& p = set.problems[0];
  const size_t problems = set.problems.size();
  return given_of({{"a", args.a, p.a.size()},
                   {"sfa", args.sfa, p.sfa.size()},
                   {"alphas", args.alpha1_dev, 2 * problems * sizeof(float)},
                   {"group_rows", args.group_rows, problems * sizeof(int32_t)}});
}

// Returns what a general launch reads beside these, amax_out among it, which it raises.
std::vector<Buffer> general_inputs_of(const dualgemm_args_t& args, const ProblemSet& set) {
  const size_t row_factors = static_cast<size_t>(set.problems[0].m) * sizeof(float);
  const size_t bias = static_cast<size_t>(set.n) * (args.bias_dtype == DUALGEMM_DTYPE_FP32 ? 4 : 2);
  const size_t c =
      static_cast<size_t>(set.m) * set.n * bits_of(static_cast<dualgemm_dtype_t>(args.c_dtype)) / 8;
  return given_of({{"c_add", args.c_add, c},
                   {"a_row_scale", args.a_row_scale, row_factors},
                   {"c_row_scale", args.c_row_scale, row_factors},
                   {"bias1", args.bias1, bias},
                   {"bias2", args.bias2, bias},
                   {"amax_out", args.amax_out, sizeof(float)},
                   {"c_global_scale_dev", args.c_global_scale_dev, set.problems.size() * sizeof(float)}});
}

std::vector<Buffer> outputs_of(const dualgemm_args_t& args, const ProblemSet& set) {
  const auto matrix = [&](int32_t dtype) {
    return static_cast<size_t>(set.m) * set.n * bits_of(static_cast<dualgemm_dtype_t>(dtype)) / 8;
  };
  return given_of({{"c", args.c, matrix(args.c_dtype)},
                   {"d1", args.d1, matrix(args.d_dtype)},
                   {"d2", args.d2, matrix(args.d_dtype)},
                   {"sfc", args.sfc, ref::sf_bytes(set.problems[0].m, set.n)},
                   {"amax_out", args.amax_out, sizeof(float)}});
}

// Launches, on one stream and each allowed to overlap the preceding one, kernels that write these inputs
// again, late, dual GEMMs, and a reader of all outputs. A dual GEMM comes directly after each of the three.
// Returns what the judge finds, after checking C.
std::string findings_of_chain(DeviceSet& device, const ProblemSet& set, const SetOptions& options,
                              const std::vector<Buffer>& inputs, const std::string& mode = "default",
                              uint64_t seed = 0) {
  device.poison();
  std::deque<DeviceArray<uint8_t>> memory;
  const auto room_for = [&memory](std::vector<Buffer> buffers) {
    for (Buffer& buffer : buffers) buffer.data = memory.emplace_back(buffer.bytes).data();
    return buffers;
  };
  const std::vector<Buffer> outputs = outputs_of(device.args(), set), written = room_for(inputs),
                            read = room_for(outputs);
  for (size_t i = 0; i < inputs.size(); ++i)
    check_cuda(cudaMemcpy(const_cast<void*>(written[i].data), inputs[i].data, inputs[i].bytes,
                          cudaMemcpyDeviceToDevice),
               "cudaMemcpy");
  Judged judged(mode, seed);
  const Stream stream;
  launch_copies(inputs, written, stream.get());
  device.launch(stream.get());
  device.launch(stream.get());
  launch_copies(read, outputs, stream.get());
  device.launch(stream.get());
  launch_copies(inputs, written, stream.get());
  device.launch(stream.get());
  check_cuda(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
  const std::vector<Output> out = device.download();
  for (size_t i = 0; i < out.size(); ++i)
    if (set.problems[i].m != 0) check(out[i], set.problems[i], options);
  return judged.findings();
}

ProblemSet dense_set(const NamedInstance& instance, int32_t k = 528) {
  return make_batch(Data::kFullRange, 2, 40, instance.info.tile_n, k, 1, Alphas::kOwn);
}

}  // namespace

TEST_CASE("with PDL nothing is touched before the preceding kernel has ended", "[pdl]") {
  for (const NamedInstance& instance : dense_instances()) {
    if (instance.dtype != DUALGEMM_DTYPE_BF16) continue;
    DYNAMIC_SECTION(instance.name) {
      SetOptions options = use(instance);
      options.flags = DUALGEMM_FLAG_PDL;
      const ProblemSet set = dense_set(instance);
      DeviceSet device(set, options);
      std::vector<Buffer> inputs = inputs_of(device.args(), set);
      for (const Buffer& weights : weights_of(device.args(), set)) inputs.push_back(weights);
      CHECK(findings_of_chain(device, set, options, inputs) == "");
    }
  }
}

TEST_CASE("with PDL nothing of groups is touched before the preceding kernel has ended", "[pdl][grouped]") {
  for (const NamedInstance& instance : grouped_instances()) {
    if (instance.dtype != DUALGEMM_DTYPE_BF16) continue;
    for (dualgemm_group_mode_t mode : kGroupModes) {
      DYNAMIC_SECTION(instance.name << " " << text(mode)) {
        for (uint32_t weights : {0u, static_cast<uint32_t>(DUALGEMM_FLAG_STATIC_WEIGHTS)}) {
          SetOptions options = use(instance);
          options.flags = DUALGEMM_FLAG_PDL | weights;
          const ProblemSet set =
              make_groups(mode, Data::kFullRange, {70, 0, 9, 5}, instance.info.tile_n, 272, 2, 1);
          DeviceSet device(set, options);
          CHECK(findings_of_chain(device, set, options, inputs_of(device.args(), set)) == "");
        }
      }
    }
  }
}

TEST_CASE("with PDL a general epilogue touches nothing before the preceding kernel has ended",
          "[pdl][general]") {
  for (const NamedInstance& instance : general_instances_in_turn(false)) {
    DYNAMIC_SECTION(instance.name) {
      ProblemSet set = dense_set(instance, instance.info.split_k * instance.info.tile_k);
      SetOptions options = use_all_of(instance, set);
      options.flags = DUALGEMM_FLAG_PDL;
      DeviceSet device(set, options);
      CHECK(findings_of_chain(device, set, options, general_inputs_of(device.args(), set)) == "");
    }
  }
}

TEST_CASE("with PDL a general epilogue touches nothing of groups before the preceding kernel has ended",
          "[pdl][general][grouped]") {
  for (const NamedInstance& instance : general_instances(true)) {
    if (instance.dtype != DUALGEMM_DTYPE_NVFP4) continue;  // takes and gives more than the others
    for (dualgemm_group_mode_t mode : kGroupModes) {
      DYNAMIC_SECTION(instance.name << " " << text(mode)) {
        ProblemSet set = make_groups(mode, Data::kFullRange, {70, 0, 9, 5}, instance.info.tile_n, 144, 2, 1);
        SetOptions options = use_all_of(instance, set);
        options.flags = DUALGEMM_FLAG_PDL;
        DeviceSet device(set, options);
        CHECK(findings_of_chain(device, set, options, general_inputs_of(device.args(), set)) == "");
      }
    }
  }
}

TEST_CASE("with STATIC_WEIGHTS only the weights may be read before the preceding kernel has ended", "[pdl]") {
  size_t turn = 0;  // of the weights each tile has one that is written before, and the first tile all
  for (const NamedInstance& instance : dense_instances()) {
    if (instance.dtype != DUALGEMM_DTYPE_FP16) continue;
    ++turn;
    DYNAMIC_SECTION(instance.name) {
      SetOptions options = use(instance);
      options.flags = DUALGEMM_FLAG_PDL | DUALGEMM_FLAG_STATIC_WEIGHTS;
      const ProblemSet set = dense_set(instance);
      DeviceSet device(set, options);
      CHECK(findings_of_chain(device, set, options, inputs_of(device.args(), set)) == "");
      // A preceding kernel that does write them breaks the promise, and the judge sees the race: the launch
      // does overlap, and the weights are what it reads early.
      const std::vector<Buffer> all = weights_of(device.args(), set);
      for (const Buffer& weights : turn == 1 ? all : all_or_every(all.size(), turn, all)) {
        const std::string found = findings_of_chain(device, set, options, {weights});
        INFO("written before: " << weights.name << "; found: " << found);
        CHECK(found.find("race") != std::string::npos);
      }
      // Without the other flag it changes nothing.
      options.flags = DUALGEMM_FLAG_STATIC_WEIGHTS;
      DeviceSet late(set, options);
      CHECK(findings_of_chain(late, set, options, weights_of(late.args(), set)) == "");
    }
  }
}

TEST_CASE("with PDL the grids of a chain run together as they run one after the other", "[pdl]") {
  size_t turn = 0;
  for (const NamedInstance& instance : dense_instances()) {
    if (instance.dtype != DUALGEMM_DTYPE_BF16) continue;
    ++turn;
    DYNAMIC_SECTION(instance.name) {
      SetOptions options = use(instance);
      options.flags = DUALGEMM_FLAG_PDL | DUALGEMM_FLAG_STATIC_WEIGHTS;
      const ProblemSet set = dense_set(instance);
      DeviceSet device(set, options);
      const std::vector<Buffer> inputs = inputs_of(device.args(), set);
      for (uint64_t seed : all_or_every<uint64_t>(2, turn, {0, 3})) {
        CAPTURE(seed);
        CHECK(findings_of_chain(device, set, options, inputs, "overlap", seed) == "");
      }
    }
  }
}

TEST_CASE("one product: with PDL nothing is touched before the preceding kernel has ended", "[pdl][one]") {
  std::vector<NamedInstance> all = one_product_instances();
  std::erase_if(all, [](const NamedInstance& x) { return x.info.grouped != 0; });
  for (const NamedInstance& instance : in_turn(all)) DYNAMIC_SECTION(instance.name) {
      ProblemSet set = dense_set(instance);
      SetOptions options = use_all_of(instance, set);
      options.flags = DUALGEMM_FLAG_PDL;
      DeviceSet device(set, options);
      std::vector<Buffer> inputs = inputs_of(device.args(), set);
      for (const Buffer& buffer : weights_of(device.args(), set)) inputs.push_back(buffer);
      CHECK(findings_of_chain(device, set, options, inputs) == "");
      if (instance.info.general != 0) {
        CHECK(findings_of_chain(device, set, options, general_inputs_of(device.args(), set)) == "");
        continue;
      }
      // A preceding kernel that writes the weights breaks the promise that they are static.
      options.flags |= DUALGEMM_FLAG_STATIC_WEIGHTS;
      DeviceSet early(set, options);
      const std::string found = findings_of_chain(early, set, options, weights_of(early.args(), set));
      INFO(found);
      // Behind a pass over A the launch starts when the preceding grid has ended, and reads nothing early.
      const bool behind_pass = std::string_view(instance.name).find('x') != std::string_view::npos;
      CHECK((found.find("race") != std::string::npos) == !behind_pass);
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
  const Captured graph([&](cudaStream_t stream) {
    launch_copies({{"a", device.args().a, a.size()}}, {{"its copy", a.data(), a.size()}}, stream);
    device.launch(stream);
  });
  for (int replay = 0; replay < 2; ++replay) {
    graph.replay();
    check_values(set, device.download());
  }
  CHECK(judged.findings() == "");
}
