// one_product_choice_test.cpp -- the choice of an instance for one product, and what the cost model says of
// it, as properties beside those that hold for two products.

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "bench/sensitivity.h"
#include "host/common/device.h"
#include "host/model/select_instance.h"
#include "shapes.h"
#include "support/catch.hpp"

namespace one_product_choice_test {

using dualgemm_test::address;
using dualgemm_test::kShapes;
using namespace dualgemm;

constexpr CType kATypes[] = {CType::kNvfp4, CType::kBf16, CType::kFp16};
// No activation costs what ReLU does, of which nothing is a special function.
constexpr ActivationKind kNone = ActivationKind::kReglu;

static Machine machine_for(Arch arch) { return {arch == Arch::kSm90 ? 132 : 148}; }

// Calls check(kind) for each architecture, type of A and type of C, plain and general.
template <class Check>
static void for_each_kind(const Check& check) {
  for (const Architecture& architecture : kArchitectures)
    for (const CType a_type : kATypes)
      for (int32_t c_type = 0; c_type <= static_cast<int32_t>(CType::kFp8); ++c_type)
        for (const bool general : {false, true}) {
          const InstanceKind kind{architecture.arch, static_cast<CType>(c_type), general, a_type, 1};
          if (!instances_of(kind, false).empty()) check(kind);
        }
}

// Shapes of models in use, and of their down projections, which have few columns and a long K.
template <class LookAt>
static void for_each_shape(const LookAt& look_at) {
  bench::for_each_shape(look_at);
  for (const auto& [n, k] :
       {std::pair{2880, 2880}, {2048, 14336}, {4096, 14336}, {7168, 2048}, {7168, 18432}})
    for (const int32_t m : {1, 8, 24, 32, 64, 256, 768, 2048}) look_at(Shape{m, n, k});
}

static double lowest_us(InstanceKind kind, Shape shape, const CostConstants* constants = nullptr) {
  shape.c_type = kind.c_type;
  double lowest = std::numeric_limits<double>::infinity();
  for (const auto& [instance, index] : instances_of(kind, shape.grouped)) {
    Cost cost;
    const Machine machine = machine_for(kind.arch);
    if (instance->plan.prepared_a()) continue;
    if (constants ? cost_of(*instance, shape, machine, &cost, *constants)
                  : cost_of(*instance, shape, machine, &cost))
      lowest = std::min(lowest, cost.total_us);
  }
  return lowest;
}

// Arguments of one product of 256 x 4096 outputs, K = 7168.
static dualgemm_args_t linear_args(CType a_type = CType::kNvfp4, CType c_type = CType::kBf16) {
  dualgemm_args_t args = dualgemm_test::with_a(
      static_cast<int32_t>(a_type),
      dualgemm_test::with_output(static_cast<int32_t>(c_type), dualgemm_test::valid_args()));
  args.products = 1;
  args.b2 = args.sfb2 = nullptr;
  args.n = 4096, args.k = 7168;
  args.c = address(uintptr_t{1} << 50);
  return args;
}

static dualgemm_instance_info_t selected(const dualgemm_args_t& args, const dualgemm_device_t& device) {
  return dualgemm_test::info_of(dualgemm_test::selected_id(args, device));
}

static const std::vector<dualgemm_device_t>& b200_and_h100() {
  static const std::vector<dualgemm_device_t> both = {dualgemm_test::b200(), dualgemm_test::h100()};
  return both;
}

// The types of A that launches on a device may have.
static std::vector<CType> types_of_a(const dualgemm_device_t& device) {
  if (device.cc_major != 9) return {CType::kNvfp4};
  return {std::begin(kATypes), std::end(kATypes)};
}

// Of the same tile that holds strictly (the next test). But tiles of one product have twice the columns, and
// its table has no narrower ones: where N is small, or with an A of 16 bits, whose table has fewer, the best
// of one may cost a little more than the best of two. By how much is what was found, not derived.
TEST_CASE("one product hardly ever costs more than two of the same shape", "[host][cost_model][one]") {
  int64_t compared = 0, dearer = 0;
  for_each_kind([&](const InstanceKind& kind) {
    InstanceKind both = kind;
    both.products = 2;
    for_each_shape([&](Shape shape) {
      const double two = lowest_us(both, shape);
      shape.activation = kNone;
      const double one = lowest_us(kind, shape);
      INFO(shape.problems << " x " << shape.m << " x " << shape.n << " x " << shape.k << ", grouped "
                          << shape.grouped << ", A " << static_cast<int>(kind.a_type) << ", C "
                          << static_cast<int>(kind.c_type) << ", general " << kind.general);
      CHECK(one < (kind.a_type == CType::kNvfp4 ? 1.06 : 1.27) * two);
      // Half of the weights, and no less: a launch costs something by itself.
      CHECK(one > two / 2);
      ++compared;
      dearer += one > two && kind.a_type == CType::kNvfp4;
    });
  });
  CHECK(compared > 10000);
  CHECK(dearer < compared / 50);
}

TEST_CASE("of the same tile one product brings and multiplies less than two", "[host][cost_model][one]") {
  int32_t pairs = 0;
  for (const Instance& one : instances()) {
    if (one.plan.mma.products != 1) continue;
    std::string name = one.name;
    name.erase(name.find("_one"), 4);
    for (const Instance& two : instances()) {
      if (two.name != name || two.plan.ctas_per_sm != one.plan.ctas_per_sm) continue;
      ++pairs;
      for (const Shape& shape : kShapes) {
        Cost first, second;
        const Machine machine = machine_for(one.plan.arch);
        if (!cost_of(one, shape, machine, &first) || !cost_of(two, shape, machine, &second)) continue;
        INFO(one.name << " for " << shape.m << " x " << shape.n << " x " << shape.k);
        CHECK(first.tiles == second.tiles);
        CHECK(first.fill_bytes < second.fill_bytes);
        CHECK(first.tensor_us <= second.tensor_us);
        CHECK(first.total_us < second.total_us);
        // Their weights are the half: what both have besides is A and C.
        const double of_one = first.dram_us * static_cast<double>(first.waves * first.k_tiles),
                     of_two = second.dram_us * static_cast<double>(second.waves * second.k_tiles);
        CHECK(of_one < of_two);
      }
    }
  }
  CHECK(pairs > 10);
}

TEST_CASE("the choice for one product is an instance of one product, for its A, C and groups",
          "[host][select_instance][one]") {
  for (const dualgemm_device_t& device : b200_and_h100())
    for (const CType a_type : types_of_a(device))
      for (int32_t c_type = 0; c_type <= DUALGEMM_DTYPE_FP8_E4M3; ++c_type)
        for (int32_t group_mode = 0; group_mode <= DUALGEMM_GROUP_MASKED; ++group_mode)
          for (const int32_t m : {1, 16, 100, 512, 5000}) {
            dualgemm_args_t args = linear_args(a_type, static_cast<CType>(c_type));
            args.m = m;
            args.group_mode = group_mode;
            args.groups = group_mode ? 3 : 0;
            if (group_mode) args.group_rows = address<const int32_t>(0x2'c000'0000);
            const dualgemm_instance_info_t info = selected(args, device);
            INFO(info.name);
            CHECK(info.products == 1);
            CHECK(info.cc_major == device.cc_major);
            CHECK(info.a_dtype == args.a_dtype);
            CHECK(info.grouped == (group_mode != 0));
            CHECK((info.general ? info.c_dtype == -1 : info.c_dtype == c_type));
            args.products = 2;
            args.b2 = address(uintptr_t{1} << 51), args.sfb2 = address(uintptr_t{1} << 52);
            CHECK(selected(args, device).products == 2);
          }
}

TEST_CASE("one product gets a plain instance exactly where it asks for nothing but the product",
          "[host][select_instance][one]") {
  using Change = void (*)(dualgemm_args_t&);
  const std::vector<Change> plain = {[](auto&) {}, [](auto& a) { a.alpha1_dev = address<float>(1 << 20); },
                                     [](auto& a) { a.alpha1 = 3, a.flags = DUALGEMM_FLAG_PDL; }};
  const std::vector<Change> general = {
      [](auto& a) { a.bias1 = address(1 << 20); },
      [](auto& a) { a.a_row_scale = address<float>(1 << 20); },
      [](auto& a) { a.c_row_scale = address<float>(1 << 20); },
      [](auto& a) { a.c_add = address(uintptr_t{1} << 51); },
      [](auto& a) { a.c_add = a.c; },
      [](auto& a) { a.d1 = address(uintptr_t{1} << 51); },
      [](auto& a) { a.amax_out = address<float>(1 << 20); },
      [](auto& a) { a.linear_activation = DUALGEMM_LINEAR_ACTIVATION_SILU; },
      [](auto& a) { a.linear_activation = DUALGEMM_LINEAR_ACTIVATION_RELU2; }};
  for (const dualgemm_device_t& device : b200_and_h100())
    for (const auto* changes : {&plain, &general})
      for (const Change change : *changes) {
        dualgemm_args_t args = linear_args();
        change(args);
        const dualgemm_instance_info_t info = selected(args, device);
        INFO((changes == &plain ? "plain: " : "general: ") << info.name);
        CHECK(info.general == (changes == &general));
        CHECK(info.products == 1);
      }
}

TEST_CASE("the caller's wishes reach the choice of one product", "[host][select_instance][one]") {
  for (const dualgemm_device_t& device : b200_and_h100()) {
    dualgemm_args_t args = linear_args();
    args.n = 7168, args.k = 2048;
    SECTION("BATCH_INVARIANT splits no K, and ignores the rows where tiles could differ " +
            std::to_string(device.cc_major)) {
      const bool agree = dualgemm::served_architecture(device)->tiles_agree;
      std::set<std::string> without, with;
      for (const int32_t m : {1, 2, 17, 128, 129, 257, 512, 8192})
        for (const int32_t batch : {1, 8}) {
          args.m = m, args.batch = batch;
          args.flags = 0;
          without.insert(selected(args, device).name);
          args.flags = DUALGEMM_FLAG_BATCH_INVARIANT;
          const dualgemm_instance_info_t info = selected(args, device);
          CHECK(info.split_k == 1);
          with.insert(info.name);
        }
      CHECK((agree || with.size() == 1));
      CHECK(without.size() > 1);  // or the flag would change nothing here
      with.clear();
      args.batch = 0;
      args.group_mode = DUALGEMM_GROUP_MASKED;
      args.group_rows = address<const int32_t>(0x2'c000'0000);
      for (const int32_t groups : {1, 3, 64})
        for (const int32_t rows : {0, 1, 100}) {
          args.groups = groups, args.expected_rows = rows;
          with.insert(selected(args, device).name);
        }
      CHECK((agree || with.size() == 1));
    }
    SECTION("max_sms counts as the size of the machine " + std::to_string(device.cc_major)) {
      std::set<std::string> names;
      for (const int32_t sms : {1, 2, 3, 8, 60, 100})
        for (const int32_t m : {1, 16, 256, 4096}) {
          args.m = m;
          args.max_sms = sms;
          const dualgemm_instance_info_t limited = selected(args, device);
          INFO(limited.name << " for " << m << " rows on " << sms << " SMs");
          names.insert(limited.name);
          CHECK(limited.cta_group * limited.split_k <= sms);
          if (limited.split_k > 1) {
            const int64_t tiles = int64_t{(m + limited.tile_m - 1) / limited.tile_m} *
                                  ((args.n + limited.tile_n - 1) / limited.tile_n);
            CHECK(tiles * limited.cta_group * limited.split_k <= sms);
          }
        }
      CHECK(names.size() > 2);
    }
  }
}

// Each request reaches the cost model: the choice is that for the shape which has it.
TEST_CASE("what one product asks of its epilogue counts in the choice", "[host][select_instance][one]") {
  struct Request {
    const char* name;
    void (*ask)(dualgemm_args_t&);
    void (*of)(Shape&);
  };
  const Request requests[] = {
      {"SiLU", [](auto& a) { a.linear_activation = DUALGEMM_LINEAR_ACTIVATION_SILU; },
       [](Shape& s) { s.activation = ActivationKind::kSwiglu; }},
      {"GELU by erf", [](auto& a) { a.linear_activation = DUALGEMM_LINEAR_ACTIVATION_GELU_ERF; },
       [](Shape& s) { s.activation = ActivationKind::kGegluErf; }},
      {"a bias", [](auto& a) { a.bias1 = address(1 << 20); }, [](Shape& s) { s.biases = 1; }},
      {"c_add", [](auto& a) { a.c_add = address(uintptr_t{1} << 51); }, [](Shape& s) { s.c_add = true; }},
      {"d1", [](auto& a) { a.d1 = address(uintptr_t{1} << 51), a.d_dtype = DUALGEMM_DTYPE_FP32; },
       [](Shape& s) { s.d_bits = 32; }}};
  const InstanceKind kind{Arch::kSm100, CType::kFp16, true, CType::kNvfp4, 1};
  for (const Request& request : requests) {
    INFO(request.name);
    int32_t others = 0;
    for (const auto& [n, k] : {std::pair{192, 1024}, {7168, 2048}, {8192, 3584}, {4096, 14336}, {2880, 2880}})
      for (const int32_t m : {1, 16, 64, 128, 192, 256, 384, 512, 767, 1024, 2000, 4096, 8192}) {
        dualgemm_args_t args = linear_args(CType::kNvfp4, CType::kFp16);
        args.m = m, args.n = n, args.k = k;
        request.ask(args);
        Shape plain{m, n, k};
        plain.activation = kNone;
        Shape shape = plain;
        request.of(shape);
        const int32_t id = dualgemm_test::selected_id(args);
        INFO(m << " x " << n << " x " << k);
        CHECK(id - 1 == select_instance(kind, shape, machine_for(Arch::kSm100)));
        others += id - 1 != select_instance(kind, plain, machine_for(Arch::kSm100));
      }
    CHECK(others > 0);
  }
}

TEST_CASE("an addend costs the bytes of C once more, and its instructions", "[host][cost_model][one]") {
  int32_t looked_at = 0;
  for (const Instance& instance : instances()) {
    if (instance.plan.mma.products != 1 || !instance.epilogue.general) continue;
    for (Shape shape : kShapes) {
      const Machine machine = machine_for(instance.plan.arch);
      const CostConstants& constants = cost_table(instance.plan.arch).constants;
      for (const auto& [c_type, bytes] : {std::pair{CType::kBf16, 2}, {CType::kFp32, 4}}) {
        shape.c_type = c_type;
        shape.c_add = false;
        Cost without, with;
        if (!cost_of(instance, shape, machine, &without)) continue;
        shape.c_add = true;
        REQUIRE(cost_of(instance, shape, machine, &with));
        INFO(instance.name << " for " << shape.m << " x " << shape.n << " x " << shape.k);
        const double read = (with.dram_us - without.dram_us) * constants.dram *
                            static_cast<double>(with.waves * with.k_tiles);
        const double elements = static_cast<double>(shape.problems) * shape.m * shape.n;
        CHECK(std::fabs(read / (bytes * elements) - 1) < 1e-6);
        CHECK(with.epilogue_us > without.epilogue_us);
        CHECK(with.total_us > without.total_us);
        ++looked_at;
      }
    }
  }
  CHECK(looked_at > 20);
}

// What an H200's faster memory would choose differently costs little, and so does a constant at either end of
// what its sources allow.
TEST_CASE("the choice of one product hardly depends on where a constant lies",
          "[host][select_instance][one]") {
  for (const Architecture& architecture : kArchitectures) {
    const InstanceKind kind{architecture.arch, CType::kFp16, false, CType::kNvfp4, 1};
    const CostTable& table = cost_table(kind.arch);
    const auto check = [&](const std::string& what, const CostConstants& constants, double close,
                           double worst) {
      bench::Regret all{};
      for_each_shape([&](Shape shape) {
        shape.activation = kNone;
        const int32_t index = select_instance(kind, shape, machine_for(kind.arch));
        REQUIRE(index >= 0);
        Cost own;
        REQUIRE(cost_of(instance(index), shape, machine_for(kind.arch), &own, constants));
        const double excess = own.total_us / lowest_us(kind, shape, &constants) - 1;
        ++all.shapes;
        all.close += excess <= 0.02 + 1e-12;
        all.worst = std::max(all.worst, excess);
      });
      INFO(what << ": " << all.close << " of " << all.shapes << " within 2 %, the worst " << 100 * all.worst
                << " % slower");
      CHECK(all.close >= close * all.shapes);
      CHECK(all.worst < worst);
    };
    check("as they are", table.constants, 1, 0.02 + 1e-9);
    for (const CostRange& range : table.ranges)
      for (const double value : {range.low, range.high}) {
        CostConstants constants = table.constants;
        constants.*range.constant = value;
        check(range.name, constants, 0.8, 0.3);
      }
  }
}

TEST_CASE("every plain instance of one product is chosen for something", "[host][select_instance][one]") {
  for (const Architecture& architecture : kArchitectures)
    for (const CType a_type : {CType::kNvfp4, CType::kFp16}) {
      const InstanceKind kind{architecture.arch, CType::kFp16, false, a_type, 1};
      std::set<int32_t> seen;
      for_each_shape([&](Shape shape) {
        shape.activation = kNone;
        for (const Allowed& allowed :
             {Allowed{}, Allowed{.prepared_a = true}, Allowed{.prepared_a = true, .stream_k = true}})
          seen.insert(select_instance(kind, shape, machine_for(kind.arch), allowed));
      });
      for (const bool grouped : {false, true})
        for (const auto& [instance, index] : instances_of(kind, grouped)) {
          INFO(instance->name);
          CHECK(seen.count(index) == 1);
        }
    }
}

}  // namespace one_product_choice_test
