// sim_speed.cpp -- `make bench-sim`: how fast the simulated GPU runs, and what each checker of its judge
// makes of that, for five kinds of programs. The times are those of this machine's CPU and say nothing of a
// GPU's.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <limits>
#include <optional>

#include "bench/sim/programs.h"
#include "bench/table.h"
#include "sim/exec/observer.h"
#include "sim/judge/judge.h"
#include "sim/shim/shim.h"

namespace {

struct Options {
  int scale = 16, repeats = 3;
  std::string only;
  bool check = false;
};

class Counter : public sim::Observer {
 public:
  void instruction(const sim::Thread&, uint32_t, const sim::Inst&) override { ++count_; }
  double count() const { return count_; }

 private:
  double count_ = 0;
};

// Returns how many instructions warps issue in a run of the program.
double warp_instructions(bench::Program& program) {
  Counter counter;
  sim::shim::set_launch_options({.observer = &counter});
  program.run();
  sim::shim::set_launch_options({});
  return counter.count();
}

// Runs the program, with checkers if there is a word for them. Returns seconds of the CPU. Throws when they
// find anything but advice.
double seconds(bench::Program& program, const char* checks) {
  std::optional<sim::Judge> judge;
  if (checks != nullptr) {
    sim::JudgeOptions options;
    options.checks = sim::parse_checks(checks);
    options.program = program.name();
    judge.emplace(options, sim::shim::memory());
    sim::shim::set_judge(&*judge);
  }
  const std::clock_t start = std::clock();
  program.run();
  const double taken = double(std::clock() - start) / CLOCKS_PER_SEC;
  sim::shim::set_judge(nullptr);
  if (judge)
    for (const sim::Report& report : judge->reports())
      if (report.severity != 'A')
        throw std::runtime_error(program.name() + ": " + sim::render(report, program.name()));
  return taken;
}

double least_seconds(bench::Program& program, const char* checks, int repeats) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repeats; ++i) least = std::min(least, seconds(program, checks));
  return least;
}

void measure(const Options& options) {
  constexpr const char* kChecks[] = {"race", "protocol", "certificate", "all"};
  bench::Table table({{"program", 12, true},
                      {"warp instructions", 17},
                      {"CPU s", 7},
                      {"million a second", 16},
                      {"GMAC/s", 7},
                      {"race", 6},
                      {"protocol", 8},
                      {"certificate", 11},
                      {"all", 6}});
  fmt::print("{}", table.heading());
  for (const auto& program : bench::programs(options.scale)) {
    if (!options.only.empty() && program->name() != options.only) continue;
    const double instructions = warp_instructions(*program);
    const double plain = least_seconds(*program, nullptr, options.repeats);
    std::vector<std::string> cells = {
        program->name(), fmt::format("{:.0f}", instructions), fmt::format("{:.3f}", plain),
        fmt::format("{:.2f}", instructions / plain * 1e-6),
        program->multiply_adds() > 0 ? fmt::format("{:.2f}", program->multiply_adds() / plain * 1e-9) : "-"};
    for (const char* checks : kChecks)
      cells.push_back(fmt::format("{:.2f}x", least_seconds(*program, checks, options.repeats) / plain));
    fmt::print("{}", table.line(cells));
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("How fast the simulated GPU runs programs, and how much slower its checkers make that");
  app.add_option("--scale", options.scale, "CTAs, times this")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--repeats", options.repeats, "of which the fastest counts")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--only", options.only, "the program of this name");
  app.add_flag("--check", options.check, "run each program once with all checkers, and print no times");
  CLI11_PARSE(app, argc, argv);
  try {
    if (!options.check) measure(options);
    else
      for (const auto& program : bench::programs(1)) seconds(*program, "all");
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "sim_speed: {}\n", e.what());
    return 1;
  }
}
