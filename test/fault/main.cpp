// main.cpp -- `make fault`: plants bugs in the PTX that ships and reports which of them the simulator
// catches, and whether it names the cause. Non-zero exit on any survivor, any wrong table entry, any unclean
// control.
#include <fmt/core.h>
#include <fnmatch.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <fstream>

#include "fault/equivalent.h"
#include "fault/judges.h"
#include "fault/parallel.h"
#include "fault/score.h"

namespace fault {
namespace {

constexpr unsigned kSecondsPerMutant = 60;

struct Options {
  std::string only = "*", json;
  unsigned workers = default_workers();
  bool list = false;
};

std::vector<Scored> campaign(Bench& bench, std::vector<Mutant> mutants, const Options& options) {
  std::vector<Scored> out;
  for (Mutant& mutant : mutants) {
    if (fnmatch(options.only.c_str(), mutant.id.c_str(), 0) != 0) continue;
    std::string reason = why_equivalent(mutant);
    out.push_back({std::move(mutant), {}, std::move(reason)});
  }
  run_forked(
      out.size(), options.workers, kSecondsPerMutant,
      [&](size_t i) {
        const Expectation expected = expectation_of(out[i].mutant);
        return nlohmann::json(try_out(bench, out[i].mutant, &expected, escalation().size())).dump();
      },
      [&](size_t i, const std::string& text) { out[i].verdict = nlohmann::json::parse(text).get<Verdict>(); },
      [&](size_t i, const std::string& how) {
        out[i].verdict.id = out[i].mutant.id;
        out[i].verdict.outcome = Outcome::kHang;
        out[i].verdict.crash = how;
      });
  return out;
}

int run(const Options& options) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<Scored> all;
  for (const auto& [instance, breadth] : {std::pair{"m128n64k256_fp16", Breadth::kAll},
                                          std::pair{"m128n128k256_fp16", Breadth::kSynchronisation}}) {
    Bench bench(instance);
    std::vector<Mutant> mutants = sweep(bench.kernel(), instance, breadth);
    if (options.list) {
      for (const Mutant& m : mutants) fmt::print("{} / {}\n    {}\n", instance, m.id, m.source);
      continue;
    }
    std::vector<Scored> scored = campaign(bench, std::move(mutants), options);
    all.insert(all.end(), std::make_move_iterator(scored.begin()), std::make_move_iterator(scored.end()));
  }
  if (options.list) return 0;
  print_by_group(all);
  print_exceptions(all);
  const Tally t = tally(all);
  if (!options.json.empty())
    std::ofstream(options.json) << nlohmann::json{{"sweep", json_of(all)}}.dump(1) << "\n";
  fmt::print("{:.0f} s\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  return t.survivors == 0 && t.wrong_table == 0 ? 0 : 1;
}

}  // namespace
}  // namespace fault

int main(int argc, char** argv) {
  fault::Options options;
  CLI::App app("Plants bugs in the shipping kernel and reports which of them the simulator catches.");
  app.add_option("--only", options.only, "mutants whose id matches this shell pattern");
  app.add_option("--json", options.json, "write every verdict to this file");
  app.add_option("--workers", options.workers, "processes at once");
  app.add_flag("--list", options.list, "print the mutants and stop");
  CLI11_PARSE(app, argc, argv);
  try {
    return fault::run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "fault: {}\n", error.what());
    return 2;
  }
}
