// judge.h -- one run of a program under one schedule with the checkers watching. A judge owns the policy, the
// checkers and the trace, learns what the program's memory is called, and turns every finding and every fault
// of the machine into a report. The runtime hands it to every launch (shim.h: set_judge).
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "sim/exec/policy.h"
#include "sim/judge/names.h"
#include "sim/judge/parts.h"
#include "sim/judge/report.h"

namespace sim {

struct JudgeOptions {
  std::string machine = kB200.name;  // for the replay line
  std::string mode = "default";
  uint64_t seed = 0;
  Checks checks;
  std::string trace;    // file, empty: none
  std::string json;     // file, written anew after every grid with findings, after every fault and at the end
  std::string names;    // file of a name table
  std::string program;  // as typed, for the replay line
  // As in LaunchOptions: whether grids go on after errors, whether elect.sync elects the lowest lane, and how
  // long nothing may change.
  bool go_on = false, elect_lowest = false;
  uint64_t patience = kDefaultPatience;
  bool align_as_declared = true;
};

class Judge {
 public:
  // Throws std::runtime_error, which names the option that does not work.
  Judge(JudgeOptions options, GlobalMemory& memory);
  ~Judge();
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  Policy& policy();
  Observer& observer();
  Names& names() { return names_; }

  // Reports the fault with which the grid, or what should have become one, ended.
  void fault(FaultKind kind, const std::string& text);
  // Adds the finding of a checker or of a test.
  void add(Finding finding);

  const std::vector<Report>& reports() const { return reports_; }
  uint64_t grids() const { return grids_; }
  const JudgeOptions& options() const { return options_; }

  // Returns the reports that were not rendered before, as text; empty when there are none.
  std::string take_text();
  // Returns the certificate of all grids so far.
  const CertificateText& certificate() const { return certificate_; }

  // Returns {"mode", "seed", "program", "grids", "finished", "findings", "checks", "certificate"}.
  nlohmann::json json(bool finished) const;
  void write_json(bool finished);

 private:
  class Watcher;
  struct Launched {  // a kernel that ran: which instructions are its own, and the shape of its grid
    const Inst *first, *last;
    std::string name;
    Dim3 grid;
  };

  struct OfGrid {
    Dim3 shape;
    uint32_t declared_align = 0;  // as in GridStart
    // Barriers, by CTA and offset, that counted bytes in another phase than they should, and the report that
    // says so. The report also names the consequences.
    std::map<std::pair<uint64_t, uint32_t>, size_t> out_of_step;
    std::set<std::pair<const Rule*, const Inst*>> consequences;  // that a report names
  };

  SiteText text_of(const Site& site) const;
  bool follows_from_another(const Finding& finding);
  void add(FaultKind kind, const std::string& text);
  std::string barrier_name(const std::string& waiting) const;
  Report report_of(const Finding& finding) const;
  size_t count(Report report);  // returns its place among the reports
  void certify(const Certificate& certificate);

  JudgeOptions options_;
  Names names_;
  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Checkers> checkers_;
  std::unique_ptr<Observer> trace_;
  std::unique_ptr<Watcher> watcher_;
  std::vector<Launched> launched_;
  PerGrid<OfGrid> of_grid_;
  std::vector<Report> reports_;
  CertificateText certificate_;
  std::map<std::string, size_t> by_key_;
  std::map<std::tuple<const Rule*, const Inst*, const Inst*>, size_t> by_site_;  // of this grid
  // With go_on: a trap or a deadlock has ended a grid, and did so before the latest grid started.
  bool grid_was_cut_ = false, behind_a_cut_ = false;
  bool explained_ = false;  // a finding says more about the fault that ended the grid than the machine can
  size_t rendered_ = 0;
  size_t written_ = 0;
  uint64_t grids_ = 0;
};

// Reads the options of the judge that the environment asks for: SIM_MODE, SIM_SEED, SIM_CHECKS, SIM_TRACE,
// SIM_JSON, SIM_NAMES, SIM_CONTINUE, SIM_ELECT_LOWEST, SIM_PATIENCE, SIM_ALIGN_AS_DECLARED. Returns false
// when none of them is set. Throws std::runtime_error, which names the variable and its value, when one does
// not work.
bool options_from_environment(JudgeOptions& options);

}  // namespace sim
