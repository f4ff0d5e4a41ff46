// parallel.h -- jobs in child processes, a few at a time. A planted bug may hang, crash or leave the
// simulated device in any state; a child takes that with it.
#pragma once

#include <functional>
#include <string>

namespace mutation {

// Runs `job(0)` to `job(count - 1)`, each in a forked child of its own with stderr closed, `workers` at
// once, and hands each text that comes back to `done`, in order of completion. A child that exceeds
// `seconds` of processor time or dies delivers nothing; `died` says how.
void run_forked(size_t count, unsigned workers, unsigned seconds,
                const std::function<std::string(size_t)>& job,
                const std::function<void(size_t, const std::string&)>& done,
                const std::function<void(size_t, const std::string& how)>& died);

unsigned default_workers();  // one per core

}  // namespace mutation
