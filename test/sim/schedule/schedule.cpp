// schedule.cpp -- the modes and their policies.
#include "sim/schedule/schedule.h"

#include <stdexcept>

#include "sim/schedule/holding.h"
#include "sim/schedule/mixing.h"

namespace sim {
namespace {

class Early : public DefaultPolicy {
 public:
  bool at_once() override { return true; }
};

template <class Chosen, auto... arguments>
std::unique_ptr<Policy> make(uint64_t seed) {
  return std::make_unique<Chosen>(seed, arguments...);
}

template <class Chosen>
std::unique_ptr<Policy> unseeded(uint64_t) {
  return std::make_unique<Chosen>();
}

struct Entry {
  Mode mode;
  std::unique_ptr<Policy> (*make)(uint64_t seed);
};

const Entry kEntries[] = {
    {{"default", "asynchronous work lands oldest first whenever a warp stops; warps take turns"},
     unseeded<DefaultPolicy>},
    {{"early", "asynchronous work completes before its issuer's next instruction"}, unseeded<Early>},
    {{"late", "asynchronous work moves only when no warp can run"}, make<Late>},
    {{"one-late", "the seed picks one operation, or all of one instruction, to move last"}, make<OneLate>},
    {{"starve-warp", "the seed picks a warp that runs only when nothing else can"},
     make<Starve, Starve::Victim::kWarp>},
    {{"starve-cta", "the seed picks a CTA of every cluster that moves only when nothing else can"},
     make<Starve, Starve::Victim::kCta>},
    {{"reverse",
      "the highest warp first; when none can run, the youngest asynchronous operation; clusters last to first"},
     make<Reverse>},
    {{"tear", "copies land in many pieces and in any order, multicast destinations apart"}, make<Tear>},
    {{"diverge", "diverged lanes meet only where an instruction asks, in small random turns"}, make<Diverge>},
    {{"strict-tensor", "tensor operations of a thread keep only the order that the ISA lists"},
     make<StrictTensor>},
    {{"overlap",
      "grids that nothing orders run together, in small random turns; the seed may pick one to lag"},
     make<Overlap>},
    {{"random", "random priorities with a few changes, and every other choice, also of clusters, at random"},
     make<Priorities>},
};

}  // namespace

size_t first_warp(const std::vector<Agent>& agents) {
  size_t i = 0;
  while (i < agents.size() && !is_warp(agents[i])) ++i;
  return i;
}

uint32_t Seeded::leader(uint32_t members) {
  uint32_t skip = uint32_t(mix(seed_ ^ mix(members)) % uint32_t(__builtin_popcount(members)));
  for (; skip > 0; --skip) members &= members - 1;
  return uint32_t(__builtin_ctz(members));
}

const std::vector<Mode>& modes() {
  static const std::vector<Mode> all = [] {
    std::vector<Mode> out;
    for (const Entry& entry : kEntries) out.push_back(entry.mode);
    return out;
  }();
  return all;
}

std::unique_ptr<Policy> make_policy(const std::string& mode, uint64_t seed) {
  std::string known;
  for (const Entry& entry : kEntries) {
    if (mode == entry.mode.name) return entry.make(seed);
    known += std::string(known.empty() ? "" : ", ") + entry.mode.name;
  }
  throw std::invalid_argument("there is no schedule " + mode + "; the schedules are " + known);
}

}  // namespace sim
