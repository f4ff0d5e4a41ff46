// soak_main.cpp -- `make soak`: every instance of the kernel as it ships, plain or general, of two products
// or of one, under a thousand random schedules and every directed one. It exits non-zero on anything found,
// and prints the smallest shape that still shows it and the command that shows it again.
#include <fmt/core.h>
#include <fnmatch.h>

#include <chrono>
#include <cstdio>

#include "mutation/command.h"
#include "mutation/parallel.h"
#include "mutation/soak.h"
#include "support/device_problem.h"

namespace mutation {
namespace {

struct Options {
  size_t seeds = 1000, directed = 20;
  std::string instance = "*", mode, shape, allow = MUTATION_ALLOW_LIST;
  uint64_t seed = 0;
  unsigned workers = default_workers();
};

std::vector<std::string> instances(const Options& options) {
  std::vector<std::string> out;
  for (const int32_t products : {2, 1})
    for (const auto& instance : dualgemm_test::instances_of_device(products))
      if (fnmatch(options.instance.c_str(), instance.name.c_str(), 0) == 0) out.push_back(instance.name);
  if (out.empty()) throw std::runtime_error("the library has no instance " + options.instance);
  return out;
}

int report(const Failure& failure) {
  fmt::print("FAILS under {} seed {}: {}\n", failure.schedule.mode, failure.schedule.seed, failure.what);
  fmt::print("again: {}\n", replay_command(failure));
  return 1;
}

int replay(const Options& options) {
  Shape shape{};
  const bool given = std::sscanf(options.shape.c_str(), "%dx%dx%d", &shape.m, &shape.n, &shape.k) == 3;
  if (!given && !options.shape.empty())
    throw std::runtime_error("--shape " + options.shape + " is not MxNxK");
  Bench bench(instances(options).front(), Part::kKernel, given ? &shape : nullptr);
  AllowList allowed(options.allow);
  const std::string what = complaint(bench.run({options.mode, options.seed}), allowed);
  if (what.empty()) {
    fmt::print("{}, {} seed {}: clean\n", bench.subject().name, options.mode, options.seed);
    return 0;
  }
  return report({bench.subject().name, bench.shape(), {options.mode, options.seed}, what});
}

int run(const Options& options) {
  if (!options.mode.empty()) return replay(options);
  const std::vector<Schedule> schedules = soak_schedules(options.seeds, options.directed);
  int result = 0;
  for (const std::string& instance : instances(options)) {
    const auto begin = std::chrono::steady_clock::now();
    const auto failure = soak(instance, schedules, options.allow, options.workers);
    fmt::print("{:<26} {} schedules, {} in {:.0f} s\n", instance, schedules.size(),
               failure ? "FAILED" : "clean",
               std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    std::fflush(stdout);
    if (failure) result = report(shrink(*failure, options.allow));
  }
  return result;
}

}  // namespace
}  // namespace mutation

int main(int argc, char** argv) {
  mutation::Options options;
  CLI::App app("Runs the shipping kernel under very many schedules; nothing may be found.", "soak");
  app.add_option("--seeds", options.seeds, "random schedules of each instance");
  app.add_option("--directed", options.directed, "seeds of each directed mode");
  app.add_option("--instance", options.instance, "instances whose name matches this shell pattern");
  app.add_option("--mode", options.mode, "one run in this mode");
  app.add_option("--seed", options.seed, "its seed");
  app.add_option("--shape", options.shape, "its shape, MxNxK");
  app.add_option("--allow", options.allow, "findings that are let pass");
  app.add_option("--workers", options.workers, "processes at once");
  return mutation::command(app, argc, argv, [&] { return mutation::run(options); });
}
