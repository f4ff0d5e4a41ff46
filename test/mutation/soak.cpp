// soak.cpp -- see soak.h.
#include "mutation/soak.h"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "mutation/parallel.h"
#include "sim/schedule/schedule.h"

namespace mutation {
namespace {

constexpr unsigned kSecondsPerBatch = 300;
constexpr size_t kBatch = 25;  // schedules a process runs: enough to hide the cost of starting it

std::string at_schedule(size_t index, const std::string& what) { return std::to_string(index) + " " + what; }

}  // namespace

AllowList::AllowList(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot read the allow-list " + file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    Entry entry;
    if (!(words >> entry.rule)) continue;
    std::getline(words >> std::ws, entry.reason);
    if (entry.reason.empty())
      throw std::runtime_error(file + ": " + entry.rule + " is allowed without a reason");
    entries_.push_back(std::move(entry));
  }
}

bool AllowList::allows(const Sighting& sighting) {
  for (Entry& entry : entries_)
    if (entry.rule == sighting.rule) return entry.used = true;
  return false;
}

std::vector<std::string> AllowList::unused() const {
  std::vector<std::string> out;
  for (const Entry& entry : entries_)
    if (!entry.used) out.push_back(entry.rule);
  return out;
}

std::string complaint(const Run& run, AllowList& allowed) {
  for (const Sighting& s : run.sightings)
    if (!allowed.allows(s)) return s.rule + ": " + s.summary + " (" + s.later + "; " + s.earlier + ")";
  return run.fault.empty() ? run.values : run.fault;
}

std::vector<Schedule> soak_schedules(size_t seeds, size_t directed) {
  std::vector<Schedule> out;
  for (const sim::Mode& mode : sim::modes()) {
    const std::string name = mode.name;
    const bool seeded = name != "default" && name != "early" && name != "random";
    const size_t count = name == "random" ? seeds : seeded ? directed : 1;
    for (uint64_t seed = 0; seed < count; ++seed) out.push_back({name, seed});
  }
  return out;
}

std::optional<Failure> soak(const std::string& instance, const std::vector<Schedule>& schedules,
                            const std::string& allow_file, unsigned workers) {
  Bench bench(instance);
  size_t first = schedules.size();
  std::string what;
  const auto failed = [&](size_t index, const std::string& text) {
    if (index >= first) return;
    first = index;
    what = text;
  };
  run_forked(
      (schedules.size() + kBatch - 1) / kBatch, workers, kSecondsPerBatch,
      [&](size_t batch) -> std::string {
        AllowList allowed(allow_file);
        const size_t end = std::min(schedules.size(), (batch + 1) * kBatch);
        for (size_t i = batch * kBatch; i < end; ++i) {
          const std::string text = complaint(bench.run(schedules[i]), allowed);
          if (!text.empty()) return at_schedule(i, text);
        }
        return {};
      },
      [&](size_t, const std::string& text) {
        if (!text.empty()) failed(std::stoul(text), text.substr(text.find(' ') + 1));
      },
      [&](size_t batch, const std::string& how) { failed(batch * kBatch, "the simulator died: " + how); });
  if (first == schedules.size()) return std::nullopt;
  return Failure{instance, bench.shape(), schedules[first], what};
}

Failure shrink(const Failure& failure, const std::string& allow_file) {
  constexpr uint64_t kSeeds = 8;  // another shape is another run: the same mistake may need another seed
  Failure smallest = failure;
  const Shape& whole = failure.shape;
  for (const int32_t k : {64, 256, 512, whole.k})
    for (const int32_t m : {128, 256, whole.m})
      for (const int32_t n : {64, 128, 256, whole.n}) {
        if (m > whole.m || n > whole.n || k > whole.k) continue;
        const Shape shape{m, n, k};
        std::string found;
        run_forked(
            1, 1, kSecondsPerBatch,
            [&](size_t) -> std::string {
              Bench bench(failure.instance, Part::kKernel, &shape);
              AllowList allowed(allow_file);
              for (uint64_t seed = failure.schedule.seed; seed < failure.schedule.seed + kSeeds; ++seed) {
                const std::string text = complaint(bench.run({failure.schedule.mode, seed}), allowed);
                if (!text.empty()) return at_schedule(seed, text);
              }
              return {};
            },
            [&](size_t, const std::string& text) { found = text; },
            [&](size_t, const std::string& how) {
              found = at_schedule(failure.schedule.seed, "died: " + how);
            });
        if (found.empty()) continue;
        smallest.shape = shape;
        smallest.schedule.seed = std::stoull(found);
        smallest.what = found.substr(found.find(' ') + 1);
        return smallest;
      }
  return smallest;
}

std::string replay_command(const Failure& failure) {
  return fmt::format("build/soak --instance {} --mode {} --seed {} --shape {}x{}x{}", failure.instance,
                     failure.schedule.mode, failure.schedule.seed, failure.shape.m, failure.shape.n,
                     failure.shape.k);
}

}  // namespace mutation
