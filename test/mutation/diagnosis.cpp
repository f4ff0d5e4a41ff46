// diagnosis.cpp -- see diagnosis.h.
#include "mutation/diagnosis.h"

#include <algorithm>

namespace mutation {
namespace {

bool matches(const std::string& pattern, const std::string& text) {
  if (pattern.ends_with('*')) return text.starts_with(pattern.substr(0, pattern.size() - 1));
  return text == pattern;
}

template <class Test>
bool any(const std::vector<std::string>& list, Test test) {
  return list.empty() || std::any_of(list.begin(), list.end(), test);
}

bool fits(const Sighting& s, const Answer& answer) {
  return !answer.rules.empty() &&
         any(answer.rules, [&](const auto& rule) { return matches(rule, s.rule); }) &&
         any(answer.parties,
             [&](const auto& p) { return s.later.starts_with(p) || s.earlier.starts_with(p); }) &&
         any(answer.rings, [&](const auto& ring) { return s.rings.contains(ring); });
}

bool fits(const Run& run, const Answer& answer) {
  if (run.fault.empty() || answer.faults.empty()) return false;
  return any(answer.faults, [&](const auto& word) { return run.fault.find(word) != std::string::npos; }) &&
         any(answer.rings, [&](const auto& ring) { return run.fault_rings.contains(ring); });
}

void add(std::vector<Answer>& all, std::vector<Answer> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

const std::vector<std::string> kBarrierRules = {"mbarrier-*", "deadlock"};
const std::vector<std::string> kRings = {"full",       "empty",       "scale_full",  "scale_empty",
                                         "acc_full",   "acc_empty",   "window_free", "a_full",
                                         "panel_full", "panel_empty", "ready",       "sums_full"};
// Warps read and write stages themselves, and wgmma read what they wrote (9.0).
const Answer kOfWarps = {{"race-async", "race-data", "proxy-*", "relaxed-wait"},
                         {"wgmma.mma_async", "st.shared", "ld.shared"},
                         {},
                         {"wgmma"}};

}  // namespace

std::string right_report(const Run& run, const Expectation& expected) {
  for (const Answer& answer : expected.answers) {
    for (const Sighting& s : run.sightings)
      if (fits(s, answer)) return s.rule + ": " + s.summary;
    if (fits(run, answer)) return run.fault;
  }
  if (expected.itself != 0) {
    for (const Sighting& s : run.sightings)
      if (s.later_line == expected.itself || s.earlier_line == expected.itself)
        return s.rule + ": " + s.summary;
    if (run.fault.find("PTX line " + std::to_string(expected.itself) + ":") != std::string::npos)
      return run.fault;
  }
  return expected.values_suffice ? run.values : std::string();
}

std::vector<Answer> answers_of_ring(const std::string& ring) {
  std::vector<Answer> out = {{kBarrierRules, {}, {ring}, {"mbarrier"}}};
  if (ring.starts_with("acc"))
    out.push_back(
        {{"race-tensor", "tensor-fence", "relaxed-wait"}, {"tcgen05.ld", "tcgen05.mma"}, {}, {"TMEM"}});
  if (ring.starts_with("scale") || ring == "window_free")  // they guard columns, too
    out.push_back({{"race-tensor", "tensor-*", "relaxed-wait"}, {"tcgen05.cp", "tcgen05.mma"}, {}, {"TMEM"}});
  if (ring == "sums_full") out.push_back({{"race-async"}, {"st.async"}, {}, {"at shared offset"}});
  if (!ring.starts_with("acc") && ring != "window_free") {
    out.push_back(kOfWarps);
    out.push_back({{"race-async", "relaxed-wait"},
                   {"cp.async.bulk.tensor", "tcgen05.mma", "tcgen05.cp"},
                   {},
                   {"of shared memory of CTA", "at shared offset"}});
  }
  return out;
}

Expectation expectation_of(const Mutant& m, const std::set<std::string>& rings) {
  Expectation out;
  out.itself = m.ptx_line;
  const auto among = [&](std::initializer_list<const char*> groups) {
    return std::any_of(groups.begin(), groups.end(), [&](const char* g) { return m.group == g; });
  };
  if (m.operation.starts_with("exchange")) {  // either neighbour may be named
    out.answers.push_back({{"tensor-*", "race-*", "proxy-*", "relaxed-wait", "mbarrier-*"},
                           {},
                           {},
                           {"divergent", "mbarrier", "TMEM", "barrier.cluster"}});
    // It may come to stand in a branch that a part of the warp takes.
    if (m.operation.ends_with("bar.warp.sync:")) out.answers.push_back({{"deadlock"}, {}, {}, {"divergent"}});
  }
  if (among({"mbarrier.try_wait", "mbarrier.arrive", "tcgen05.commit", "ring arithmetic"})) {
    // Arithmetic serves both ends of a role; a barrier next to the right one may be of the next ring.
    const bool any =
        m.group == "ring arithmetic" || m.operation == "next barrier" || m.operation.starts_with("exchange");
    for (const std::string& ring : any ? std::set(kRings.begin(), kRings.end()) : rings)
      add(out.answers, answers_of_ring(ring));
  } else if (among({"mbarrier.init", "fence.mbarrier_init"})) {
    out.answers.push_back({kBarrierRules, {}, kRings, {"mbarrier"}});
    out.answers.push_back({{}, {}, {}, {"touches the live mbarrier"}});  // one behind the last
  } else if (among({"tcgen05.fence::before_thread_sync", "tcgen05.fence::after_thread_sync",
                    "tcgen05.wait::ld"})) {
    out.answers.push_back({{"race-tensor", "tensor-*", "race-data"}, {"tcgen05"}, {}, {"TMEM"}});
  } else if (among({"tcgen05.alloc", "tcgen05.dealloc", "tcgen05.relinquish_alloc_permit"})) {
    out.answers.push_back(
        {{"race-data", "race-tensor", "tensor-*"},
         {"tcgen05.alloc", "tcgen05.dealloc", "ld.shared"},
         {},
         {"TMEM", "tensor memory", "tcgen05.alloc", "tcgen05.dealloc", "was never written"}});
  } else if (m.group.starts_with("barrier.cluster")) {
    out.answers.push_back(
        {{"race-*", "tensor-*", "mbarrier-init-order", "cluster-start", "exit-*", "deadlock"},
         {},
         {},
         {"barrier.cluster", "mbarrier", "cluster"}});
  } else if (among({"fence.proxy", "st.async", "ld.shared::cta", "mapa"})) {
    out.answers.push_back(
        {{"race-*", "proxy-*", "exit-*"}, {"st.shared", "st.async", "ld.shared"}, {}, {"shared"}});
    if (among({"st.async", "mapa"})) add(out.answers, answers_of_ring("sums_full"));
    out.values_suffice = m.group != "fence.proxy";  // a sum of the wrong parts breaks no rule
  } else if (m.group.starts_with("wgmma")) {
    out.answers.push_back(kOfWarps);
  } else if (m.group.starts_with("griddepcontrol")) {
    out.answers.push_back({{"race-grids"}, {}, {}, {}});
  } else if (among({"bar.sync", "barrier.cta.sync", "barrier.cta.arrive", "barrier.cta.red"})) {
    out.answers.push_back(
        {{"race-data", "race-tensor", "tensor-*", "mbarrier-init-order", "exit-*", "deadlock"},
         {},
         {},
         {"mbarrier", "TMEM", "barrier", "was never written", "exit"}});
    out.answers.push_back(kOfWarps);
  } else if (among({"ld.acquire", "atom"})) {
    out.answers.push_back({{"race-data"}, {"ld.global", "st.global", "ld.acquire", "atom"}, {}, {}});
    out.values_suffice = m.operation == "counts twice";
  } else if (among({"bar.warp.sync", "elect.sync", "shfl.sync", "redux.sync"})) {
    out.answers.push_back({{"race-lanes", "warp-*", "deadlock", "mbarrier-*", "race-tensor"},
                           {},
                           {},
                           {"divergent", "lanes", "mbarrier", "deadlock"}});
    out.answers.push_back(kOfWarps);
    out.values_suffice = m.operation == "own value" || m.operation == "16 lanes away";
  } else {
    // A changed operand of a copy, multiplication, load or store shows in its own memory, or in other
    // numbers.
    const std::string unit = m.group.substr(0, m.group.find('.'));
    out.answers.push_back(
        {{"race-*", "descriptor-*", "mbarrier-*", "deadlock", "tensor-*"}, {unit}, {}, {m.group}});
    add(out.answers, answers_of_ring("full"));
    out.answers.push_back({{}, {}, {}, {"TMEM", "shared", "descriptor", "map"}});
    // What is read from the table of groups becomes an address.
    if (m.group == "ld.shared") out.answers.push_back({{}, {}, {}, {"global address"}});
    out.values_suffice = true;
  }
  return out;
}

}  // namespace mutation
