// soak.h -- the kernel as it ships under very many schedules. Whatever is found is a bug of the kernel or of
// the simulator; only what allowed.txt names, with a reason, is let pass.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mutation/bench.h"

namespace mutation {

// This lists findings that are let pass. A line of the file has a rule id, then the reason; # begins a
// comment. An entry that no finding needs is reported as stale.
class AllowList {
 public:
  // Throws std::runtime_error for a file that is unreadable or has an entry without a reason.
  explicit AllowList(const std::string& file);
  bool allows(const Sighting& sighting);
  std::vector<std::string> unused() const;

 private:
  struct Entry {
    std::string rule, reason;
    bool used = false;
  };
  std::vector<Entry> entries_;
};

struct Failure {
  std::string instance;
  Shape shape;
  Schedule schedule;
  std::string what;
};

// Returns what is wrong with a run of the unchanged kernel, empty when nothing is.
std::string complaint(const Run& run, AllowList& allowed);

// Returns `seeds` random schedules and every directed mode with `directed` seeds.
std::vector<Schedule> soak_schedules(size_t seeds, size_t directed);

// Runs all of them on an instance, spread over processes; returns the first failure by schedule order.
std::optional<Failure> soak(const std::string& instance, const std::vector<Schedule>& schedules,
                            const std::string& allow_file, unsigned workers);

// Returns the smallest shape on which the same schedule, or a neighbouring seed of its mode, still fails.
Failure shrink(const Failure& failure, const std::string& allow_file);

std::string replay_command(const Failure& failure);

}  // namespace mutation
