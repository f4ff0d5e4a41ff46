// judges.cpp -- see judges.h.
#include "mutation/judges.h"

#include "sim/check/protocol.h"
#include "sim/check/race.h"
#include "sim/schedule/schedule.h"

namespace mutation {
namespace {

class Remarks : public sim::Observer {
 public:
  explicit Remarks(sim::FindingSink sink) : sink_(std::move(sink)) {}
  void remark(const sim::Remark& remark) override { sink_(sim::finding_of(remark)); }

 private:
  sim::FindingSink sink_;
};

}  // namespace

Judges::Judges(sim::FindingSink sink) {
  checkers_.push_back(std::make_unique<sim::RaceChecker>(sink));
  checkers_.push_back(std::make_unique<sim::ProtocolChecker>(sink));
  checkers_.push_back(std::make_unique<Remarks>(sink));
  for (const auto& checker : checkers_) all_.add(*checker);
}
Judges::~Judges() = default;

std::unique_ptr<sim::Policy> policy_of(const Schedule& schedule) {
  return sim::make_policy(schedule.mode, schedule.seed);
}

const std::vector<Schedule>& escalation() {
  static const std::vector<Schedule> all = [] {
    std::vector<Schedule> out = {{"default", 0}, {"late", 0},    {"reverse", 1},       {"tear", 1},
                                 {"diverge", 1}, {"diverge", 2}, {"strict-tensor", 1}, {"one-late", 1}};
    for (uint64_t seed = 1; seed <= 40; ++seed) out.push_back({"random", seed});
    for (uint64_t seed = 2; seed <= 20; ++seed)
      for (const char* mode : {"starve-warp", "one-late", "diverge", "tear"}) out.push_back({mode, seed});
    return out;
  }();
  return all;
}

}  // namespace mutation
