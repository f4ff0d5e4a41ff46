// judge_test.cu -- the order of host work as the watcher of the runtime is told it:
// what CUDA promises about streams, events, the default stream, graphs, synchronising calls
// and programmatic launches, no more and no less.
#include <cuda_runtime.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "sim/exec/observer.h"
#include "sim/judge/judge.h"
#include "sim/shim/shim.h"
#include "sim/unit/host_work.hpp"
#include "support/catch.hpp"
#include "support/device_memory.h"

namespace {

__global__ void first(int* out) { out[0] = 1; }
__global__ void second(int* out) { out[1] = 2; }
__global__ void third(int* out) { out[2] = 3; }

// Each thread reads what a thread of the other warp wrote, without a barrier between.
__global__ void exchange(int* out) {
  __shared__ int values[64];
  values[threadIdx.x] = 0;
  __syncthreads();
  values[threadIdx.x] = 1;
  const int value = *static_cast<volatile int*>(&values[63 - threadIdx.x]);
  if (threadIdx.x == 0) out[0] = value;
}

__device__ int increment = 1;
__global__ void add_increment(int* out) { out[0] = increment; }

struct Judged {
  explicit Judged(sim::Judge& judge) { sim::shim::set_judge(&judge); }
  ~Judged() { sim::shim::set_judge(nullptr); }
};

struct Buffer : dualgemm_test::DeviceArray<int> {
  Buffer() : DeviceArray(16) { REQUIRE(cudaDeviceSynchronize() == cudaSuccess); }
  operator int*() const { return data(); }
};

void launch_programmatic(void (*kernel)(int*), cudaStream_t stream, int* out) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = config.blockDim = dim3(1);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  REQUIRE(cudaLaunchKernelEx(&config, kernel, out) == cudaSuccess);
}

}  // namespace

TEST_CASE("work of one stream is in order, of two streams is not", "[judge]") {
  Buffer out;
  Stream a, b;
  Recorder record;
  first<<<1, 1, 0, a>>>(out);
  second<<<1, 1, 0, a>>>(out);
  third<<<1, 1, 0, b>>>(out);
  REQUIRE(record.works.size() == 3);
  CHECK(record.last("first").kind == sim::HostWork::Kind::kLaunch);
  CHECK(record.ordered("first", "second"));
  CHECK_FALSE(record.ordered("first", "third"));
  CHECK_FALSE(record.ordered("second", "third"));
}

TEST_CASE("an event orders what came before its record with what comes after the wait", "[judge]") {
  Buffer out;
  Stream a, b;
  Event event;
  Recorder record;
  first<<<1, 1, 0, a>>>(out);
  REQUIRE(cudaEventRecord(event, a) == cudaSuccess);
  second<<<1, 1, 0, a>>>(out);
  REQUIRE(cudaStreamWaitEvent(b, event, 0) == cudaSuccess);
  third<<<1, 1, 0, b>>>(out);
  CHECK(record.ordered("first", "third"));
  CHECK_FALSE(record.ordered("second", "third"));
}

TEST_CASE("the legacy default stream waits for blocking streams and they for it, others are free",
          "[judge]") {
  Buffer out;
  Stream blocking(cudaStreamDefault), free_stream;
  Recorder record;
  SECTION("it waits") {
    first<<<1, 1, 0, blocking>>>(out);
    second<<<1, 1, 0, free_stream>>>(out);
    third<<<1, 1>>>(out);
    CHECK(record.ordered("first", "third"));
    CHECK_FALSE(record.ordered("second", "third"));
  }
  SECTION("they wait") {
    first<<<1, 1>>>(out);
    second<<<1, 1, 0, blocking>>>(out);
    third<<<1, 1, 0, free_stream>>>(out);
    CHECK(record.ordered("first", "second"));
    CHECK_FALSE(record.ordered("first", "third"));
  }
  SECTION("a stream that was destroyed still counts") {
    {
      Stream gone(cudaStreamDefault);
      first<<<1, 1, 0, gone>>>(out);
    }
    second<<<1, 1>>>(out);
    CHECK(record.ordered("first", "second"));
  }
}

TEST_CASE("what the host waited for comes before all it enqueues later", "[judge]") {
  Buffer out;
  Stream a, b;
  Event event;
  Recorder record;
  const auto run = [&](const std::function<cudaError_t()>& wait, bool expected) {
    first<<<1, 1, 0, a>>>(out);
    REQUIRE(cudaEventRecord(event, a) == cudaSuccess);
    REQUIRE(wait() == cudaSuccess);
    third<<<1, 1, 0, b>>>(out);
    CHECK(record.ordered("first", "third") == expected);
  };
  SECTION("nothing") {
    run([] { return cudaSuccess; }, false);
  }
  SECTION("the stream") {
    run([&] { return cudaStreamSynchronize(a); }, true);
  }
  SECTION("another stream") {
    run([&] { return cudaStreamSynchronize(b); }, false);
  }
  SECTION("the event") {
    run([&] { return cudaEventSynchronize(event); }, true);
  }
  SECTION("a query that said yes") {
    run([&] { return cudaStreamQuery(a); }, true);
  }
  SECTION("the device") {
    run([] { return cudaDeviceSynchronize(); }, true);
  }
}

TEST_CASE("a copy with a host side ends before the call returns, one inside the device or a fill need not",
          "[judge]") {
  Buffer out, other;
  Stream a;
  int host[4] = {1, 2, 3, 4};
  Recorder record;
  SECTION("to the device") {
    REQUIRE(cudaMemcpy(out, host, 16, cudaMemcpyHostToDevice) == cudaSuccess);
    first<<<1, 1, 0, a>>>(out);
    CHECK(record.ordered("cudaMemcpy", "first"));
    const auto& regions = record.last("cudaMemcpy").regions;
    REQUIRE(regions.size() == 1);
    CHECK(regions[0].write);
    CHECK(regions[0].address == reinterpret_cast<uint64_t>(out.data()));
    CHECK(regions[0].bytes == 16);
  }
  SECTION("inside the device") {
    REQUIRE(cudaMemset(other, 0, 64) == cudaSuccess);
    REQUIRE(cudaMemcpy(out, other, 32, cudaMemcpyDeviceToDevice) == cudaSuccess);
    first<<<1, 1, 0, a>>>(out);
    CHECK(record.ordered("cudaMemset", "cudaMemcpy"));
    CHECK_FALSE(record.ordered("cudaMemcpy", "first"));
    CHECK_FALSE(record.ordered("cudaMemset", "first"));
    const auto& regions = record.last("cudaMemcpy").regions;
    REQUIRE(regions.size() == 2);
    CHECK((!regions[0].write && regions[1].write));
    CHECK(regions[0].address == reinterpret_cast<uint64_t>(other.data()));
    CHECK(record.last("cudaMemset").kind == sim::HostWork::Kind::kSet);
  }
  SECTION("asynchronous, to pageable memory") {
    REQUIRE(cudaMemsetAsync(out, 0, 64, a) == cudaSuccess);
    REQUIRE(cudaMemcpyAsync(host, out, 16, cudaMemcpyDeviceToHost, a) == cudaSuccess);
    first<<<1, 1>>>(out);
    CHECK(record.ordered("cudaMemcpyAsync", "first"));
    CHECK(record.ordered("cudaMemsetAsync", "first"));
  }
  SECTION("rows") {
    REQUIRE(cudaMemset2D(out, 16, 0, 4, 3) == cudaSuccess);
    const auto& regions = record.last("cudaMemset2D").regions;
    REQUIRE(regions.size() == 3);
    CHECK(regions[2].address == reinterpret_cast<uint64_t>(out.data()) + 32);
    CHECK(regions[2].bytes == 4);
  }
  SECTION("a copy that is refused is no work") {
    const size_t before = record.works.size();
    CHECK(cudaMemcpy(out, host, 1 << 20, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    CHECK(record.works.size() == before);
  }
}

TEST_CASE("a graph keeps the order of its capture and launches of it do not overlap", "[judge]") {
  Buffer out;
  Stream a, b;
  Event fork, join;
  REQUIRE(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal) == cudaSuccess);
  first<<<1, 1, 0, a>>>(out);
  REQUIRE(cudaEventRecord(fork, a) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(b, fork, 0) == cudaSuccess);
  second<<<1, 1, 0, b>>>(out);
  third<<<1, 1, 0, a>>>(out);
  REQUIRE(cudaEventRecord(join, b) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(a, join, 0) == cudaSuccess);
  REQUIRE(cudaMemsetAsync(out, 0, 64, a) == cudaSuccess);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaStreamEndCapture(a, &graph) == cudaSuccess);
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);

  Recorder record;
  REQUIRE(cudaGraphLaunch(exec, a) == cudaSuccess);
  const auto works = record.works;
  REQUIRE(works.size() == 4);
  CHECK(record.ordered("first", "second"));
  CHECK(record.ordered("first", "third"));
  CHECK_FALSE(record.ordered("second", "third"));
  CHECK(record.ordered("second", "cudaMemsetAsync"));
  CHECK(record.ordered("third", "cudaMemsetAsync"));
  REQUIRE(cudaGraphLaunch(exec, b) == cudaSuccess);
  CHECK(record.ordered(works.back(), record.last("first")));
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
}

TEST_CASE("a programmatic launch overlaps the kernel right before it and nothing else", "[judge]") {
  Buffer out;
  Stream a;
  Recorder record;
  SECTION("a kernel") {
    REQUIRE(cudaMemsetAsync(out, 0, 64, a) == cudaSuccess);
    first<<<1, 1, 0, a>>>(out);
    launch_programmatic(second, a, out);
    third<<<1, 1, 0, a>>>(out);
    const sim::HostWork& launched = record.last("second");
    CHECK(launched.programmatic);
    CHECK(launched.after == std::vector<uint64_t>{record.last("first").id});
    CHECK_FALSE(record.last("third").programmatic);
    // The second kernel may be complete before the first is.
    const auto& after = record.last("third").after;
    CHECK(std::count(after.begin(), after.end(), record.last("first").id) == 1);
    CHECK(std::count(after.begin(), after.end(), launched.id) == 1);
  }
  SECTION("a fill") {
    REQUIRE(cudaMemsetAsync(out, 0, 64, a) == cudaSuccess);
    launch_programmatic(second, a, out);
    CHECK_FALSE(record.last("second").programmatic);
    CHECK(record.ordered("cudaMemsetAsync", "second"));
  }
  SECTION("a kernel that the host has waited for") {
    first<<<1, 1, 0, a>>>(out);
    REQUIRE(cudaStreamSynchronize(a) == cudaSuccess);
    launch_programmatic(second, a, out);
    CHECK_FALSE(record.last("second").programmatic);
    CHECK(record.ordered("first", "second"));
  }
}

TEST_CASE("memory is freed only after all work, or in its stream", "[judge]") {
  Buffer out;
  Stream a;
  int* data = nullptr;
  REQUIRE(cudaMalloc(&data, 64) == cudaSuccess);
  Recorder record;
  first<<<1, 1, 0, a>>>(data);
  SECTION("at once") {
    REQUIRE(cudaFree(data) == cudaSuccess);
    CHECK(record.ordered("first", "cudaFree"));
  }
  SECTION("in a stream") {
    REQUIRE(cudaFreeAsync(data, a) == cudaSuccess);
    CHECK(record.ordered("first", "cudaFreeAsync"));
    REQUIRE(record.last("cudaFreeAsync").regions.size() == 1);
    CHECK(record.last("cudaFreeAsync").regions[0].bytes == 64);
  }
}

TEST_CASE("a judge handed to the runtime sees every launch until it is taken away, and calls memory by name",
          "[judge]") {
  Buffer out;
  sim::JudgeOptions options;
  options.mode = "random";
  options.seed = 3;
  sim::Judge judge(options, sim::shim::memory());
  sim::NameTable table;
  table.shared.push_back({1024, 256, "the values"});
  judge.names().set_table(table);
  {
    const Judged judged(judge);
    first<<<1, 1>>>(out);
    CHECK(judge.reports().empty());
    exchange<<<1, 64>>>(out);
  }
  second<<<1, 1>>>(out);
  CHECK(judge.grids() == 2);
  const auto race =
      std::find_if(judge.reports().begin(), judge.reports().end(), [](const sim::Report& report) {
        return report.rule == "race-data" && report.region && report.region->memory == "shared";
      });
  REQUIRE(race != judge.reports().end());
  CHECK(race->region->name == "the values");
  CHECK(race->later.kernel.find("exchange") != std::string::npos);
  REQUIRE(race->seen.size() == 1);
  CHECK(race->seen[0].mode == "random");
  CHECK(race->seen[0].seed == 3);
}

TEST_CASE("work that two streams do on the same bytes without an order is a race of host and grid",
          "[judge]") {
  Buffer out;
  Stream a;
  sim::Judge judge({}, sim::shim::memory());
  const Judged judged(judge);
  SECTION("unordered") {
    REQUIRE(cudaMemset(out, 0, 64) == cudaSuccess);
    first<<<1, 1, 0, a>>>(out);
    REQUIRE(judge.reports().size() == 1);
    CHECK(judge.reports()[0].rule == "race-grids");
  }
  SECTION("ordered by the host") {
    REQUIRE(cudaMemset(out, 0, 64) == cudaSuccess);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    first<<<1, 1, 0, a>>>(out);
    CHECK(judge.reports().empty());
  }
  SECTION("ordered by the default stream") {
    REQUIRE(cudaMemset(out, 0, 64) == cudaSuccess);
    first<<<1, 1>>>(out);
    CHECK(judge.reports().empty());
  }
}

TEST_CASE("a reset of the device under the judge gives its variables back once and keeps what was found",
          "[judge]") {
  sim::Judge judge({}, sim::shim::memory());
  {
    const Judged judged(judge);
    for (int round = 0; round < 2; ++round) {
      int* out = nullptr;
      REQUIRE(cudaMalloc(&out, 64) == cudaSuccess);
      add_increment<<<1, 1>>>(out);
      exchange<<<1, 64>>>(out);
      CHECK(cudaDeviceReset() == cudaSuccess);
    }
  }
  REQUIRE_FALSE(judge.reports().empty());
  CHECK(judge.reports()[0].later.kernel.find("exchange") != std::string::npos);
}
