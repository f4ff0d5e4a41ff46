// results_test.cpp -- the rows of the benchmark, the tables that show them, and the reports that keep them.
#include "bench/results.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/compare.h"
#include "bench/nvml.h"
#include "bench/report_json.h"
#include "bench/tables.h"
#include "support/catch.hpp"

namespace results_test {

using namespace bench;
using dualgemm_test::contains;
using nlohmann::json;

static int widest(const std::string& text) {
  int most = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) most = std::max(most, static_cast<int>(line.size()));
  return most;
}

static Result described(const Shape& shape) {
  Result result{shape};
  describe(&result, DUALGEMM_DTYPE_FP16, bench::described_b200());
  return result;
}

// The same as a GPU might give it, with a baseline, large numbers and long ones.
static Result timed(const Shape& shape, double us) {
  Result result = described(shape);
  result.input_sets = 50;
  result.verified = true;
  result.stream = result.graph = bench::Timing{us, us * 0.97, us * 1.21};
  if (!shape.grouped())
    for (const int gemms : {1, 2})
      result.baselines.push_back({{bench::OperandFormat::kBf16, gemms},
                                  {3 * us / gemms, 2 * us, 4 * us},
                                  {2.9 * us, 2 * us, 4 * us}});
  else result.no_baseline = "cuBLASLt is not here";
  return result;
}

static json report_of(const std::vector<Result>& results, Times times = Times::kMeasured,
                      const std::string& device = "a GPU") {
  bench::Machine machine = bench::described_machine();
  machine.name = device;
  json report = report_json({times, "0123abc", "fp16", "SWIGLU", 20, 1000}, machine, {});
  report["results"] = json::array();
  for (const Result& result : results) report["results"].push_back(to_json(result, machine));
  return report;
}

// Writes the report to a file, and reads it as --compare does.
static json read_back(const json& report) {
  const auto path = std::filesystem::temp_directory_path() / ("bench_report_" + std::to_string(getpid()));
  std::ofstream(path) << bench::report_text(report);
  try {
    const json read = bench::read_report(path.string());
    std::filesystem::remove(path);
    return read;
  } catch (...) {
    std::filesystem::remove(path);
    throw;
  }
}

TEST_CASE("no table of any suite is wider than 100 columns", "[bench]") {
  std::vector<std::vector<Shape>> runs;
  std::vector<Shape> all;
  for (const bench::Suite& suite : bench::suites()) {
    runs.push_back(suite.shapes);
    all.insert(all.end(), suite.shapes.begin(), suite.shapes.end());
  }
  runs.push_back(all);
  runs.push_back({bench::parse_shape("offsets:1000~100000x16384x8192"), bench::parse_shape("1x8x32")});
  for (const std::vector<Shape>& shapes : runs)
    for (const Times times : {Times::kModelled, Times::kMeasured, Times::kBaseline, Times::kVerified})
      for (const double us : {9.87, 98.76, 987.6, 98765.4}) {
        const bench::Report report(times, bench::described_machine(), shapes);
        std::vector<Result> results;
        std::string text = report.heading();
        for (const Shape& shape : shapes) {
          results.push_back(timed(shape, us));
          text += report.row(results.back());
        }
        text += report.legend(results);
        INFO(text);
        REQUIRE(widest(text) <= 100);
        for (const Shape& shape : shapes)  // and each of them is there
          if (times != Times::kBaseline || !shape.grouped())
            REQUIRE_THAT(text, contains(std::to_string(shape.n) + "x" + std::to_string(shape.k)));
      }
}

TEST_CASE("the heading says whether times are modelled or measured, and on what", "[bench]") {
  const std::vector<Shape> shapes = {bench::parse_shape("256x4096x7168")};
  const auto heading = [&](Times times) {
    return bench::Report(times, bench::described_machine(), shapes).heading();
  };
  CHECK_THAT(heading(Times::kModelled), contains("MODELLED, not measured") && contains("148 SMs"));
  CHECK_THAT(heading(Times::kMeasured), contains("MEASURED") && contains("148 SMs"));
  CHECK_THAT(heading(Times::kBaseline), contains("MEASURED, the baseline alone"));
  CHECK_THAT(heading(Times::kVerified), contains("not timed"));
}

TEST_CASE("a shape that goes wrong says why in its row, and the others follow", "[bench]") {
  const std::vector<Shape> shapes = {bench::parse_shape("256x4096x7168"), bench::parse_shape("256x4x7168"),
                                     bench::parse_shape("16x2048x4096"), bench::parse_shape("8x2048x4096")};
  const bench::Report report(Times::kModelled, bench::described_machine(), shapes);
  std::string shown;
  const std::vector<Result> results = bench::run_all<Result>(
      shapes,
      [](Result* result) {
        describe(result, DUALGEMM_DTYPE_FP16, bench::described_b200());
        if (result->shape.m == 16) throw std::runtime_error("wrong: C[0][0] = 1, expected 2");
      },
      [&](const Result& result) { shown += report.row(result); });
  REQUIRE(results.size() == shapes.size());
  for (size_t i = 0; i < shapes.size(); ++i) CHECK(results[i].error.empty() == (i == 0 || i == 3));
  CHECK_THAT(results[1].error, contains("n=4"));
  CHECK_THAT(shown, contains("256x4x7168: FAILED: ") && contains("16x2048x4096: FAILED: wrong: C[0][0]") &&
                        contains("\n8x2048x4096"));
  const json row = to_json(results[1], bench::described_machine());
  CHECK(row.at("error") == results[1].error);
  CHECK(!row.contains("us"));
}

TEST_CASE("a report has its schema, its origin and its circumstances", "[bench]") {
  bench::GpuState state;
  const std::vector<Result> results = {timed({256, 4096, 7168, "one"}, 12.5)};
  json report = report_of(results);
  CHECK(report.at("schema") == bench::kJsonSchema);
  const std::string version = report.at("library").at("version");
  CHECK(report.at("library").at("build").get<std::string>().find("dualgemm " + version + ",") == 0);
  CHECK(report.at("library").at("git") == "0123abc");
  CHECK(report.at("times") == "measured");
  CHECK_THAT(report.at("date").get<std::string>(),
             Catch::Matchers::Matches(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)"));
  for (const char* field :
       {"driver", "sm_mhz", "memory_mhz", "sm_most_mhz", "memory_most_mhz", "power_limit_w"})
    CHECK(report.at("device").at(field).is_null());  // no GPU was asked
  state.driver = "580.1";
  state.sm_mhz = 1965;
  state.power_limit_w = 700;
  report = report_json({Times::kModelled, "unknown", "bf16", "GLU", 1, 4}, bench::described_machine(), state);
  CHECK(report.at("device").at("driver") == "580.1");
  CHECK(report.at("device").at("sm_mhz") == 1965);
  CHECK(report.at("device").at("power_limit_w") == 700.0);
  CHECK(report.at("published").size() == 9);
}

TEST_CASE("the text of a report has a line for each field, result and published time", "[bench]") {
  const json report = report_of({timed({256, 4096, 7168, "one"}, 12.5), timed({16, 4096, 7168, "two"}, 9.5)});
  const std::string text = bench::report_text(report);
  CHECK(json::parse(text) == report);
  std::istringstream lines(text);
  size_t entries = 0, others = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == ',') line.pop_back();
    const json entry = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (entry.is_discarded()) {
      ++others;
      continue;
    }
    ++entries;
    CHECK((entry == report["results"][0] || entry == report["results"][1] || entry.contains("kernel")));
  }
  CHECK(entries == 2 + report.at("published").size());
  CHECK(others == report.size() + 4);  // the outer brackets, and the closing ones of two lists
}

TEST_CASE("a report without results is JSON", "[bench]") {
  const json report = report_of({});
  CHECK(json::parse(bench::report_text(report)) == report);
}

TEST_CASE("a row of a report has its times, its rates and the parts of a launch", "[bench]") {
  for (const bench::Suite& suite : bench::suites())
    for (const Shape& shape : suite.shapes) {
      const json modelled = to_json(described(shape), bench::described_machine());
      INFO(modelled.dump());
      const json& m = modelled.at("modelled");
      CHECK(modelled.at("us") == m.at("us"));
      CHECK((m.at("low_us") <= m.at("us") && m.at("us") <= m.at("high_us")));
      double sum = 0;
      for (const json& part : m.at("parts_us")) {
        CHECK(part.get<double>() >= -1e-9);
        sum += part.get<double>();
      }
      CHECK(std::fabs(sum - m.at("us").get<double>()) < 1e-9 * sum);
      CHECK(!modelled.contains("stream"));
    }
  const json row = to_json(timed({256, 4096, 7168, "one"}, 12.5), bench::described_machine());
  CHECK(row.at("us") == 12.5);
  CHECK(row.at("stream").at("p90_us") == 12.5 * 1.21);
  CHECK(row.at("speed_up") == 1.5);  // over two GEMMs, the faster way
  CHECK(std::fabs(row.at("tflop_per_s").get<double>() - 4.0 * 256 * 4096 * 7168 / 12.5e-6 * 1e-12) < 1e-6);
  CHECK(row.at("baselines").size() == 2);
}

TEST_CASE("two reports are compared shape by shape", "[bench]") {
  const Shape one{256, 4096, 7168, "one"}, two{512, 4096, 7168, "two"}, three{1, 2048, 7168, "three"};
  const Shape offsets = bench::parse_shape("offsets:40,0,248x4096x1536");
  const json old_report = report_of({timed(one, 10), timed(two, 20), timed(offsets, 40)});
  const json new_report = report_of({timed(one, 11), timed(offsets, 30), timed(three, 5)});
  const std::string text = bench::comparison(read_back(old_report), new_report);
  INFO(text);
  CHECK(widest(text) <= 100);
  CHECK_THAT(text, contains("256x4096x7168                     10.00     11.00     1.100"));
  CHECK_THAT(text, contains("0.750") && contains("2 of 3 shapes now and of 3 then"));
  CHECK_THAT(text, !contains("1x2048x7168") && !contains("512x4096x7168") && !contains("another device"));
  // The same rows of groups in another order are another problem.
  const json others = report_of({timed(bench::parse_shape("offsets:0,40,248x4096x1536"), 30)});
  CHECK_THAT(bench::comparison(old_report, others), contains("0 of 1 shapes"));
}

TEST_CASE("what does not compare is refused, another device is noted", "[bench]") {
  const std::vector<Result> results = {timed({256, 4096, 7168, "one"}, 10)};
  const json report = report_of(results);
  json other = report;
  other["schema"] = bench::kJsonSchema + 1;
  CHECK_THROWS_WITH(read_back(other), contains("has schema 2, this program reads and writes 1"));
  CHECK_THROWS_WITH(read_back(json::array()), contains("is no report"));
  CHECK_THROWS_WITH(bench::read_report("/nonexistent/report.json"), contains("cannot read /nonexistent"));
  CHECK_NOTHROW(bench::check_comparable(report, report));
  CHECK_THROWS_WITH(bench::check_comparable(report_of(results, Times::kModelled), report),
                    contains("times was \"modelled\", and is \"measured\" now"));
  other = report;
  other.erase("a_dtype");  // as reports were that knew NVFP4 alone
  CHECK_NOTHROW(bench::check_comparable(other, report));
  other["a_dtype"] = "bf16";
  CHECK_THROWS_WITH(bench::check_comparable(other, report),
                    contains("a_dtype was \"bf16\", and is \"nvfp4\" now"));
  other = report;
  other["dtype"] = "bf16";
  CHECK_THROWS_WITH(bench::check_comparable(other, report), contains("dtype was \"bf16\""));
  const json elsewhere = report_of(results, Times::kMeasured, "another GPU");
  CHECK_THAT(bench::comparison(elsewhere, report),
             contains("another device! It was another GPU, and is a GPU now"));
}

TEST_CASE("results of the same run are kept, but for errors, and of another run refused", "[bench]") {
  Result wrong = timed({1, 2048, 7168, "three"}, 5);
  wrong.error = "wrong: C[0][0] = 1, expected 2";
  const json report = report_of({timed({256, 4096, 7168, "one"}, 10), wrong});
  const auto path = std::filesystem::temp_directory_path() / ("bench_kept_" + std::to_string(getpid()));
  const auto kept = [&](const json& old_report) {
    std::ofstream(path) << bench::report_text(old_report);
    return bench::kept_results({"/nonexistent/report.json", path.string()}, report);
  };
  const std::map<std::string, json> rows = kept(report);
  CHECK(rows.size() == 1);
  CHECK(rows.at(bench::problem_of(report["results"][0])) == report["results"][0]);
  CHECK(bench::kept_results({"/nonexistent/report.json"}, report).empty());
  for (const char* field :
       {"/repeats", "/samples", "/library/git", "/library/build", "/device/name", "/dtype"}) {
    json other = report;
    other[json::json_pointer(field)] = "other";
    CHECK_THROWS_WITH(kept(other), contains(std::string(field).substr(1)) && contains("\"other\""));
  }
  std::filesystem::remove(path);
}

TEST_CASE("a shape that the power limit slowed down is named below the table", "[bench]") {
  using bench::PowerReading;
  const auto share = [](const std::optional<PowerReading>& before, const std::optional<PowerReading>& after) {
    return bench::power_limited_share(before, after);
  };
  CHECK(share(PowerReading{1000, 5000}, PowerReading{3000, 505000}) == 0.25);  // 500 of 2,000 us
  CHECK(share(PowerReading{1000, 5000}, PowerReading{3000, 5000}) == 0.0);
  CHECK(!share({}, PowerReading{3000, 5000}));
  CHECK(!share(PowerReading{1000, 5000}, {}));
  CHECK(!share(PowerReading{1000, 5000}, PowerReading{1000, 5000}));

  std::vector<Result> results = {timed({256, 4096, 7168, ""}, 12), timed({512, 4096, 7168, ""}, 16)};
  results[1].power_limited = 0.25;
  const bench::Report report(Times::kMeasured, bench::described_machine(),
                             {results[0].shape, results[1].shape});
  CHECK_THAT(report.legend(results),
             contains("512x4096x7168: the power limit held the clocks down for 25 %") &&
                 !contains("256x4096x7168: the power"));
  CHECK(to_json(results[1], bench::described_machine()).at("power_limited") == 0.25);
  CHECK(!to_json(results[0], bench::described_machine()).contains("power_limited"));
}

// What every device can take that has a baseline at all.
const std::string kDense = "fp16, 1 GEMM; fp16, 2 GEMMs; bf16, 1 GEMM; bf16, 2 GEMMs; ";

TEST_CASE("the ways of the baseline are those that a device can take", "[bench]") {
  bench::lt::Library library;
  library.version = [] { return size_t{130000}; };
  dualgemm_device_t device = bench::described_b200();
  const auto ways = [&](const char* shape) {
    std::string unused, text;
    for (const bench::BaselineWay& way :
         baseline_ways(&library, bench::parse_shape(shape), DUALGEMM_DTYPE_FP16, device, &unused))
      text += way.text() + "; ";
    return text;
  };
  CHECK(ways("8x128x64") == kDense + "nvfp4, 1 GEMM; nvfp4, 2 GEMMs; ");
  CHECK(ways("8x72x64") == kDense);
  CHECK(ways("2*8x128x64") == kDense);
  CHECK(ways("offsets:8,0x128x64") == "fp16, 1 GEMM; fp16, 1 GEMM, 4 streams; ");
  library.blas = reinterpret_cast<bench::lt::BlasHandle>(&library);  // a library that has the grouped GEMM
  CHECK(ways("offsets:8,0x128x64") == "fp16, 1 GEMM; fp16, 1 GEMM, 4 streams; fp16, grouped GEMM; ");
  CHECK(ways("8x72x64") == kDense);
  device.cc_major = 9;
  CHECK(ways("8x128x64") == kDense);
  device = bench::described_b200();
  library.version = [] { return size_t{120600}; };
  CHECK(ways("8x128x64") == kDense);
}

TEST_CASE(
    "an A of 16 bits has the baseline of its own type, and a column and a field of who puts it in order",
    "[bench]") {
  bench::lt::Library library;
  library.version = [] { return size_t{130000}; };
  dualgemm_device_t device = bench::described_b200();
  Shape shape = bench::parse_shape("512x4096x7168");
  shape.a_dtype = DUALGEMM_DTYPE_BF16;
  Result refused{shape};
  CHECK_THROWS_WITH(describe(&refused, DUALGEMM_DTYPE_BF16, device),
                    contains("NOT_SUPPORTED") && contains("a_dtype="));
  device.cc_major = 9;
  std::string unused;
  const auto ways = baseline_ways(&library, shape, DUALGEMM_DTYPE_BF16, device, &unused);
  REQUIRE(ways.size() == 2);
  for (const bench::BaselineWay& way : ways) CHECK(way.format == bench::OperandFormat::kBf16);
  Shape grouped = bench::parse_shape("offsets:8,8x128x64");
  grouped.a_dtype = DUALGEMM_DTYPE_BF16;
  for (const bench::BaselineWay& way : baseline_ways(&library, grouped, DUALGEMM_DTYPE_FP16, device, &unused))
    CHECK(way.format == bench::OperandFormat::kBf16);
  std::vector<std::string> orders;
  for (const int32_t m : {16, 4096}) {
    shape.m = m;
    Result result{shape};
    describe(&result, DUALGEMM_DTYPE_BF16, device);
    const std::string order = to_json(result, bench::described_machine()).at("a_order");
    const bench::Report report(Times::kModelled, bench::described_machine(), {shape});
    CHECK_THAT(report.heading(), contains("A is BF16") && contains("A by"));
    CHECK_THAT(report.row(result), contains(" " + order + " "));
    CHECK_THAT(report.legend({result}), contains("A by:"));
    orders.push_back(order);
  }
  CHECK((orders == std::vector<std::string>{"kernel", "pass"}));
  CHECK(!to_json(described({16, 4096, 7168, ""}), bench::described_machine()).contains("a_order"));
}

TEST_CASE("an A in FP8 has weights in MXFP4, and the baseline of FP8 beside those of 16 bits", "[bench]") {
  bench::lt::Library library;
  library.version = [] { return size_t{130000}; };
  library.blas = reinterpret_cast<bench::lt::BlasHandle>(&library);
  dualgemm_device_t device = bench::described_b200();
  Shape shape = bench::parse_shape("512x4096x7168");
  shape.a_dtype = DUALGEMM_DTYPE_FP8_E4M3;
  Result refused{shape};
  CHECK_THROWS_WITH(describe(&refused, DUALGEMM_DTYPE_BF16, device), contains("NOT_SUPPORTED"));
  device.cc_major = 9;
  const auto ways = [&](Shape of, int32_t products) {
    of.a_dtype = DUALGEMM_DTYPE_FP8_E4M3;
    of.products = products;
    std::string unused, text;
    for (const bench::BaselineWay& way : baseline_ways(&library, of, DUALGEMM_DTYPE_FP16, device, &unused))
      text += way.text() + (way.into_c ? " into C; " : "; ");
    return text;
  };
  CHECK(ways(shape, 2) == kDense +
                              "fp8, 1 GEMM; fp8, 1 GEMM, fast accumulation; fp8, 2 GEMMs; "
                              "fp8, 2 GEMMs, fast accumulation; ");
  CHECK(ways(shape, 1) == "fp16, 1 GEMM into C; fp8, 1 GEMM into C; fp8, 1 GEMM, fast accumulation into C; ");
  CHECK(
      ways(bench::parse_shape("offsets:8,0x128x64"), 2) ==
      "fp16, 1 GEMM; fp16, 1 GEMM, 4 streams; fp16, grouped GEMM; fp8, 1 GEMM; fp8, 1 GEMM, fast accumulation; "
      "fp8, 1 GEMM, 4 streams; fp8, 1 GEMM, 4 streams, fast accumulation; ");

  Result result{shape};
  describe(&result, DUALGEMM_DTYPE_BF16, device);
  result.stream = result.graph = bench::Timing{40, 39, 41};
  result.baselines.push_back(
      {{bench::OperandFormat::kFp8, 1, 1, false, false, true}, {60, 59, 61}, {58, 57, 59}});
  const json row = to_json(result, bench::described_machine());
  CHECK(!row.contains("a_order"));
  CHECK(row.at("baselines").at(0).at("operands") == "fp8");
  CHECK(row.at("baselines").at(0).at("fast_accumulation") == true);
  const bench::Report table(Times::kMeasured, bench::described_machine(), {shape});
  CHECK_THAT(table.heading(), contains("A is FP8_E4M3, weights are MXFP4") && !contains("A by"));
  CHECK_THAT(table.row(result), contains(" 60.00 fp8 1f ") && contains(" 1.50\n"));
  CHECK_THAT(table.legend({result}), contains("or FP8 (1f: ") && !contains("A by"));
  const auto b_dtype = [](const std::string& a_dtype) {
    return report_json({Times::kModelled, "unknown", "bf16", "SWIGLU", 1, 4, a_dtype},
                       bench::described_machine(), {})
        .at("b_dtype");
  };
  CHECK(b_dtype("fp8") == "mxfp4");
  for (const char* a_dtype : {"nvfp4", "bf16", "fp16"}) CHECK(b_dtype(a_dtype) == "nvfp4");
}

TEST_CASE("what has no baseline says why", "[bench]") {
  const bench::lt::Library library;
  const bench::lt::Library* given = &library;
  dualgemm_device_t device = bench::described_b200();
  const auto why = [&](const char* shape, const bench::Epilogue& epilogue) {
    std::string text;
    CHECK(bench::baseline_ways(given, bench::parse_shape(shape), epilogue, device, &text).empty());
    return text;
  };
  CHECK_THAT(why("8x64x64", DUALGEMM_DTYPE_NVFP4), contains("to fp16 or bf16"));
  CHECK_THAT(why("8x64x64", bench::Epilogue(DUALGEMM_DTYPE_FP16, DUALGEMM_ACTIVATION_GLU)),
             contains("SWIGLU"));
  CHECK_THAT(why("8x60x64", DUALGEMM_DTYPE_FP16), contains("multiples of 8"));
  given = nullptr;
  CHECK_THAT(why("8x64x64", DUALGEMM_DTYPE_FP16), contains("no cuBLASLt"));
  device.cc_major = 8;
  CHECK_THAT(why("8x64x64", DUALGEMM_DTYPE_FP16), contains("compute capability 9.0"));
}

}  // namespace results_test
