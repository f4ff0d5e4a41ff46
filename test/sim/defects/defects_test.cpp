// defects_test.cpp -- every planted defect is named by the checkers, and its correct twin is not. In the
// default schedule a defect must give the diagnosis written here and nothing of class E or S but what follows
// from it; no other schedule may be silent about it. A correct fixture must compute the right values and give
// no finding of class E or S in any schedule.
// The number of a defect is its place in support/known_bugs.h; what there is, and what it must give, in
// defects.def.
#include "sim/defects/defects.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "sim/judge/judge.h"
#include "sim/schedule/schedule.h"
#include "sim/shim/shim.h"
#include "support/catch.hpp"

using namespace defects;

namespace {

struct Diagnosis {
  char severity;
  std::string rule;
  std::string summary;              // * stands for any text
  std::vector<std::string> beside;  // other rules that the same defect breaks
};

struct Schedule {
  std::string mode;
  uint64_t seed;
};

struct Judged {
  Outcome outcome;
  std::vector<sim::Report> reports;
  std::string text;  // the findings, one line each, and the fault that ended the run
};

// The machine that a subject runs on.
template <class Type>
constexpr const sim::Machine& kMachine = sim::kB200;
template <>
constexpr const sim::Machine& kMachine<Warpgroup> = sim::kH100;
// One block of the persistent kernel runs at a time, so that in every schedule there are other blocks for it
// to take over.
constexpr sim::Machine kOneBlock = [] {
  sim::Machine machine = sim::kB200;
  machine.sms = machine.ctas_per_sm = 1;
  machine.cluster_groups = {{{1, 1}}};
  return machine;
}();
template <>
constexpr const sim::Machine& kMachine<Persistent> = kOneBlock;

struct OnMachine {
  explicit OnMachine(const sim::Machine& machine) { sim::shim::set_machine(machine); }
  ~OnMachine() { sim::shim::set_machine(sim::kB200); }
  OnMachine(const OnMachine&) = delete;
};

bool is_advice(const sim::Report& report) { return report.severity == 'A'; }

std::string line(const sim::Report& report) {
  return std::string(1, report.severity) + " " + report.rule + ": " + report.summary;
}

template <class Run>
Judged judged(const Schedule& schedule, Run run) {
  sim::JudgeOptions options;
  options.mode = schedule.mode;
  options.seed = schedule.seed;
  sim::Judge judge(options, sim::shim::memory());
  sim::shim::set_judge(&judge);
  Judged result{run(), {}, "mode " + schedule.mode + ", seed " + std::to_string(schedule.seed) + "\n"};
  const std::string fault = sim::shim::last_fault_text();
  sim::shim::set_judge(nullptr);
  sim::shim::clear_fault();
  result.reports = judge.reports();
  for (const sim::Report& report : result.reports) result.text += "  " + line(report) + "\n";
  result.text += fault;
  return result;
}

bool matches(const char* text, const char* pattern) {
  if (*pattern == '*') return matches(text, pattern + 1) || (*text != 0 && matches(text + 1, pattern));
  return *text == *pattern && (*text == 0 || matches(text + 1, pattern + 1));
}

bool matches(const sim::Report& report, const Diagnosis& expected) {
  return report.severity == expected.severity && report.rule == expected.rule &&
         matches(report.summary.c_str(), expected.summary.c_str());
}

// Every mode but the default with so many seeds.
std::vector<Schedule> adversarial(uint64_t seeds = 1) {
  std::vector<Schedule> all;
  for (const sim::Mode& mode : sim::modes())
    for (uint64_t seed = 1; seed <= seeds && std::string(mode.name) != "default"; ++seed)
      all.push_back({mode.name, seed});
  return all;
}

// The schedule must show the diagnosis, and findings of its rule and of all rules beside it, but of no
// others.
template <class Run>
void expect_under(const Schedule& schedule, Run run, const Diagnosis& expected) {
  const Judged result = judged(schedule, run);
  INFO(result.text);
  {
    INFO("expected: " << expected.severity << " " << expected.rule << ": " << expected.summary);
    CHECK(std::any_of(result.reports.begin(), result.reports.end(),
                      [&](const sim::Report& report) { return matches(report, expected); }));
  }
  std::set<std::string> found, wanted(expected.beside.begin(), expected.beside.end());
  for (const sim::Report& report : result.reports)
    if (!is_advice(report) || report.rule == expected.rule) found.insert(report.rule);
  wanted.insert(expected.rule);
  CHECK(found == wanted);
}

template <class Run>
void expect(Run run, const Diagnosis& expected) {
  expect_under({"default", 0}, run, expected);
  if (expected.severity == 'A') return;
  for (const Schedule& schedule : adversarial()) {
    const Judged other = judged(schedule, run);
    INFO(other.text);
    CHECK_FALSE(std::all_of(other.reports.begin(), other.reports.end(), is_advice));
  }
}

template <class Run>
void expect_wrong_values(Run run) {
  const Judged result = judged({"default", 0}, run);
  INFO(result.text);
  CHECK(std::all_of(result.reports.begin(), result.reports.end(), is_advice));
  CHECK(result.outcome.error == cudaSuccess);
  CHECK_FALSE(result.outcome.right);
}

std::vector<Schedule> usual() {
  std::vector<Schedule> schedules = adversarial();
  schedules.insert(schedules.begin(), {"default", 0});
  for (uint64_t seed = 2; seed < 6; ++seed) schedules.push_back({"random", seed});
  return schedules;
}

template <class Run>
void expect_silence(Run run, const std::vector<Schedule>& schedules = usual()) {
  for (const Schedule& schedule : schedules) {
    const Judged result = judged(schedule, run);
    INFO(result.text);
    CHECK(std::all_of(result.reports.begin(), result.reports.end(), is_advice));
    CHECK(result.outcome.error == cudaSuccess);
    CHECK(result.outcome.right);
  }
}

}  // namespace

// Each subject has a namespace, in which its defects find their type and function by one name.
#define SUBJECT(Type, subject)                                              \
  namespace subject##_test {                                                \
    using Defect = Type;                                                    \
    const auto run_subject = subject;                                       \
    TEST_CASE("correct: " #subject ", " #Type "::kNone", "[correct]") {     \
      const OnMachine here(kMachine<Type>);                                 \
      expect_silence([] { return subject(Type::kNone); });                  \
    }                                                                       \
    TEST_CASE("correct under many schedules: " #subject, "[.many]") {       \
      const OnMachine here(kMachine<Type>);                                 \
      expect_silence([] { return subject(Type::kNone); }, adversarial(20)); \
    }
#define DEFECT(name, number, text, severity, rule, summary, ...)                                \
  TEST_CASE("defect " #number ": " text, "[defect]") {                                          \
    const OnMachine here(kMachine<Defect>);                                                     \
    expect([] { return run_subject(Defect::name); }, {severity, rule, summary, {__VA_ARGS__}}); \
  }
#define DEFECT_UNDER(mode, seed, name, number, text, severity, rule, summary, ...) \
  TEST_CASE("defect " #number ": " text, "[defect]") {                             \
    const OnMachine here(kMachine<Defect>);                                        \
    const Diagnosis expected = {severity, rule, summary, {__VA_ARGS__}};           \
    expect_under(                                                                  \
        {mode, seed}, [] { return run_subject(Defect::name); }, expected);         \
  }
#define WRONG(name, number, text)                                  \
  TEST_CASE("defect " #number ": " text, "[defect]") {             \
    const OnMachine here(kMachine<Defect>);                        \
    expect_wrong_values([] { return run_subject(Defect::name); }); \
  }
#define CORRECT(name, text)                                   \
  TEST_CASE("correct: " #name ": " text, "[correct]") {       \
    const OnMachine here(kMachine<Defect>);                   \
    expect_silence([] { return run_subject(Defect::name); }); \
  }
#define END(Type, subject) }
#include "sim/defects/defects.def"
