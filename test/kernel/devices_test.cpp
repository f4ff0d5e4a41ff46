// devices_test.cpp -- the library on several devices of one process: each launch goes to the current device
// of its thread, and computes there.
#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "host/include/dualgemm.h"
#include "kernel/devices.h"
#include "support/catch.hpp"
#include "support/compare.h"
#include "support/device_problem.h"
#include "support/stream.h"

using namespace dualgemm_test;

namespace {

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

}  // namespace

TEST_CASE("launches on two devices in turn each compute on their own", "[devices]") {
  const Devices two(2);
  if (!two.there()) {
    WARN("skipped: this machine has no second device");
    return;
  }
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
  if (!two.there()) {
    WARN("skipped: this machine has no second device");
    return;
  }
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
