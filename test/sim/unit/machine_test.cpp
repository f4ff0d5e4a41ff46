// machine_test.cpp -- the machines as values: what the runtime tells of each, against what an H200 and
// published measurements of a B300 said, and what follows from the numbers of any machine.
#include "sim/machine.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

#include "sim/shim/shim.h"
#include "sim/unit/machine_fixture.hpp"
#include "support/catch.hpp"

namespace machine_test {

using dualgemm_test::contains;
using sim_test::kernel_text;
using sim_test::shape;

struct OnMachine {
  explicit OnMachine(const sim::Machine& machine) { sim::shim::set_machine(machine); }
  ~OnMachine() { sim::shim::set_machine(sim::kB200); }
};

static int attribute(cudaDeviceAttr which) {
  int value = -1;
  CHECK(cudaDeviceGetAttribute(&value, which, 0) == cudaSuccess);
  return value;
}

static int clusters(const sim::Machine& machine, uint32_t threads, uint32_t size, size_t smem) {
  return sim::max_active_clusters(machine, {}, shape(size, threads, size, smem));
}

TEST_CASE("a machine is found by its name in either case, and an unknown name lists all", "[machine]") {
  CHECK(sim::machine_named("b200").name == sim::kB200.name);
  CHECK(sim::machine_named("B300").name == sim::kB300.name);
  CHECK(sim::machine_named("h200").name == sim::kH200.name);
  CHECK(sim::machine_named("H100").name == sim::kH100.name);
  CHECK_THROWS_WITH(sim::machine_named("b100"), contains("\"b100\"") && contains("B200, B300, H200, H100"));
}

TEST_CASE("a part of a GPU has the SMs and the clusters that are asked for, and all else as the whole",
          "[machine]") {
  struct Part {
    const char* name;
    int sms, of_2, of_4;
  };
  // A B200's first GPCs have 20 SMs, an H100's 18, 18 and 16.
  const Part part = GENERATE(
      Part{"h100,sms=132", 132, 66, 30}, Part{"H100,sms=114", 114, 57, 27}, Part{"h200,sms=78", 78, 39, 18},
      Part{"b200,sms=7", 7, 3, 1}, Part{"b200,sms=1", 1, 0, 0}, Part{"b200,sms=41", 41, 20, 10},
      Part{"b200,clusters_of_2=33", 148, 33, 16}, Part{"b200,clusters_of_4=0", 148, 74, 0},
      Part{"h100,clusters_of_2=33,clusters_of_4=0", 132, 33, 0},
      Part{"h100,clusters_of_4=11,clusters_of_2=25,sms=78", 78, 25, 11},
      Part{"b300,clusters_of_2=0,clusters_of_4=0", 148, 0, 0}, Part{"b200,sms=4,clusters_of_2=1", 4, 1, 0});
  CAPTURE(part.name);
  const sim::Machine machine = sim::machine_named(part.name);
  CHECK(machine.sms == part.sms);
  int sms = 0;
  for (const auto& [groups, size] : machine.cluster_groups) sms += groups * size;
  CHECK(sms == part.sms);
  constexpr size_t kAlone = 200 << 10;
  CHECK(clusters(machine, 192, 1, kAlone) == part.sms);
  CHECK(clusters(machine, 192, 2, kAlone) == part.of_2);
  CHECK(clusters(machine, 192, 4, kAlone) == part.of_4);
  // Each CTA of a cluster takes an SM of its own, even if two of them would fit on one SM.
  if (part.of_2 == 0) CHECK(clusters(machine, 192, 2, 0) == 0);
  if (part.of_4 == 0) CHECK(clusters(machine, 192, 4, 0) == 0);

  const std::string name = part.name, of = machine.name;
  CHECK(of.substr(4) == name.substr(4));
  const sim::Machine whole = sim::machine_named(name.substr(0, 4));
  CHECK(machine.arch() == whole.arch());
  CHECK(machine.l2_bytes == whole.l2_bytes);
  CHECK(machine.smem_per_sm == whole.smem_per_sm);
  CHECK(sim::machine_named(of).cluster_groups == machine.cluster_groups);
}

TEST_CASE("a part that no such GPU has is refused by name", "[machine]") {
  const auto refused = [](const char* name, const char* why) {
    CHECK_THROWS_WITH(sim::machine_named(name), contains(name) && contains(why));
  };
  refused("h100,sms=0", "sms must be from 1 to 132");
  refused("h100,sms=133", "sms must be from 1 to 132");
  refused("b200,sms=", "has no number");
  refused("b200,sms=-1", "has no number");
  refused("b200,sms=7x", "has no number");
  refused("b200,sms=99999999999", "\"sms=99999999999\" is beyond 2147483647");
  refused("b200,sms=7,sms=8", "\"sms=8\" says sms twice");
  refused("b200,clusters_of_4=0,sms=9,clusters_of_4=0", "\"clusters_of_4=0\" says clusters_of_4 twice");
  refused("b200,", "\"\" is none of sms=N");
  refused("b200,sms=7,", "\"\" is none of sms=N");
  refused("b200,,sms=7", "\"\" is none of sms=N");
  refused("b200,sms", "is none of sms=N, clusters_of_2=N, clusters_of_4=N");
  refused("b200,clusters_of_8=1", "\"clusters_of_8=1\" is none of");
  refused("b200,sms=7,clusters_of_2=4", "7 SMs do not hold 4 clusters of two CTAs");
  refused("b200,clusters_of_2=10,clusters_of_4=6", "the 6 clusters of four");
  CHECK_THROWS_WITH(sim::machine_named("h20,sms=78"), contains("\"h20\""));
}

TEST_CASE("the simulated H200 answers what an H200 answered", "[machine]") {
  struct Answer {
    cudaDeviceAttr which;
    int value;
  };
  // cudaDeviceGetAttribute gives these answers on an H200 SXM, driver 580.159.04, CUDA 13.0.
  constexpr Answer kAnswers[] = {
      {cudaDevAttrMaxThreadsPerBlock, 1024},
      {cudaDevAttrMaxBlockDimZ, 64},
      {cudaDevAttrMaxGridDimX, 2147483647},
      {cudaDevAttrMaxGridDimY, 65535},
      {cudaDevAttrMaxSharedMemoryPerBlock, 49152},
      {cudaDevAttrTotalConstantMemory, 65536},
      {cudaDevAttrWarpSize, 32},
      {cudaDevAttrMaxPitch, 2147483647},
      {cudaDevAttrMaxRegistersPerBlock, 65536},
      {cudaDevAttrClockRate, 1980000},
      {cudaDevAttrTextureAlignment, 512},
      {cudaDevAttrMultiProcessorCount, 132},
      {cudaDevAttrMemoryClockRate, 3201000},
      {cudaDevAttrGlobalMemoryBusWidth, 6016},
      {cudaDevAttrL2CacheSize, 62914560},
      {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
      {cudaDevAttrAsyncEngineCount, 3},
      {cudaDevAttrTexturePitchAlignment, 32},
      {cudaDevAttrComputeCapabilityMajor, 9},
      {cudaDevAttrComputeCapabilityMinor, 0},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor, 233472},
      {cudaDevAttrMaxRegistersPerMultiprocessor, 65536},
      {cudaDevAttrCooperativeLaunch, 1},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, 232448},
      {cudaDevAttrMaxBlocksPerMultiprocessor, 32},
      {cudaDevAttrMaxPersistingL2CacheSize, 39321600},
      {cudaDevAttrMaxAccessPolicyWindowSize, 134217728},
      {cudaDevAttrReservedSharedMemoryPerBlock, 1024},
      {cudaDevAttrClusterLaunch, 1},
      {cudaDevAttrMemSyncDomainCount, 4},
  };
  const OnMachine here(sim::kH200);
  for (const Answer& answer : kAnswers) {
    CAPTURE(answer.which);
    CHECK(attribute(answer.which) == answer.value);
  }
  cudaDeviceProp properties;
  REQUIRE(cudaGetDeviceProperties(&properties, 0) == cudaSuccess);
  CHECK(properties.totalGlobalMem == 150109880320);
  size_t free = 0, total = 0;
  REQUIRE(cudaMemGetInfo(&free, &total) == cudaSuccess);
  CHECK(total == 150109880320);
}

TEST_CASE("the simulated H200 holds as many clusters as an H200 said it would", "[machine]") {
  // These are cudaOccupancyMaxActiveClusters of a kernel of 192 threads, by its dynamic shared memory.
  constexpr uint32_t kSizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16};
  struct Row {
    size_t kilobytes;
    int clusters[12];
  };
  constexpr Row kRows[] = {{227, {132, 66, 39, 30, 22, 17, 15, 15, 9, 7, 7, 7}},
                           {110, {264, 132, 79, 62, 47, 39, 32, 30, 23, 21, 16, 14}},
                           {70, {396, 198, 124, 92, 69, 62, 47, 45, 37, 30, 28, 21}},
                           {50, {528, 264, 163, 124, 94, 79, 69, 62, 51, 44, 37, 28}}};
  for (const Row& row : kRows)
    for (size_t i = 0; i < std::size(kSizes); ++i) {
      CAPTURE(row.kilobytes, kSizes[i]);
      CHECK(clusters(sim::kH200, 192, kSizes[i], row.kilobytes << 10) == row.clusters[i]);
    }
  CHECK(clusters(sim::kH200, 192, 20, 0) == 0);
}

TEST_CASE("the simulated B300 holds as many clusters as is published of one", "[machine]") {
  CHECK(clusters(sim::kB300, 128, 2, 0) == 592);
  CHECK(clusters(sim::kB300, 128, 4, 0) == 284);
  CHECK(clusters(sim::kB300, 128, 8, 0) == 142);
  CHECK(clusters(sim::kB300, 128, 8, 227 << 10) == 15);
}

TEST_CASE("every SM of every machine is in one group", "[machine]") {
  for (const sim::Machine& machine : {sim::kB200, sim::kB300, sim::kH200, sim::kH100}) {
    CAPTURE(machine.name);
    int sms = 0;
    for (const auto& [groups, size] : machine.cluster_groups) sms += groups * size;
    CHECK(sms == machine.sms);
  }
}

TEST_CASE("the device and the driver name the machine, and say that it is simulated", "[machine]") {
  const sim::Machine machine = GENERATE(sim::kB200, sim::kB300, sim::kH200, sim::kH100);
  const OnMachine here(machine);
  const std::string expected = std::string("simulated ") + machine.name;
  cudaDeviceProp properties;
  REQUIRE(cudaGetDeviceProperties(&properties, 0) == cudaSuccess);
  CHECK(properties.name == expected);
  CHECK(uint32_t(properties.major * 10 + properties.minor) == machine.arch());
  CHECK(properties.multiProcessorCount == machine.sms);
  char name[64];
  REQUIRE(cuDeviceGetName(name, sizeof name, 0) == CUDA_SUCCESS);
  CHECK(name == expected);
  size_t bytes = 0;
  REQUIRE(cuDeviceTotalMem(&bytes, 0) == CUDA_SUCCESS);
  CHECK(bytes == machine.memory_bytes);
}

TEST_CASE("limits of a launch follow the numbers of the machine, whatever they are", "[machine]") {
  sim::Machine small = sim::kB200;
  small.sms = 5;
  small.smem_per_block_optin = 3000;
  small.smem_per_sm = 2 * (2048 + small.kReservedSmemPerBlock);
  small.cluster_groups = {{{1, 3}, {1, 2}}};
  sim_test::Machine memory;
  int* out = memory.make<int>(1);
  const std::string text = kernel_text(
      ".param .u64 out",
      ".reg .b32 n; .reg .b64 to; ld.param.u64 to, [out]; mov.u32 n, %nsmid; st.global.u32 [to], n; ret;");
  const auto run = [&](size_t smem) {
    sim::LaunchOptions options;
    options.machine = small;
    memory.run(text, shape(1, 1, 1, smem), {&out}, options);
  };
  run(3000);
  CHECK(memory.fetch(out, 1)[0] == 5);
  const sim::Fault fault = sim_test::fault_of([&] { run(3001); });
  CHECK(fault.kind() == sim::FaultKind::kLaunch);
  CHECK(sim_test::says(fault, "the limit is 3000"));

  CHECK(sim::max_active_blocks_per_sm(small, {}, 32, 2048) == 2);
  CHECK(sim::max_active_blocks_per_sm(small, {}, 32, 2049) == 1);
  CHECK(clusters(small, 32, 1, 2048) == 10);
  CHECK(clusters(small, 32, 3, 2048) == 2);
  CHECK(clusters(small, 32, 4, 2048) == 0);
}

TEST_CASE("a module is launched only on a machine that its target runs on", "[machine]") {
  sim_test::Machine memory;
  const auto run = [&](const sim::Machine& machine) {
    sim::LaunchOptions options;
    options.machine = machine;
    memory.run(kernel_text("", "ret;"), shape(1, 1), {}, options);
  };
  run(sim::kB200);
  for (const sim::Machine& machine : {sim::kB300, sim::kH200, sim::kH100}) {
    const sim::Fault fault = sim_test::fault_of([&] { run(machine); });
    CHECK(fault.kind() == sim::FaultKind::kLaunch);
    CHECK(sim_test::says(fault, std::string("compiled for sm_100a, which the ") + machine.name));
  }
}

TEST_CASE("changing the machine resets the device", "[machine]") {
  void* before = nullptr;
  REQUIRE(cudaMalloc(&before, 16) == cudaSuccess);
  const OnMachine here(sim::kH200);
  CHECK(cudaMemset(before, 0, 16) == cudaErrorInvalidValue);
  cudaGetLastError();
  sim::shim::clear_fault();
}

}  // namespace machine_test
