// calibrate_test.cpp -- the fit of the cost model to times of instances. The times are those of the model
// itself, with constants that the test chooses, so that it knows what a fit can reach.
#include "bench/calibrate.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "bench/report_json.h"
#include "bench/results.h"
#include "host/model/cost_model.h"
#include "support/catch.hpp"

namespace calibrate_test {

using bench::InstanceTime;
using bench::Result;
using bench::Timing;
using namespace dualgemm;
using dualgemm_test::contains;
using nlohmann::json;

constexpr dualgemm::Machine kMachine{132};
const dualgemm::CostTable& kTable = dualgemm::cost_table(Arch::kSm90);
// From launch to launch an H200 takes so much less in a graph, whose times are fitted, than on a stream, for
// which the model is made.
constexpr double kGraphSaves = 1.03;

// These are the constants that a calibration prints.
const std::map<std::string, double CostConstants::*> kFitted = {
    {"dram", &CostConstants::dram},
    {"fill_per_sm", &CostConstants::fill_per_sm},
    {"fixed", &CostConstants::fixed},
    {"expand_weight", &CostConstants::expand_weight},
    {"expand_activation", &CostConstants::expand_activation},
    {"beside", &CostConstants::beside},
    {"chain", &CostConstants::chain},
    {"round", &CostConstants::round},
    {"turn", &CostConstants::turn},
    {"finish", &CostConstants::finish},
    {"meet", &CostConstants::meet},
    {"pass", &CostConstants::pass}};

static const dualgemm::CostRange& range_of(double CostConstants::*constant) {
  return *std::find_if(kTable.ranges.begin(), kTable.ranges.end(),
                       [&](const dualgemm::CostRange& range) { return range.constant == constant; });
}

// Returns the constants in use, but for those that are fitted: `part` of the way up their ranges, where 0 and
// 1 are the ends.
static CostConstants constants_at(double part) {
  CostConstants constants = kTable.constants;
  for (const auto& [name, constant] : kFitted) {
    const dualgemm::CostRange& range = range_of(constant);
    constants.*constant = range.low + part * (range.high - range.low);
  }
  return constants;
}

static InstanceTime time_of(int32_t id, double us) {
  const double in_graph = us - kGraphSaves;
  return {id, {}, Timing{us, us, us}, Timing{in_graph, in_graph, in_graph}};
}
static double us(const InstanceTime& time) { return time.stream->median_us; }

// Returns what instances take for a shape by the model, the fastest first.
static std::vector<InstanceTime> modelled_times(const bench::Shape& shape, const CostConstants& constants,
                                                const std::function<bool(const Instance&)>& taken) {
  dualgemm::Shape modelled{shape.m, shape.n, shape.k};
  modelled.problems = shape.batch;
  modelled.c_type = dualgemm::CType::kFp16;
  std::vector<InstanceTime> times;
  dualgemm::Cost cost;
  for (int32_t id = 1; id <= dualgemm::instance_count(); ++id)
    if (const Instance& instance = dualgemm::instance(id - 1);
        taken(instance) && cost_of(instance, modelled, kMachine, &cost, constants))
      times.push_back(time_of(id, cost.total_us));
  std::sort(times.begin(), times.end(),
            [](const InstanceTime& x, const InstanceTime& y) { return us(x) < us(y); });
  return times;
}

static bool is_plain_fp16(const Instance& instance) {
  return instance.plan.arch == Arch::kSm90 && instance.plan.packed_a() && !instance.epilogue.general &&
         instance.epilogue.output(dualgemm::CType::kFp16);
}

// Returns rows as a run with --every-instance on `make calibrate`'s shapes and one batch would have them, if
// the model were right.
static std::vector<Result> modelled_results(const CostConstants& constants) {
  std::vector<bench::Shape> shapes;
  for (const bench::Suite& suite : bench::suites())
    if (suite.name == "hopper") shapes = suite.shapes;
  shapes.push_back({64, 2048, 2880, "", 4});
  std::vector<Result> results;
  for (const bench::Shape& shape : shapes)
    results.emplace_back(Result{shape}).instances = modelled_times(shape, constants, is_plain_fp16);
  return results;
}

static json report_of(const std::vector<Result>& results) {
  const bench::Machine machine{"a GPU", kMachine.sms};
  json report = report_json({bench::Times::kMeasured, "0123abc", "fp16", "SWIGLU", 5, 16}, machine, {});
  report["date"] = "one day";
  report["results"] = json::array();
  for (const Result& result : results) report["results"].push_back(to_json(result, machine));
  return report;
}

// What a calibration prints.
struct Distance {
  double times, choice;  // percent
};
struct Calibration {
  std::string text;
  Distance before, after;
  std::map<std::string, std::pair<double, double>> constants;  // before and after
  std::vector<std::string> bad_choices;
};

static Calibration calibrated(const std::vector<Result>& results) {
  Calibration out{bench::calibration(report_of(results)), {}, {}, {}, {}};
  INFO(out.text);
  const auto distance = [&](const std::string& when) {
    std::smatch found;
    REQUIRE(std::regex_search(
        out.text, found,
        std::regex(when + R"(: +(\S+) % from times up to 1.5 of the fastest, chosen (\S+) % over the)")));
    return Distance{std::stod(found[1]), std::stod(found[2])};
  };
  out.before = distance("before");
  out.after = distance("after");
  const std::regex constant(R"(\n  (\w+) +(\S+) -> +(\S+))"), choice(R"(\n  (\S.* us, but .* us)(?=\n))");
  const auto each = [&](const std::regex& pattern, const std::function<void(const std::smatch&)>& take) {
    for (std::sregex_iterator found(out.text.begin(), out.text.end(), pattern), end; found != end; ++found)
      take(*found);
  };
  each(constant, [&](const std::smatch& x) { out.constants[x[1]] = {std::stod(x[2]), std::stod(x[3])}; });
  each(choice, [&](const std::smatch& x) { out.bad_choices.push_back(x[1]); });
  return out;
}

TEST_CASE("a fit to times of the model finds constants that give them", "[bench][calibrate]") {
  // The last step that the fit tries is 0.6 % of one constant. Each part of a modelled time is proportional
  // to one of these, to the inverse of one, or to none: such a step moves no time by more.
  constexpr double kLastStep = 0.6;
  for (const double part : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    const Calibration calibration = calibrated(modelled_results(constants_at(part)));
    INFO("constants " << part << " up their ranges: " << calibration.text);
    CHECK(calibration.before.times > 5 * kLastStep);
    CHECK(calibration.after.times <= kLastStep);
    CHECK(calibration.after.choice <= kLastStep);
    CHECK(calibration.bad_choices.empty());
    REQUIRE(calibration.constants.size() == kFitted.size());
    for (const auto& [name, constant] : kFitted)
      CHECK(calibration.constants.at(name).first == Approx(kTable.constants.*constant).epsilon(1e-3));
  }
}

TEST_CASE("a fit to times of the constants in use leaves them as they are", "[bench][calibrate]") {
  const Calibration calibration = calibrated(modelled_results(kTable.constants));
  CHECK_THAT(calibration.text, contains("a GPU, driver unknown, one day: 51 problems\n"));
  for (const Distance& distance : {calibration.before, calibration.after}) {
    CHECK(distance.times == 0);
    CHECK(distance.choice == 0);
  }
  for (const auto& [name, values] : calibration.constants) CHECK(values.first == values.second);
}

TEST_CASE("a fit goes to the ends of the ranges and no farther", "[bench][calibrate]") {
  // A tenth of a range below its low end, and above its high one.
  for (const double part : {-0.1, 1.1}) {
    const Calibration calibration = calibrated(modelled_results(constants_at(part)));
    INFO(calibration.text);
    const auto fitted = [&](const char* name) { return calibration.constants.at(name).second; };
    for (const auto& [name, constant] : kFitted) {
      INFO(name);
      CHECK(fitted(name.c_str()) >= Approx(range_of(constant).low).epsilon(1e-3));
      CHECK(fitted(name.c_str()) <= Approx(range_of(constant).high).epsilon(1e-3));
    }
    const dualgemm::CostRange& fixed = range_of(&CostConstants::fixed);
    CHECK(fitted("fixed") == Approx(part < 0 ? fixed.low : fixed.high).epsilon(1e-3));
  }
}

TEST_CASE("a calibration goes by dense rows and plain instances of 9.0 alone", "[bench][calibrate]") {
  std::vector<Result> results = modelled_results(constants_at(0.5));
  const Calibration plain = calibrated(results);
  const auto faster = [](std::vector<InstanceTime> times) {
    for (InstanceTime& time : times) time = time_of(time.id, us(time) / 10);
    return times;
  };
  for (Result& result : results) {
    const auto add = [&](const std::vector<InstanceTime>& times) {
      REQUIRE(!times.empty());
      result.instances.insert(result.instances.end(), times.begin(), times.end());
    };
    const auto times_of = [&](const std::function<bool(const Instance&)>& taken) {
      return faster(modelled_times(result.shape, kTable.constants, taken));
    };
    add(times_of([](const Instance& i) { return i.plan.arch == Arch::kSm90 && i.epilogue.general; }));
    std::vector<InstanceTime> refused = faster(result.instances);
    for (InstanceTime& time : refused) time.error = "wrong";
    add(refused);
  }
  Result grouped{bench::groups(DUALGEMM_GROUP_MASKED, {8, 16}, 2048, 7168, "")};
  grouped.instances = faster(results.front().instances);
  results.push_back(grouped);
  results.emplace_back(Result{{8, 2048, 7168, ""}}).error = "refused";
  CHECK(calibrated(results).text == plain.text);
}

TEST_CASE("a calibration says how far the times are, and what a choice costs", "[bench][calibrate]") {
  std::vector<Result> results = {Result{{16, 4096, 7168, ""}}, Result{{256, 2880, 2880, ""}}};
  for (Result& result : results) {
    result.instances = modelled_times(result.shape, kTable.constants, is_plain_fp16);
    result.instances.resize(3);
  }
  // The model says that the first is the fastest. In the second row another takes 0.8 of its time, and the
  // third takes so long that nobody asks what the model says of it.
  std::vector<InstanceTime>& times = results[1].instances;
  const double chosen = us(times[0]), error = std::log(us(times[1]) / (0.8 * chosen));
  times[1] = time_of(times[1].id, 0.8 * chosen);
  times[2] = time_of(times[2].id, 1.6 * 0.8 * chosen);
  double near = 2;
  for (const InstanceTime& time : results[0].instances)
    if (us(time) < 1.5 * us(results[0].instances[0])) ++near;
  const Calibration calibration = calibrated(results);
  INFO(calibration.text);
  CHECK(calibration.before.times == Approx(100 * std::sqrt(error * error / near)).margin(0.051));
  CHECK(calibration.before.choice == Approx(100 * (std::sqrt(1 / 0.8) - 1)).margin(0.0051));
}

TEST_CASE("a fit hardly goes by what is far from the fastest", "[bench][calibrate]") {
  // Times of more than three times the fastest are doubled. The square of an error of log 2 counts with a
  // weight of at most 6^-3 there, and errors of times up to 1.5 of the fastest with one of at least 1.5^-3: a
  // fit that makes the sum no larger than it was keeps these within this.
  std::vector<Result> results = modelled_results(kTable.constants);
  double far = 0, near = 0;
  for (Result& result : results) {
    const double least = us(result.instances.front());
    for (InstanceTime& time : result.instances)
      if (us(time) > 3 * least) {
        time = time_of(time.id, 2 * us(time));
        ++far;
      } else if (us(time) < 1.5 * least) {
        ++near;
      }
  }
  const Calibration calibration = calibrated(results);
  INFO(calibration.text);
  CHECK(calibration.before.times == 0);
  CHECK(calibration.after.times <= 100 * std::log(2) * std::sqrt(std::pow(1.5 / 6, 3) * far / near));
}

TEST_CASE("a choice that costs more than a few percent is named", "[bench][calibrate]") {
  std::vector<Result> results = modelled_results(kTable.constants);
  // The model's choice is taken for the slower of two: by 3 % in one row, by 10 % in another.
  const auto overtake = [&](size_t row, double factor) -> const std::vector<InstanceTime>& {
    std::vector<InstanceTime>& times = results.at(row).instances;
    times[1] = time_of(times[1].id, us(times[0]) / factor);
    return times;
  };
  overtake(3, 1.03);
  const std::vector<InstanceTime>& times = overtake(14, 1.1);
  const bench::Shape& shape = results[14].shape;
  const Calibration calibration = calibrated(results);
  INFO(calibration.text);
  char named[160];
  std::snprintf(named, sizeof named, "%d x %d x %d: %s %.1f us, but %s %.1f us", shape.m, shape.n, shape.k,
                times[0].name(), us(times[0]), times[1].name(), us(times[1]));
  CHECK(calibration.bad_choices == std::vector<std::string>{named});
}

TEST_CASE("a report without times of instances is refused", "[bench][calibrate]") {
  const auto is_refused = [](const std::vector<Result>& results) {
    CHECK_THROWS_WITH(bench::calibration(report_of(results)),
                      "--calibrate: the report has no times of instances for 9.0");
  };
  is_refused({});
  Result result{{16, 4096, 7168, ""}};
  is_refused({result});
  const auto only = [&](const std::function<bool(const Instance&)>& taken) {
    Result row = result;
    for (int32_t id = 1; id <= dualgemm::instance_count(); ++id)
      if (taken(dualgemm::instance(id - 1))) row.instances.push_back(time_of(id, 10));
    REQUIRE(!row.instances.empty());
    is_refused({row});
  };
  only([](const Instance& i) { return i.plan.arch == Arch::kSm100; });
  only([](const Instance& i) { return i.plan.arch == Arch::kSm90 && i.epilogue.general; });
}

}  // namespace calibrate_test
