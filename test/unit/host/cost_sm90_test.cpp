// cost_sm90_test.cpp -- the cost model of compute capability 9.0: how far it is from measured times, what it
// counts, and how it orders.

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "costs.h"
#include "host/model/cost_model.h"
#include "host/model/select_instance.h"
#include "support/catch.hpp"

namespace cost_sm90_test {

using namespace dualgemm_test;
using namespace dualgemm;

static const Instance& named(const std::string& name) {
  for (const Instance& instance : instances(Arch::kSm90))
    if (instance.name == name) return instance;
  throw std::runtime_error("no instance " + name);
}

// These times were measured on an H100 (bench/results/h100.json): of the plain fp16 instance chosen,
// from launch to launch in a CUDA graph, weights in DRAM, with the pass over A where there is one.
struct Measured {
  int32_t n, k, m;
  std::string instance;
  double us;
};
const Measured kMeasured[] = {
    {2048, 7168, 1, "sm90m8n32k256s2", 9.9},         {2048, 7168, 8, "sm90m8n32k256s2", 9.9},
    {2048, 7168, 16, "sm90m16n32k256s2", 10.4},      {2048, 7168, 64, "sm90m32n64k256s2", 15.7},
    {2048, 7168, 128, "sm90m64n64k256s2x", 19.6},    {2048, 7168, 256, "sm90m128n64k256s2x", 25.8},
    {2048, 7168, 512, "sm90m128n64k256x", 43.7},     {2048, 7168, 2048, "sm90m256n64k256x", 168.2},
    {2048, 7168, 4096, "sm90m256n64k256x", 319.4},   {2880, 2880, 1, "sm90m8n64k256s2", 8.1},
    {2880, 2880, 8, "sm90m8n64k256s2", 8.2},         {2880, 2880, 16, "sm90m16n64k256s2", 8.8},
    {2880, 2880, 32, "sm90m32n64k256s2", 10.1},      {2880, 2880, 64, "sm90m64n64k256s2", 11.8},
    {2880, 2880, 128, "sm90m64n64k256", 16},         {2880, 2880, 256, "sm90m128n64k256x", 21.3},
    {2880, 2880, 512, "sm90m256n64k256x", 34.9},     {2880, 2880, 2048, "sm90m256n64k256x", 103.7},
    {2880, 2880, 4096, "sm90m128n64k256x", 203},     {4096, 7168, 1, "sm90m8n64k256s2", 15.5},
    {4096, 7168, 8, "sm90m8n64k256s2", 15.5},        {4096, 7168, 16, "sm90m16n64k256s2", 16.3},
    {4096, 7168, 32, "sm90m32n64k256s2", 17.3},      {4096, 7168, 64, "sm90m64n64k256s2", 20.2},
    {4096, 7168, 128, "sm90m128n64k256s2x", 25.9},   {4096, 7168, 256, "sm90m128n64k256x", 43.3},
    {4096, 7168, 512, "sm90m256n64k256x", 80.8},     {4096, 7168, 2048, "sm90m256n64k256x", 309},
    {4096, 7168, 4096, "sm90m256n64k256x", 608.7},   {14336, 4096, 1, "sm90m8n128k256", 28.8},
    {14336, 4096, 8, "sm90m8n128k256", 28.9},        {14336, 4096, 16, "sm90m16n128k256", 28.6},
    {14336, 4096, 32, "sm90m32n128k256", 28.8},      {14336, 4096, 64, "sm90m64n128k256x", 35},
    {14336, 4096, 128, "sm90m128n64k256x", 48.4},    {14336, 4096, 256, "sm90m256n64k256x", 93.6},
    {14336, 4096, 512, "sm90m128n64k256x", 173.4},   {14336, 4096, 2048, "sm90m256n64k256x", 602.2},
    {14336, 4096, 4096, "sm90m256n64k256x", 1224.5}, {28672, 8192, 1, "sm90m8n128k256", 98.6},
    {28672, 8192, 8, "sm90m8n128k256", 98.9},        {28672, 8192, 16, "sm90m16n128k256", 100.6},
    {28672, 8192, 32, "sm90m32n128k256", 105.6},     {28672, 8192, 64, "sm90m64n128k256x", 121.9},
    {28672, 8192, 128, "sm90m128n64k256x", 184.6},   {28672, 8192, 256, "sm90m128n64k256x", 315.7},
    {28672, 8192, 512, "sm90m256n64k256x", 580.4},   {28672, 8192, 2048, "sm90m256n64k256x", 2399.1},
    {28672, 8192, 4096, "sm90m256n64k256x", 4647.8}};
// The gap between two launches on a stream, 1.76 us on an H200, is 0.73 us in a graph.
constexpr double kGraphSaves = 1.03;

TEST_CASE("9.0: the model agrees with times that were measured", "[host][cost_model]") {
  double squares = 0;
  for (const Measured& x : kMeasured) {
    Cost cost;
    REQUIRE(cost_of(named(x.instance + "_fp16"), {x.m, x.n, x.k}, kH100, &cost));
    const double modelled = cost.total_us - kGraphSaves, error = modelled / x.us - 1;
    INFO(x.m << " x " << x.n << " x " << x.k << " by " << x.instance << ": " << modelled << " us, measured "
             << x.us);
    CHECK(std::fabs(error) < 0.25);
    squares += error * error;
  }
  CHECK(std::sqrt(squares / std::size(kMeasured)) < 0.09);
}

TEST_CASE("9.0: clusters run where the parts of the chip have room for them", "[host][cost_model]") {
  struct Row {
    int32_t size, ctas_per_sm, clusters;
  };
  // As cudaOccupancyMaxActiveClusters counted them on an H200, with 220 KB of shared memory and with 110.
  for (const Row& row : {Row{1, 1, 132}, Row{2, 1, 66}, Row{4, 1, 30}, Row{8, 1, 15}, Row{2, 2, 132},
                         Row{4, 2, 62}, Row{8, 2, 30}})
    for (const Machine& machine : {kH100, Machine{132, 66, 30}}) {
      INFO("clusters of " << row.size << ", " << row.ctas_per_sm << " CTAs to an SM");
      CHECK(clusters_at_once(machine, Arch::kSm90, row.size, row.ctas_per_sm) == row.clusters);
    }
  for (int32_t sms = 1; sms <= 300; ++sms)
    for (const int32_t ctas_per_sm : {1, 2, 3})
      for (int32_t size = 1; size <= 8; ++size) {
        INFO(sms << " SMs, clusters of " << size << ", " << ctas_per_sm << " CTAs to an SM");
        const int32_t at_once = clusters_at_once({sms}, Arch::kSm90, size, ctas_per_sm);
        CHECK(at_once * size <= sms * ctas_per_sm);
        // The H200 counted none of size 3 on parts of two SMs, with room for six CTAs.
        CHECK((at_once > 0) == (sms >= size));
        CHECK(clusters_at_once({sms + 1}, Arch::kSm90, size, ctas_per_sm) >= at_once);
      }
}

TEST_CASE("9.0: a machine that is limited has no more CTAs at once than SMs", "[host][cost_model]") {
  for (const Instance& instance : instances(Arch::kSm90))
    for (const int32_t sms : {1, 8, 60, 131}) {
      const int32_t cluster = instance.plan.cluster_size();
      INFO(instance.name << " on " << sms << " SMs");
      CHECK(clusters_at_once({sms, 66, 30, true}, instance.plan) * cluster <= sms);
      CHECK(clusters_at_once({sms, 66, 30}, instance.plan) * cluster <= sms * instance.plan.ctas_per_sm);
    }
}

TEST_CASE("9.0: an instance has no cost where it cannot run", "[host][cost_model]") {
  Cost cost;
  for_all(Arch::kSm90, [&](const Instance& instance, Shape shape) {
    const bool split = instance.plan.tile.split_k > 1;
    const int32_t cluster = instance.plan.cluster_size();
    CHECK_FALSE(cost_of(instance, shape, {cluster - 1, 0, 0, true}, &cost));
    for (const int32_t sms : {16, 60, 132})
      if (cost_of(instance, shape, {sms, 0, 0, true}, &cost)) CHECK((!split || cost.waves == 1));
    for (const int32_t sms : {16, 60, 132, 132 * 20})
      if (cost_of(instance, shape, {sms}, &cost)) {
        const int32_t at_once = clusters_at_once({sms}, instance.plan);
        CHECK(cost.waves * at_once >= cost.tiles);
        CHECK((cost.waves - 1) * at_once < cost.tiles);
        CHECK(std::isfinite(cost.total_us));
      } else {
        CHECK(split);
      }
    shape.grouped = !shape.grouped;
    CHECK_FALSE(cost_of(instance, shape, kH100, &cost));
  });
}

TEST_CASE("9.0: more SMs are never predicted to take longer, and more work never less",
          "[host][cost_model]") {
  for_all(Arch::kSm90, [](const Instance& instance, const Shape& shape) {
    check_more_costs_more(instance, shape, 8, 140);
  });
}

TEST_CASE("9.0: what is expanded, asked for or exchanged costs time", "[host][cost_model]") {
  const auto with = [](double CostConstants::*constant, double factor) {
    CostConstants constants = kH100Costs;
    constants.*constant *= factor;
    return constants;
  };
  for_all(Arch::kSm90, [&](const Instance& instance, Shape shape) {
    Cost usual, other;
    if (!cost_of(instance, shape, kH100, &usual)) return;
    const auto cost = [&](double CostConstants::*constant, double factor) {
      REQUIRE(cost_of(instance, shape, kH100, &other, with(constant, factor)));
      return other;
    };
    CHECK(cost(&CostConstants::expand_weight, 100).tensor_us > usual.tensor_us);
    const Plan& plan = instance.plan;
    CHECK((cost(&CostConstants::expand_bf16, 100).tensor_us > usual.tensor_us) ==
          (plan.a_type == CType::kBf16));
    CHECK((cost(&CostConstants::expand_mxfp4, 100).tensor_us > usual.tensor_us) ==
          (plan.a_type == CType::kFp8));
    const bool expands = plan.packed_a() && !plan.prepared_a();
    CHECK((cost(&CostConstants::expand_activation, 1000).tensor_us > usual.tensor_us) == expands);
    CHECK((cost(&CostConstants::order_activation, 1000).tensor_us > usual.tensor_us) == plan.orders_a());
    CHECK((cost(&CostConstants::pass, 2).total_us > usual.total_us) == plan.prepared_a());
    CHECK(cost(&CostConstants::dram, 0.5).total_us > usual.total_us);
    const bool split = instance.plan.tile.split_k > 1;
    CHECK((cost(&CostConstants::meet, 2).exchange_us > usual.exchange_us) == split);
    CHECK((cost(&CostConstants::fill_apart, 0.01).fill_us > usual.fill_us) == split);
    shape.activation = ActivationKind::kSitu;
    const double situ = cost(&CostConstants::meet, 1).epilogue_us;
    CHECK(situ > usual.epilogue_us);
    shape.d_bits = 64;
    CHECK(cost(&CostConstants::meet, 1).epilogue_us > situ);
  });
}

TEST_CASE("9.0: every constant lies in its range, and an H200 differs in its memory alone",
          "[host][cost_model]") {
  for (const CostRange& range : cost_table(Arch::kSm90).ranges) {
    INFO(range.name);
    for (const CostConstants& constants : {kH100Costs, kH200Costs}) {
      CHECK(constants.*range.constant >= range.low);
      CHECK(constants.*range.constant <= range.high);
    }
    if (range.constant != &CostConstants::dram)
      CHECK(kH100Costs.*range.constant == kH200Costs.*range.constant);
  }
  CHECK(kH200Costs.dram > kH100Costs.dram);
}

TEST_CASE("an H200 is told from an H100 by the rate of its DRAM", "[host][cost_model]") {
  CHECK(&cost_constants(Arch::kSm90, 4814) == &cost_table(Arch::kSm90).with_fast_memory);
  CHECK(cost_constants(Arch::kSm90, 4814).dram == kH200Costs.dram);
  for (const int32_t other : {0, 2039, 3352})
    CHECK(cost_constants(Arch::kSm90, other).dram == kH100Costs.dram);
  for (const int32_t any : {0, 3352, 7672, 100000})
    CHECK(cost_constants(Arch::kSm100, any).dram == kB200Costs.dram);
  // Two rows of large weights take the time of DRAM.
  const Shape shape{2, 28672, 8192};
  Cost h100, h200;
  const Instance& instance = dualgemm::instance(select_instance({Arch::kSm90, CType::kFp16}, shape, kH100));
  Machine fast = kH100;
  fast.memory_gb_s = 4814;
  REQUIRE((cost_of(instance, shape, kH100, &h100) && cost_of(instance, shape, fast, &h200)));
  CHECK(h200.dram_us < h100.dram_us * 0.8);
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  REQUIRE(dualgemm_current_device(&device) ==
          DUALGEMM_STATUS_SUCCESS);  // the simulated B200: 3996 MHz, 7680 bits
  CHECK(device.memory_gb_s == 7672);
}

}  // namespace cost_sm90_test
