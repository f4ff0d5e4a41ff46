// table_test.cpp -- the host side on a table of instances that is not the library's: two architectures, and
// an output and an activation that only some instances have. What is served, chosen and refused is to follow
// from the table. No kernel is launched; the instances are plans alone.

#include <cuda_runtime_api.h>

#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "host/include/dualgemm.h"
#include "host/model/cost_model.h"
#include "kernel/instance.h"
#include "kernel/sm100/plan.h"
#include "support/catch.hpp"
#include "unit/architecture/plan.h"
#include "unit/host/arguments.h"

using namespace dualgemm_test;

namespace dualgemm {

constexpr EpilogueKind kFp16{false, 1, {{CType::kFp16, "fp16", 16, 64}}};
constexpr EpilogueKind kFp16General{true, 1, {{CType::kFp16, "fp16", 16, 64}}};
constexpr EpilogueKind kFp32{true, 1, {{CType::kFp32, "fp32", 32, 128}}};

constexpr EpilogueKind kBf16{false, 1, {{CType::kBf16, "bf16", 16, 64}}};
constexpr EpilogueKind kBf16General{true, 1, {{CType::kBf16, "bf16", 16, 64}}};
constexpr EpilogueKind kFp8{true, 1, {{CType::kFp8, "fp8", 8, 32}}};

static constexpr Plan pair_plan(bool grouped) {
  return sm100::plan_of({.tile_m = 256, .tile_n = 128, .stages = 4, .scale_stages = 4, .grouped = grouped});
}
constexpr Plan kPair = pair_plan(false), kGroupedPair = pair_plan(true);

static constexpr Plan b200_plan(bool grouped) {
  return sm100::plan_of(
      {.tile_m = 64, .tile_n = 128, .stages = 4, .scale_stages = 4, .acc_stages = 2, .grouped = grouped});
}

constexpr Instance kTable[] = {
    {"b200_fp16", nullptr, b200_plan(false), kFp16, 200000},
    {"b200_fp16_grouped", nullptr, b200_plan(true), kFp16, 200000},
    {"b200_fp32", nullptr, b200_plan(false), kFp32, 200000},
    {"b200_fp16_general", nullptr, b200_plan(false), kFp16General, 200000},
    {"h200_fp16", nullptr, zeros::plan_of_zeros(false), kFp16, 200000},
    {"b200_fp8_pair", nullptr, kPair, kFp8, 200000},
    {"b200_bf16_pair_grouped", nullptr, kGroupedPair, kBf16, 200000},
    {"b200_bf16_general_grouped", nullptr, b200_plan(true), kBf16General, 200000},
};

int32_t instance_count() { return std::size(kTable); }
const Instance& instance(int32_t index) { return kTable[index]; }

}  // namespace dualgemm

static dualgemm_device_t h200() {
  return {sizeof(dualgemm_device_t), 9, 0, 132, 13000, 1, "NVIDIA H200", 0, 0, 0};
}

static dualgemm_args_t asked(dualgemm_dtype_t c_dtype,
                             dualgemm_activation_t activation = DUALGEMM_ACTIVATION_SWIGLU) {
  dualgemm_args_t args = valid_args();
  args.c_dtype = c_dtype;
  args.activation = activation;
  return args;
}

// Returns the name of the instance that is chosen, or what is said instead.
static std::string choice(const dualgemm_args_t& args, const dualgemm_device_t& device) {
  int32_t id = 0;
  if (dualgemm_select_instance(&args, &device, &id) != DUALGEMM_STATUS_SUCCESS) return dualgemm_last_error();
  dualgemm_instance_info_t info;
  dualgemm_instance_info_init(&info);
  REQUIRE(dualgemm_instance_info(id, &info) == DUALGEMM_STATUS_SUCCESS);
  return info.name;
}

static std::string refusal(const dualgemm_args_t& args, const dualgemm_device_t& device = b200()) {
  CHECK(dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_NOT_SUPPORTED);
  return dualgemm_last_error();
}

TEST_CASE("a device is served where the table has an instance for it", "[table]") {
  const dualgemm_args_t args = asked(DUALGEMM_DTYPE_FP16);
  const auto ask = [&](int32_t major, int32_t minor) {
    const dualgemm_device_t device = {
        sizeof(dualgemm_device_t), major, minor, 132, 13000, 2, "some GPU", 0, 0, 0};
    return dualgemm_can_implement_on(&args, &device);
  };
  CHECK(ask(9, 0) == DUALGEMM_STATUS_SUCCESS);
  CHECK(ask(10, 0) == DUALGEMM_STATUS_SUCCESS);
  CHECK(ask(10, 3) == DUALGEMM_STATUS_SUCCESS);
  CHECK(ask(9, 1) == DUALGEMM_STATUS_ARCH_MISMATCH);
  CHECK(ask(12, 0) == DUALGEMM_STATUS_ARCH_MISMATCH);
  CHECK(ask(8, 9) == DUALGEMM_STATUS_ARCH_MISMATCH);
  CHECK(std::string(dualgemm_last_error()) ==
        "cc_major=8, cc_minor=9: device 2 (some GPU), but the library is built for compute capability 9.0, "
        "10.x");
  const std::string info = dualgemm_build_info();
  CHECK(info.find(", compute capability 9.0 (sm_90a), compute capability 10.x (sm_100f)") !=
        std::string::npos);
}

TEST_CASE("the choice looks at the instances of the device's architecture alone", "[table]") {
  for (const int32_t m : {1, 64, 300, 4096})
    for (const int32_t n : {8, 1000, 4096})
      for (const int32_t k : {32, 512, 7168}) {
        dualgemm_args_t args = asked(DUALGEMM_DTYPE_FP16);
        args.m = m, args.n = n, args.k = k;
        args.c = address(uintptr_t{1} << 50);
        CHECK(choice(args, b200()) == "b200_fp16");
        CHECK(choice(args, h200()) == "h200_fp16");
      }
}

TEST_CASE("an instance for another architecture is refused by name", "[table]") {
  dualgemm_args_t args = asked(DUALGEMM_DTYPE_FP16);
  args.instance_id = 1;
  CHECK(choice(args, b200()) == "b200_fp16");
  CHECK(refusal(args, h200()) ==
        "instance_id=1: b200_fp16 is for compute capability 10.x, the device is 9.0");
  args.instance_id = 5;
  CHECK(choice(args, h200()) == "h200_fp16");
  CHECK(refusal(args, b200()) ==
        "instance_id=5: h200_fp16 is for compute capability 9.0, the device is 10.0");
  // A driver that is too old is said first, a device that is not served before any instance.
  dualgemm_device_t device = b200();
  device.driver_version = 12000;
  CHECK(dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_DRIVER_TOO_OLD);
  device = b200();
  device.cc_major = 8;
  CHECK(dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_ARCH_MISMATCH);
}

TEST_CASE("an output or an activation is accepted where an instance has it", "[table]") {
  CHECK(choice(asked(DUALGEMM_DTYPE_FP32), b200()) == "b200_fp32");
  CHECK(choice(asked(DUALGEMM_DTYPE_FP16, DUALGEMM_ACTIVATION_GEGLU_TANH), b200()) == "b200_fp16_general");
  CHECK(choice(asked(DUALGEMM_DTYPE_FP16), b200()) == "b200_fp16");
  CHECK(
      refusal(asked(DUALGEMM_DTYPE_BF16)) ==
      "c_dtype=0 (BF16), plain SwiGLU, group_mode=0 (NONE): no kernel for compute capability 10.x computes this on 148 SMs");
  CHECK(
      refusal(asked(DUALGEMM_DTYPE_BF16, DUALGEMM_ACTIVATION_REGLU)) ==
      "c_dtype=0 (BF16), general epilogue, group_mode=0 (NONE): no kernel for compute capability 10.x computes this on 148 "
      "SMs");

  dualgemm_args_t forced = asked(DUALGEMM_DTYPE_FP16, DUALGEMM_ACTIVATION_GEGLU_TANH);
  forced.instance_id = 1;
  CHECK(refusal(forced) ==
        "instance_id=1: b200_fp16 computes a plain SwiGLU and nothing else, not what activation=1 asks for");
  forced.instance_id = 3;
  CHECK(refusal(forced) == "instance_id=3: b200_fp32 writes c_dtype=2 (FP32), not c_dtype=1 (FP16)");
  forced.instance_id = 4;
  CHECK(choice(forced, b200()) == "b200_fp16_general");
}

TEST_CASE("what only another architecture computes is refused", "[table]") {
  CHECK(
      refusal(asked(DUALGEMM_DTYPE_FP32), h200()) ==
      "c_dtype=2 (FP32), general epilogue, group_mode=0 (NONE): no kernel for compute capability 9.0 computes this on 132 "
      "SMs");
  dualgemm_args_t groups = masked_args();
  groups.c_dtype = DUALGEMM_DTYPE_FP16;
  CHECK(choice(groups, b200()) == "b200_fp16_grouped");
  CHECK(
      refusal(groups, h200()) ==
      "c_dtype=1 (FP16), plain SwiGLU, group_mode=2 (MASKED): no kernel for compute capability 9.0 computes this on 132 SMs");
}

TEST_CASE("what needs clusters is refused with that reason where they do not run", "[table]") {
  dualgemm_args_t args = dualgemm_test::with_output(DUALGEMM_DTYPE_FP8_E4M3, valid_args());
  dualgemm_device_t device = b200();
  CHECK(choice(args, device) == "b200_fp8_pair");
  const std::string needs =
      "c_dtype=4 (FP8_E4M3), general epilogue, group_mode=0 (NONE): every kernel for compute capability 10.x "
      "that computes this needs clusters of at least 2 CTAs, ";
  device.clusters_of_2 = -1;
  CHECK(refusal(args, device) == needs + "of which the device runs none (clusters_of_2=-1, clusters_of_4=0)");
  device.clusters_of_2 = 0;
  device.sm_count = 1;
  CHECK(refusal(args, device) == needs + "the device has 1 SM");
  device.sm_count = 148;
  args.max_sms = 1;
  CHECK(refusal(args, device) == needs + "max_sms=1 allows fewer");
}

TEST_CASE("a general instance computes what plain ones have only with clusters that do not run", "[table]") {
  dualgemm_args_t args = masked_args();
  args.c_dtype = DUALGEMM_DTYPE_BF16;
  dualgemm_device_t device = b200();
  CHECK(choice(args, device) == "b200_bf16_pair_grouped");
  device.clusters_of_2 = device.clusters_of_4 = -1;
  CHECK(choice(args, device) == "b200_bf16_general_grouped");
}

TEST_CASE("the size of an output element counts in its cost and in its zeros", "[table]") {
  using namespace dualgemm;
  Cost half, single;
  Shape shape{256, 4096, 512};
  REQUIRE(cost_of(instance(0), shape, {148}, &half));
  CHECK_FALSE(cost_of(instance(2), shape, {148}, &single));  // that writes fp32 alone
  shape.c_type = CType::kFp32;
  REQUIRE(cost_of(instance(2), shape, {148}, &single));
  const double bytes =
      (single.dram_us - half.dram_us) * kB200Costs.dram * static_cast<double>(half.waves * half.k_tiles);
  CHECK(std::fabs(bytes / (2.0 * 256 * 4096) - 1) < 1e-9);

  const int32_t m = 3, n = 12, ldc = 16, batch = 2;
  for (const int64_t stride : {m * ldc, m * ldc + 4}) {
    const auto elements = static_cast<size_t>(batch * stride + 8);
    void* c = nullptr;
    REQUIRE(cudaMalloc(&c, elements * 4) == cudaSuccess);
    REQUIRE(cudaMemset(c, 0xAA, elements * 4) == cudaSuccess);
    dualgemm_args_t args;
    dualgemm_args_init(&args);
    args.m = m, args.n = n, args.batch = batch;
    args.c = c, args.ldc = ldc, args.batch_stride_c = stride;
    args.c_dtype = DUALGEMM_DTYPE_FP32;
    const dualgemm_status_t status = dualgemm_launch_ex(&args, nullptr);
    INFO(dualgemm_last_error());
    REQUIRE(status == DUALGEMM_STATUS_SUCCESS);
    std::vector<uint32_t> host(elements), expected(elements, 0xAAAAAAAA);
    for (int32_t p = 0; p < batch; ++p)
      for (int32_t row = 0; row < m; ++row)
        for (int32_t column = 0; column < n; ++column)
          expected[static_cast<size_t>(p * stride + row * ldc + column)] = 0;
    REQUIRE(cudaMemcpy(host.data(), c, elements * 4, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(host == expected);
    CHECK(cudaFree(c) == cudaSuccess);
  }
}

TEST_CASE("an architecture has costs of its own, each constant within its range", "[table]") {
  using namespace dualgemm;
  for (const Architecture& architecture : kArchitectures) {
    const CostTable& table = cost_table(architecture.arch);
    for (const CostRange& range : table.ranges) {
      INFO(architecture.target << ": " << range.name);
      CHECK(table.constants.*range.constant >= range.low);
      CHECK(table.constants.*range.constant <= range.high);
    }
  }
  CHECK(cost_table(Arch::kSm90).constants.dram == kH100Costs.dram);
  CHECK(cost_table(Arch::kSm100).constants.dram == kB200Costs.dram);
  for (const Instance& x : instances()) {
    const Shape shape{300, 4096, 7168, 1, x.plan.tile.grouped, x.epilogue.outputs[0].type};
    Cost cost, own, slower;
    INFO(x.name);
    REQUIRE(cost_of(x, shape, {132}, &cost));
    CostConstants constants = x.plan.arch == Arch::kSm90 ? kH100Costs : kB200Costs;
    REQUIRE(cost_of(x, shape, {132}, &own, constants));
    constants.clock /= 2;
    REQUIRE(cost_of(x, shape, {132}, &slower, constants));
    CHECK(std::isfinite(cost.total_us));
    CHECK(cost.total_us == own.total_us);
    CHECK(cost.total_us < slower.total_us);
  }
}
