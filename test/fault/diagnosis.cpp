// diagnosis.cpp -- see diagnosis.h.
#include "fault/diagnosis.h"

#include <algorithm>

namespace fault {
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
         any(answer.barriers, [&](const auto& ring) { return s.barrier.starts_with(ring + "["); });
}

}  // namespace

std::string right_report(const Run& run, const Expectation& expected) {
  for (const Answer& answer : expected.answers) {
    for (const Sighting& s : run.sightings)
      if (fits(s, answer)) return s.rule + ": " + s.summary;
    if (!run.fault.empty() && !answer.faults.empty() &&
        any(answer.faults, [&](const auto& part) { return run.fault.find(part) != std::string::npos; }))
      return run.fault;
  }
  return {};
}

Expectation expectation_of(const Mutant&) { return {}; }

}  // namespace fault
