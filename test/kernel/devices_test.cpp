// devices_test.cpp -- the library on several devices of one process: each launch goes to the current device
// of its thread, loads its kernel there, and finds it again after cudaDeviceReset.
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "host/dualgemm.h"
#include "sim/shim/shim.h"
#include "support/catch.hpp"
#include "support/compare.h"
#include "support/device_problem.h"
#include "support/stream.h"

using namespace dualgemm_test;

namespace {

// So many devices, until the end of a test; the calling thread starts on the first.
struct Devices {
  explicit Devices(int count) { sim::shim::set_device_count(count); }
  ~Devices() { sim::shim::set_device_count(1); }
};

// Makes a device current until the end of a block.
class On {
 public:
  explicit On(int device) {
    check_cuda(cudaGetDevice(&before_), "cudaGetDevice");
    check_cuda(cudaSetDevice(device), "cudaSetDevice");
  }
  ~On() { cudaSetDevice(before_); }

 private:
  int before_ = 0;
};

Problem problem(uint64_t seed) { return make_problem(Data::kFullRange, 40, 72, 256, seed); }

int64_t mismatches(const Output& out, const Problem& p) { return compare(out, p.reference()).mismatches; }

bool untouched(const Output& out) {
  return std::all_of(out.bits.begin(), out.bits.end(), [](uint16_t bits) { return bits == 0xFFFF; });
}

}  // namespace

TEST_CASE("launches on two devices in turn each compute on their own", "[devices]") {
  const Devices two(2);
  const Problem problems[] = {problem(1), problem(2)};
  std::vector<std::unique_ptr<DeviceProblem>> on;
  for (const int device : {0, 1}) {
    const On current(device);
    on.push_back(std::make_unique<DeviceProblem>(problems[device], LaunchOptions{}));
  }
  for (int round = 0; round < 3; ++round)
    for (const int device : {0, 1}) {
      const On current(device);
      on[device]->poison();
      on[device]->launch(nullptr);
      CHECK(mismatches(on[device]->download(), problems[device]) == 0);
    }
}

TEST_CASE("two threads launch at once, each on a device of its own", "[devices]") {
  const Devices two(2);
  std::vector<int64_t> wrong(2, -1);
  std::vector<std::string> failed(2);
  std::vector<std::thread> threads;
  for (const int device : {0, 1})
    threads.emplace_back([&, device] {
      try {
        const On current(device);
        const Stream stream;
        const Problem p = problem(10 + static_cast<uint64_t>(device));
        DeviceProblem on(p, {});
        for (int round = 0; round < 4; ++round) {
          on.poison();
          on.launch(stream.get());
          wrong[device] = std::max(wrong[device], mismatches(on.download(), p));
        }
      } catch (const std::exception& error) {
        failed[device] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const int device : {0, 1}) {
    CHECK(failed[device] == "");
    CHECK(wrong[device] == 0);
  }
}

TEST_CASE("a stream of another device than the current one is refused, with CUDA's error in the text",
          "[devices]") {
  const Devices two(2);
  const Problem p = problem(20);
  DeviceProblem on(p, {});
  check_cuda(cudaSetDevice(1), "cudaSetDevice");
  const Stream far;
  check_cuda(cudaSetDevice(0), "cudaSetDevice");
  CHECK(dualgemm_launch_ex(&on.args(), far.get()) == DUALGEMM_STATUS_CUDA_ERROR);
  CHECK_THAT(dualgemm_last_error(), contains("cudaErrorInvalidResourceHandle"));
  CHECK(dualgemm_last_cuda_error() == cudaErrorInvalidResourceHandle);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  CHECK(untouched(on.download()));
  on.launch(nullptr);
  CHECK(mismatches(on.download(), p) == 0);
}

TEST_CASE("operands of another device are a fault of the launch, and with peer access its operands",
          "[devices]") {
  const Devices two(2);
  const Problem p = problem(30);
  const DeviceProblem on(p, {});
  check_cuda(cudaSetDevice(1), "cudaSetDevice");
  SECTION("without") {
    CHECK(dualgemm_launch_ex(&on.args(), nullptr) == DUALGEMM_STATUS_CUDA_ERROR);
    CHECK_THAT(dualgemm_last_error(), contains("cudaErrorIllegalAddress"));
    sim::shim::clear_fault();
  }
  SECTION("with") {
    check_cuda(cudaDeviceEnablePeerAccess(0, 0), "cudaDeviceEnablePeerAccess");
    on.launch(nullptr);
    CHECK(mismatches(on.download(), p) == 0);
  }
}

// Beside its own kernel the first launch loads one that the device is asked about: how many pairs, and how
// many clusters of four, run at once.
TEST_CASE("a launch loads what it needs on its device, dualgemm_init everything", "[devices]") {
  const Devices several(4);
  const auto loaded = [](int device) { return sim::shim::loaded_kernels(device).size(); };
  check_cuda(cudaSetDevice(2), "cudaSetDevice");
  CHECK(loaded(2) == 0);
  DeviceProblem on(problem(40), {});
  on.launch(nullptr);
  const size_t first = loaded(2);
  CHECK(first >= 1);
  CHECK(first <= 2);
  on.launch(nullptr);
  CHECK(loaded(2) == first);
  CHECK(loaded(3) == 0);

  check_cuda(cudaSetDevice(3), "cudaSetDevice");
  REQUIRE(dualgemm_init() == DUALGEMM_STATUS_SUCCESS);
  // Scale factors are moved in two directions, activations quantised by three kernels for three types; each
  // has a kernel for groups and one for all else.
  std::set<int32_t> ids;
  for (const dualgemm_test::NamedInstance& instance : dualgemm_test::instances_of_device())
    ids.insert(instance.id);
  CHECK(loaded(3) == ids.size() + 2 * 2 + 3 * 3 * 2);
  CHECK(loaded(2) == first);
}

// Function attributes survive a reset, and code loads when it is used: what the library remembers stays true.
TEST_CASE("launches after cudaDeviceReset compute as before it, captured ones as well", "[devices]") {
  const Devices two(2);
  const int device = GENERATE(0, 1);
  const bool captured = GENERATE(false, true);
  CAPTURE(device, captured);
  check_cuda(cudaSetDevice(device), "cudaSetDevice");
  const Problem p = problem(50);
  for (int round = 0; round < 3; ++round) {
    INFO("round " << round);
    {
      DeviceProblem on(p, {});
      const Stream stream;
      if (captured) {
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t executable = nullptr;
        check_cuda(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal), "capture");
        on.launch(stream.get());
        check_cuda(cudaStreamEndCapture(stream.get(), &graph), "capture");
        check_cuda(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
        check_cuda(cudaGraphLaunch(executable, stream.get()), "cudaGraphLaunch");
        CHECK(mismatches(on.download(), p) == 0);
        cudaGraphExecDestroy(executable);
        cudaGraphDestroy(graph);
      } else {
        on.launch(stream.get());
        CHECK(mismatches(on.download(), p) == 0);
      }
    }
    REQUIRE(cudaDeviceReset() == cudaSuccess);
    CHECK(sim::shim::loaded_kernels(device).empty());
  }
}

TEST_CASE("devices beyond the 64 that the library knows are refused by number", "[devices]") {
  const Devices many(65);
  const Problem p = problem(60);
  check_cuda(cudaSetDevice(63), "cudaSetDevice");
  CHECK(mismatches(run(p), p) == 0);
  check_cuda(cudaSetDevice(64), "cudaSetDevice");
  const DeviceProblem on(p, {});
  CHECK(dualgemm_launch_ex(&on.args(), nullptr) == DUALGEMM_STATUS_NOT_SUPPORTED);
  CHECK_THAT(dualgemm_last_error(), contains("ordinal=64: must be below 64"));
  CHECK(dualgemm_init() == DUALGEMM_STATUS_NOT_SUPPORTED);
  check_cuda(cudaSetDevice(0), "cudaSetDevice");  // the download asks the library about the current device
  CHECK(untouched(on.download()));
}
