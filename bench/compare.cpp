// compare.cpp -- see compare.h.
#include "compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "report_json.h"
#include "table.h"

namespace bench {
namespace {

using nlohmann::json;

std::string shape_of(const json& row) {
  const std::string size =
      fmt::format("{}x{}x{}", row.at("m").get<int>(), row.at("n").get<int>(), row.at("k").get<int>());
  const int problems = row.at("problems");
  if (row.at("mode") != "none")
    return fmt::format("{} {}, {}", row.at("mode").get<std::string>(), problems, size);
  return problems > 1 ? fmt::format("{} of {}", problems, size) : size;
}

// Returns the time of a row; of the baseline alone, that of its fastest way.
std::optional<double> us_of(const json& row) {
  if (row.contains("us")) return row.at("us").get<double>();
  std::optional<double> least;
  for (const json& way : row.value("baselines", json::array()))
    if (way.contains("stream")) {
      const double us = way.at("stream").at("median_us");
      least = least ? std::min(*least, us) : us;
    }
  return least;
}

}  // namespace

std::string problem_of(const json& row) {
  return json{row.at("m"), row.at("n"), row.at("k"), row.at("problems"), row.at("mode"), row.at("group_rows")}
      .dump();
}

json read_json(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  return json::parse(file, nullptr, /*allow_exceptions=*/false);
}

json read_report(const std::string& path) {
  const json report = read_json(path);
  if (!report.is_object() || !report.contains("schema") || !report.contains("results"))
    throw std::runtime_error(path + " is no report of this program");
  if (report.at("schema") != kJsonSchema)
    throw std::runtime_error(fmt::format("{} has schema {}, this program reads and writes {}", path,
                                         report.at("schema").dump(), kJsonSchema));
  return report;
}

void check_comparable(const json& old_report, const json& new_report) {
  for (const char* field : {"chain", "times", "a_dtype", "dtype", "products", "activation"}) {
    // Reports of programs that knew no other A, and no single products, do not say what they had.
    const std::string_view name(field);
    const json missing = name == "a_dtype" ? json("nvfp4") : name == "products" ? json(2) : json();
    const json then = old_report.value(field, missing), now = new_report.value(field, missing);
    if (then != now)
      throw std::runtime_error(fmt::format("these reports do not compare: {} was {}, and is {} now", field,
                                           then.dump(), now.dump()));
  }
}

std::map<std::string, json> kept_results(const std::vector<std::string>& paths, const json& new_report) {
  std::map<std::string, json> kept;
  for (const std::string& path : paths) {
    if (!std::filesystem::exists(path)) continue;
    const json old_report = read_report(path);
    check_comparable(old_report, new_report);
    for (const char* field : {"/repeats", "/samples", "/library/build", "/library/git", "/device/name"}) {
      const json::json_pointer at(field);
      const json then = old_report.value(at, json()), now = new_report.value(at, json());
      if (then != now)
        throw std::runtime_error(fmt::format("{} is of another run: {} was {}, and is {} now", path,
                                             field + 1, then.dump(), now.dump()));
    }
    for (const json& row : old_report.at("results"))
      if (!row.contains("error")) kept.emplace(problem_of(row), row);
  }
  return kept;
}

std::string comparison(const json& old_report, const json& new_report) {
  std::map<std::string, double> old_us;
  for (const json& row : old_report.at("results"))
    if (const auto us = us_of(row)) old_us[problem_of(row)] = *us;

  const Table table({{"M x N x K", 29, true}, {"old, us", 9}, {"new, us", 9}, {"new / old", 9}});
  std::string text = fmt::format(
      "Compared with {} ({}), both {}:\n\n{}", old_report.at("library").at("git").get<std::string>(),
      old_report.at("date").get<std::string>(), new_report.at("times").get<std::string>(), table.heading());
  size_t both = 0;
  for (const json& row : new_report.at("results")) {
    const auto us = us_of(row);
    const auto found = old_us.find(problem_of(row));
    if (!us || found == old_us.end()) continue;
    ++both;
    text += table.line(
        {shape_of(row), us_text(found->second), us_text(*us), fmt::format("{:.3f}", *us / found->second)});
  }
  text += "\n";
  const size_t all_new = new_report.at("results").size();
  if (both < all_new || both < old_us.size())
    text += wrapped(fmt::format("{} of {} shapes now and of {} then have a time in both.", both, all_new,
                                old_report.at("results").size()));
  const json &then = old_report.at("device").at("name"), &now = new_report.at("device").at("name");
  if (then != now)
    text += wrapped("Note: another device! It was " + then.get<std::string>() + ", and is " +
                    now.get<std::string>() + " now.");
  return text;
}

}  // namespace bench
