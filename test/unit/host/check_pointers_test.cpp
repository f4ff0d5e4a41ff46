// check_pointers_test.cpp -- DUALGEMM_FLAG_CHECK_POINTERS: for every pointer of a launch, memory that the
// device does not see, memory that ends too early, and memory that will do. The driver that is asked is the
// simulated one.

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "arguments.h"
#include "host/include/dualgemm.h"
#include "sim/shim/shim.h"
#include "support/catch.hpp"
#include "support/device_memory.h"
#include "support/stream.h"

namespace check_pointers_test {

using dualgemm_test::DeviceArray;
using dualgemm_test::Stream;

constexpr int32_t kM = 256, kN = 128, kK = 512, kGroups = 3;
constexpr size_t kWorkspace = 0x300;

// A tensor of everything() below: its bytes in all groups, and how it is put at a place.
struct Part {
  const char* name;
  size_t bytes;
  void (*place)(dualgemm_args_t&, void*);
};

template <auto kMember>
static void put(dualgemm_args_t& args, void* at) {
  args.*kMember = static_cast<std::remove_reference_t<decltype(args.*kMember)>>(at);
}

using Args = dualgemm_args_t;
const std::vector<Part> kParts = {
    {"a", kGroups* kM* kK / 2, put<&Args::a>},
    {"b1", kGroups* kN* kK / 2, put<&Args::b1>},
    {"b2", kGroups* kN* kK / 2, put<&Args::b2>},
    {"sfa", kGroups* kM* kK / 16, put<&Args::sfa>},
    {"sfb1", kGroups* kN* kK / 16, put<&Args::sfb1>},
    {"sfb2", kGroups* kN* kK / 16, put<&Args::sfb2>},
    {"alpha1_dev", kGroups * 4, put<&Args::alpha1_dev>},
    {"alpha2_dev", kGroups * 4, put<&Args::alpha2_dev>},
    {"a_row_scale", kGroups* kM * 4, put<&Args::a_row_scale>},
    {"bias1", kGroups* kN * 2, put<&Args::bias1>},
    {"bias2", kGroups* kN * 2, put<&Args::bias2>},
    {"c_row_scale", kGroups* kM * 4, put<&Args::c_row_scale>},
    {"c_global_scale_dev", kGroups * 4, put<&Args::c_global_scale_dev>},
    {"group_rows", kGroups * 4, put<&Args::group_rows>},
    {"c", kGroups* kM* kN / 2, put<&Args::c>},
    {"sfc", kGroups* kM* kN / 16, put<&Args::sfc>},
    {"d1", kGroups* kM* kN * 2, put<&Args::d1>},
    {"d2", kGroups* kM* kN * 2, put<&Args::d2>},
    {"amax_out", 4, put<&Args::amax_out>},
    {"workspace", kWorkspace, put<&Args::workspace>},
};

// A launch that takes and writes all that one can, in device memory of exactly the bytes that it takes.
class Everything {
 public:
  Everything() {
    dualgemm_args_init(&args);
    args.flags = DUALGEMM_FLAG_CHECK_POINTERS;
    args.m = kM, args.n = kN, args.k = kK;
    args.group_mode = DUALGEMM_GROUP_MASKED;
    args.groups = kGroups;
    args.c_dtype = DUALGEMM_DTYPE_NVFP4;
    args.alpha_stride = args.c_global_scale_stride = 1;
    args.bias_stride = kN;
    args.workspace_size = kWorkspace;
    for (const Part& part : kParts) {
      memory_.push_back(std::make_unique<DeviceArray<uint8_t>>(part.bytes));
      part.place(args, memory_.back()->data());
    }
  }
  dualgemm_args_t args;

 private:
  std::vector<std::unique_ptr<DeviceArray<uint8_t>>> memory_;
};

static std::string named(const Part& part, const void* at) {
  std::ostringstream text;
  text << part.name << "=" << at << ": ";
  return text.str();
}

static void check_refused(const dualgemm_args_t& args, const std::string& text) {
  for (const bool launch : {false, true}) {
    INFO("expected: " << text);
    const dualgemm_status_t status =
        launch ? dualgemm_launch_ex(&args, nullptr) : dualgemm_can_implement(&args);
    INFO("actual: " << dualgemm_last_error());
    CHECK(status == DUALGEMM_STATUS_INVALID_VALUE);
    CHECK(dualgemm_last_error() == text);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
  }
}

static void check_accepted(const dualgemm_args_t& args) {
  const dualgemm_status_t status = dualgemm_can_implement(&args);
  INFO(dualgemm_last_error());
  CHECK(status == DUALGEMM_STATUS_SUCCESS);
}

// Host memory in pages of its own.
struct alignas(4096) Pages {
  std::array<uint8_t, kGroups * kM * kN * 2> bytes;
};

TEST_CASE("with CHECK_POINTERS every pointer is memory that the device sees", "[host][pointers]") {
  Everything launch;
  check_accepted(launch.args);
  const auto host = std::make_unique<Pages>();
  for (const Part& part : kParts) {
    dualgemm_args_t args = launch.args;
    part.place(args, host.get());
    check_refused(args, named(part, host.get()) +
                            "is no memory that device 0 sees: CUDA neither allocated nor registered it");
    // Without the flag, and where no device is asked, nobody looks.
    const dualgemm_device_t device = dualgemm_test::b200();
    CHECK(dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_SUCCESS);
    args.flags = 0;
    check_accepted(args);
  }
}

TEST_CASE("with CHECK_POINTERS every tensor ends within its allocation", "[host][pointers]") {
  Everything launch;
  for (const Part& part : kParts) {
    const DeviceArray<uint8_t> larger(part.bytes + 512);
    for (const size_t short_of : {size_t{256}, size_t{512}}) {
      dualgemm_args_t args = launch.args;
      uint8_t* const at = larger.data() + 512;
      const size_t left = part.bytes;
      part.place(args, at);
      check_accepted(args);
      if (short_of >= part.bytes) continue;
      const DeviceArray<uint8_t> smaller(part.bytes - short_of);
      part.place(args, smaller.data());
      check_refused(args, named(part, smaller.data()) + "takes " + std::to_string(left) +
                              " bytes, but its allocation has " + std::to_string(left - short_of) + " left");
    }
    // One byte too few.
    const DeviceArray<uint8_t> smaller(part.bytes - 1);
    dualgemm_args_t args = launch.args;
    part.place(args, smaller.data());
    check_refused(args, named(part, smaller.data()) + "takes " + std::to_string(part.bytes) +
                            " bytes, but its allocation has " + std::to_string(part.bytes - 1) + " left");
  }
}

TEST_CASE("with CHECK_POINTERS pinned, registered and managed memory will do", "[host][pointers]") {
  Everything launch;
  const auto pages = std::make_unique<Pages>();
  void *pinned = nullptr, *managed = nullptr;
  REQUIRE(cudaMallocHost(&pinned, sizeof(Pages)) == cudaSuccess);
  REQUIRE(cudaMallocManaged(&managed, sizeof(Pages)) == cudaSuccess);
  REQUIRE(cudaHostRegister(pages.get(), sizeof(Pages), 0) == cudaSuccess);
  for (const Part& part : kParts)
    for (void* const memory : {pinned, managed, static_cast<void*>(pages.get())}) {
      INFO(part.name);
      dualgemm_args_t args = launch.args;
      part.place(args, memory);
      check_accepted(args);
    }
  CHECK(cudaHostUnregister(pages.get()) == cudaSuccess);
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
  CHECK(cudaFree(managed) == cudaSuccess);
}

TEST_CASE("with CHECK_POINTERS memory of another device is refused", "[host][pointers]") {
  sim::shim::set_device_count(2);
  {
    Everything launch;
    for (const Part& part : kParts) {
      REQUIRE(cudaSetDevice(1) == cudaSuccess);
      const DeviceArray<uint8_t> there(part.bytes);
      void* managed = nullptr;
      REQUIRE(cudaMallocManaged(&managed, part.bytes) == cudaSuccess);
      REQUIRE(cudaSetDevice(0) == cudaSuccess);
      dualgemm_args_t args = launch.args;
      part.place(args, there.data());
      check_refused(args, named(part, there.data()) + "is memory of device 1, but device 0 is current");
      part.place(args, managed);
      check_accepted(args);
      CHECK(cudaFree(managed) == cudaSuccess);
    }
  }
  sim::shim::set_device_count(1);
}

TEST_CASE("CHECK_POINTERS comes behind every other rule", "[host][pointers]") {
  Everything launch;
  launch.args.a = nullptr;
  launch.args.b1 = reinterpret_cast<const void*>(uintptr_t{0x1000});
  CHECK(dualgemm_can_implement(&launch.args) == DUALGEMM_STATUS_NULL_POINTER);
}

TEST_CASE("CHECK_POINTERS with K = 0 looks at outputs alone", "[host][pointers]") {
  const DeviceArray<uint8_t> c(kM * kN * 2);
  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.flags = DUALGEMM_FLAG_CHECK_POINTERS;
  args.m = kM, args.n = kN;
  args.a = args.b1 = reinterpret_cast<const void*>(uintptr_t{0x1000});
  args.c = c.data();
  check_accepted(args);
  args.c = c.data() + 16;
  std::ostringstream text;
  text << "c=" << args.c << ": takes 65536 bytes, but its allocation has 65520 left";
  check_refused(args, text.str());
}

TEST_CASE("CHECK_POINTERS leaves a pending error, and a capture, as they are", "[host][pointers]") {
  Everything launch;
  cudaGetLastError();
  REQUIRE(cudaSetDevice(-1) != cudaSuccess);
  const cudaError_t pending = cudaPeekAtLastError();
  REQUIRE(pending != cudaSuccess);
  CHECK(dualgemm_can_implement(&launch.args) == DUALGEMM_STATUS_SUCCESS);
  CHECK(cudaGetLastError() == pending);

  REQUIRE(dualgemm_init() == DUALGEMM_STATUS_SUCCESS);
  const Stream stream;
  REQUIRE(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal) == cudaSuccess);
  dualgemm_args_t refused = launch.args;
  refused.b2 = reinterpret_cast<const void*>(uintptr_t{0x1000});
  CHECK(dualgemm_launch_ex(&refused, stream.get()) == DUALGEMM_STATUS_INVALID_VALUE);
  CHECK(dualgemm_launch_ex(&launch.args, stream.get()) == DUALGEMM_STATUS_SUCCESS);
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(stream.get(), &graph) == cudaSuccess);
  size_t nodes = 0;
  REQUIRE(cudaGraphGetNodes(graph, nullptr, &nodes) == cudaSuccess);
  CHECK(nodes == 1);  // of the launch that was not refused
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
}

}  // namespace check_pointers_test
