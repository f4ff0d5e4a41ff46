// overlap_test.cu -- grids that CUDA does not order, under the schedule that runs them together: launches in
// two streams, and chains of programmatic launches. Accesses that nothing orders are found, with the names of
// both kernels, and give a wrong result in some run; ordered accesses give the right result in all runs.
#include <cuda_runtime.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "sim/judge/judge.h"
#include "sim/schedule/schedule.h"
#include "sim/shim/shim.h"
#include "sim/unit/host_work.hpp"
#include "support/catch.hpp"
#include "support/device_memory.h"
#include "support/programmatic.h"

namespace {

using dualgemm_test::DeviceArray;
using dualgemm_test::ProgrammaticLaunch;
using Words = std::vector<uint32_t>;

constexpr uint32_t kWords = 64, kSeeds = 16;

__device__ void let_the_next_start() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ void wait_for_the_grid_before() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// An ordinary load, which the compiler leaves as it is. The stores are strong: it is enough for a race that
// one of the two accesses is ordinary.
__device__ uint32_t load(const uint32_t* word) {
  uint32_t value;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(word));
  return value;
}

// One word after the other, so that others find some of them written.
__global__ void write_words(volatile uint32_t* words) {
  let_the_next_start();
  for (uint32_t i = 0; i < kWords; ++i) words[i] = 1;
}

__global__ void read_words(const uint32_t* words, uint32_t* copy) {
  for (uint32_t i = 0; i < kWords; ++i) copy[i] = load(words + i);
}

// The grid between the two of a chain touches nothing, and starts the last one at once.
template <bool kWaits>
__global__ void between() {
  let_the_next_start();
  if (kWaits) wait_for_the_grid_before();
}

template <bool kWaitsFirst>
__global__ void read_in_chain(const uint32_t* words, uint32_t* copy) {
  if (kWaitsFirst) wait_for_the_grid_before();
  for (uint32_t i = 0; i < kWords; ++i) copy[i] = load(words + i);
  wait_for_the_grid_before();
}

// Takes turns with the other player until the word is 20.
__global__ void play(volatile uint32_t* word, uint32_t player) {
  for (uint32_t turn = player; turn < 20; turn += 2) {
    while (*word != turn) {
    }
    *word = turn + 1;
  }
}

// What a program did under the judge: the words it copied, and what was found.
struct Outcome {
  Words copied;
  std::vector<sim::Report> reports;
};

template <class Program>
Outcome run(const std::string& mode, uint64_t seed, Program program) {
  const DeviceArray<uint32_t> words(kWords, 0), copy(kWords, 0);
  sim::JudgeOptions options;
  options.mode = mode;
  options.seed = seed;
  sim::Judge judge(options, sim::shim::memory());
  sim::shim::set_judge(&judge);
  program(words.data(), copy.data());
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  sim::shim::set_judge(nullptr);
  return {copy.host(), judge.reports()};
}

// Checks that the program has a race between `writer` and `reader` in every run, and what that does: for some
// seed the reader finds none of the words written, for some it finds a part of them.
template <class Program>
void check_race(const std::string& writer, const std::string& reader, Program program) {
  std::set<std::string> found;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    CAPTURE(seed);
    const Outcome outcome = run("overlap", seed, program);
    const auto ones = std::count(outcome.copied.begin(), outcome.copied.end(), 1u);
    found.insert(ones == 0 ? "none" : ones < kWords ? "a part" : "all");
    REQUIRE_FALSE(outcome.reports.empty());
    for (const sim::Report& report : outcome.reports) {
      CHECK(report.rule == "race-grids");
      REQUIRE(report.earlier);
      const std::set<std::string> kernels{report.earlier->kernel, report.later.kernel};
      CHECK_THAT(*kernels.begin() + *kernels.rbegin(), dualgemm_test::contains(writer));
      CHECK_THAT(*kernels.begin() + *kernels.rbegin(), dualgemm_test::contains(reader));
    }
  }
  CHECK(found.contains("a part"));
  CHECK(found.contains("none"));
}

// Checks that the program copies what was written in every run, and that nothing is found.
template <class Program>
void check_clean(Program program) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    CAPTURE(seed);
    const Outcome outcome = run("overlap", seed, program);
    CHECK(outcome.copied == Words(kWords, 1));
    CHECK(outcome.reports.empty());
  }
}

// A writer in one stream and a reader in another.
template <bool kEvent>
void two_streams(uint32_t* words, uint32_t* copy) {
  const Stream first, second;
  const Event written;
  write_words<<<1, 1, 0, first>>>(words);
  REQUIRE(cudaEventRecord(written, first) == cudaSuccess);
  if (kEvent) REQUIRE(cudaStreamWaitEvent(second, written, 0) == cudaSuccess);
  read_words<<<1, 1, 0, second>>>(words, copy);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
}

// A writer, a grid between, and a reader, each of which may start before the one before it has ended.
template <bool kWaitsBetween, bool kWaitsFirst>
void chain_of_three(uint32_t* words, uint32_t* copy) {
  const Stream stream;
  const ProgrammaticLaunch launch(1, 1, stream);
  write_words<<<1, 1, 0, stream>>>(words);
  REQUIRE(cudaLaunchKernelEx(&launch.config(), between<kWaitsBetween>) == cudaSuccess);
  REQUIRE(cudaLaunchKernelEx(&launch.config(), read_in_chain<kWaitsFirst>,
                             static_cast<const uint32_t*>(words), copy) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
}

}  // namespace

TEST_CASE("overlap: a reader in another stream finds what there is, and an event puts that right",
          "[overlap]") {
  check_race("write_words", "read_words", two_streams<false>);
  check_clean(two_streams<true>);
}

TEST_CASE(
    "overlap: the last of a chain reads before griddepcontrol.wait, or before the one between has waited",
    "[overlap]") {
  check_race("write_words", "read_in_chain", chain_of_three<true, false>);
  check_race("write_words", "read_in_chain", chain_of_three<false, true>);
  check_clean(chain_of_three<true, true>);
}

TEST_CASE("overlap: a race between two streams is found in a captured graph as well", "[overlap]") {
  const auto graph_of = [](bool ordered) {
    return [ordered](uint32_t* words, uint32_t* copy) {
      const Stream first, second;
      const Event fork, written, join;
      cudaGraph_t graph = nullptr;
      cudaGraphExec_t exec = nullptr;
      REQUIRE(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal) == cudaSuccess);
      REQUIRE(cudaEventRecord(fork, first) == cudaSuccess);
      REQUIRE(cudaStreamWaitEvent(second, fork, 0) == cudaSuccess);
      write_words<<<1, 1, 0, first>>>(words);
      REQUIRE(cudaEventRecord(written, first) == cudaSuccess);
      if (ordered) REQUIRE(cudaStreamWaitEvent(second, written, 0) == cudaSuccess);
      read_words<<<1, 1, 0, second>>>(words, copy);
      REQUIRE(cudaEventRecord(join, second) == cudaSuccess);
      REQUIRE(cudaStreamWaitEvent(first, join, 0) == cudaSuccess);
      REQUIRE(cudaStreamEndCapture(first, &graph) == cudaSuccess);
      REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
      REQUIRE(cudaGraphLaunch(exec, first) == cudaSuccess);
      REQUIRE(cudaGraphExecDestroy(exec) == cudaSuccess);  // the launches that are held outlive it
      REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
      REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    };
  };
  check_race("write_words", "read_words", graph_of(false));
  check_clean(graph_of(true));
}

TEST_CASE("overlap: grids of two streams that wait for each other come to their ends", "[overlap]") {
  const DeviceArray<uint32_t> word(1, 0);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto policy = sim::make_policy("overlap", seed);
    sim::shim::set_launch_options({policy.get(), nullptr});
    REQUIRE(cudaMemset(word.data(), 0, 4) == cudaSuccess);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    const Stream first, second;
    play<<<1, 1, 0, first>>>(word.data(), 0);
    play<<<1, 1, 0, second>>>(word.data(), 1);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    sim::shim::set_launch_options({});
    CHECK(word.host() == Words{20});
  }
}

TEST_CASE("overlap: a launch is held until the device is asked for something else", "[overlap]") {
  const DeviceArray<uint32_t> words(kWords, 0);
  const Stream first, second;
  const Event event;
  struct Starts : sim::Observer {
    uint64_t grids = 0;
    void start(const sim::GridStart&) override { ++grids; }
  } observer;
  const auto policy = sim::make_policy("overlap", 0);
  sim::LaunchOptions options;
  options.policy = policy.get();
  options.observer = &observer;
  sim::shim::set_launch_options(options);
  write_words<<<1, 1, 0, first>>>(words.data());
  write_words<<<1, 1, 0, second>>>(words.data());
  REQUIRE(cudaEventRecord(event, second) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(first, event, 0) == cudaSuccess);
  CHECK(observer.grids == 0);
  SECTION("the host waits") { CHECK(cudaEventSynchronize(event) == cudaSuccess); }
  SECTION("a fill") { CHECK(cudaMemsetAsync(words.data(), 0, 4, second) == cudaSuccess); }
  SECTION("a copy") { CHECK(words.host() == Words(kWords, 1)); }
  SECTION("a host function") {
    CHECK(cudaLaunchHostFunc(
              first, [](void*) {}, nullptr) == cudaSuccess);
  }
  SECTION("the schedule ends") { sim::shim::set_launch_options({}); }
  CHECK(observer.grids == 2);
  sim::shim::set_launch_options({});
}

TEST_CASE("overlap: a launch is refused at once, and a fault comes with the call that waits", "[overlap]") {
  const auto policy = sim::make_policy("overlap", 0);
  sim::shim::set_launch_options({policy.get(), nullptr});
  write_words<<<1, 2048>>>(nullptr);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  write_words<<<1, 1>>>(nullptr);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  sim::shim::set_launch_options({});
  sim::shim::clear_fault();
}

TEST_CASE("overlap: grids of two devices run together, each on the memory of its own", "[overlap]") {
  sim::shim::set_device_count(2);
  const auto policy = sim::make_policy("overlap", 1);
  {
    std::vector<uint32_t*> words(2);
    for (int device : {0, 1}) {
      REQUIRE(cudaSetDevice(device) == cudaSuccess);
      REQUIRE(cudaMalloc(&words[device], kWords * sizeof(uint32_t)) == cudaSuccess);
    }
    sim::shim::set_launch_options({policy.get(), nullptr});
    for (int device : {0, 1}) {
      REQUIRE(cudaSetDevice(device) == cudaSuccess);
      write_words<<<1, 1>>>(words[device]);
    }
    sim::shim::set_launch_options({});
    for (int device : {0, 1}) {
      Words copy(kWords);
      CHECK(cudaMemcpy(copy.data(), words[device], kWords * sizeof(uint32_t), cudaMemcpyDefault) ==
            cudaSuccess);
      CHECK(copy == Words(kWords, 1));
    }
  }
  sim::shim::set_device_count(1);
}
