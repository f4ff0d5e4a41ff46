// devices_simulated_test.cpp -- what of several devices the simulator alone can show: faults of another's
// operands, what a launch loads and what it finds again after cudaDeviceReset.
#include <algorithm>
#include <functional>
#include <set>

#include "host/include/dualgemm.h"
#include "kernel/devices.h"
#include "kernel/instance.h"
#include "sim/shim/shim.h"
#include "support/catch.hpp"
#include "support/compare.h"
#include "support/device_problem.h"
#include "support/stream.h"

using namespace dualgemm_test;

namespace {

Problem problem(uint64_t seed) { return make_problem(Data::kFullRange, 40, 72, 256, seed); }

int64_t mismatches(const Output& out, const Problem& p) { return compare(out, p.reference()).mismatches; }

bool untouched(const Output& out) {
  return std::all_of(out.bits.begin(), out.bits.end(), [](uint16_t bits) { return bits == 0xFFFF; });
}

}  // namespace

// As the CUDA C++ Programming Guide says ("Stream and Event Behavior"). The driver 580.159.04 took such a
// launch on two H100.
TEST_CASE("a stream of another device than the current one is refused, with CUDA's error in the text",
          "[devices]") {
  const Devices two(2);
  const Problem p = problem(20);
  DeviceProblem on(p, {});
  check_cuda(cudaSetDevice(1), "cudaSetDevice");
  const Stream far;
  check_cuda(cudaSetDevice(0), "cudaSetDevice");
  CHECK(dualgemm_launch_ex(&on.args(), far.get()) == DUALGEMM_STATUS_CUDA_ERROR);
  CHECK_THAT(dualgemm_last_error(), contains(": belongs to device 1, but device 0 is current: ") &&
                                        contains("cudaErrorInvalidResourceHandle"));
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

TEST_CASE("after a kernel of another's has failed, each call says that the context had failed before it",
          "[devices]") {
  const Problem p = problem(70);
  const DeviceProblem on(p, {});
  on.launch(nullptr);
  // C of a launch that nothing else follows: beyond all memory, so that the kernel writes wild.
  dualgemm_args_t wild = on.args();
  wild.c = reinterpret_cast<void*>(uintptr_t{1} << 50);
  CHECK(dualgemm_launch_ex(&wild, nullptr) == DUALGEMM_STATUS_CUDA_ERROR);
  CHECK_THAT(
      dualgemm_last_error(),
      contains("the CUDA context has failed, by work that ran earlier or, if launches block, by this one: "));
  const std::function<dualgemm_status_t()> calls[] = {[&] { return dualgemm_launch_ex(&on.args(), nullptr); },
                                                      [] { return dualgemm_init(); },
                                                      [&] { return dualgemm_can_implement(&on.args()); }};
  for (const auto& call : calls) {
    CHECK(call() == DUALGEMM_STATUS_CUDA_ERROR);
    CHECK_THAT(dualgemm_last_error(), contains("the CUDA context had failed before this call") &&
                                          contains("cudaErrorIllegalAddress (700)"));
    CHECK(dualgemm_last_cuda_error() == cudaErrorIllegalAddress);
  }
  sim::shim::clear_fault();
  on.launch(nullptr);
  CHECK(mismatches(on.download(), p) == 0);
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
  // Scale factors are moved in two directions, activations quantised by five kernels for three types; each
  // has a kernel for groups and one for all else. Factors of MXFP4 are prepared by one kernel, choices of
  // experts permuted by one, rows gathered by one, and summed by one for each two of three types.
  // Instances may share a kernel.
  std::set<void (*)(dualgemm::Params)> kernels;
  for (const dualgemm::Instance& instance : dualgemm::instances(dualgemm::Arch::kSm100))
    kernels.insert(instance.kernel);
  CHECK(loaded(3) == kernels.size() + 2 * 2 + 5 * 3 * 2 + 1 + (1 + 1 + 3 * 3));
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
      if (captured) {
        const Captured graph([&](cudaStream_t stream) { on.launch(stream); });
        graph.replay();
        CHECK(mismatches(on.download(), p) == 0);
      } else {
        const Stream stream;
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
