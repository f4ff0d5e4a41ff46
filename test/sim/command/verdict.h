// verdict.h -- what many runs of a program say together: the findings of all, each once, the exit status that
// follows, and both as text and as JSON.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/command/run.h"
#include "sim/judge/report.h"

namespace command {

// The schedule that takes away an order that kernels rely on and that the ISA does not list. If this schedule
// was not asked for by name, findings that only it shows are printed, but do not count for the verdict.
constexpr const char* kBeyond = "strict-tensor";

enum Status { kClean = 0, kErrors = 1, kUsage = 2, kNotJudged = 3 };

struct Verdict {
  std::vector<sim::Report> findings;
  sim::CertificateText certificate;
  std::map<char, size_t> classes;
  size_t allowed = 0;
  std::map<char, size_t> beyond;  // classes of findings that only the schedule strict-tensor showed
  size_t failed_beyond = 0;       // runs of it that failed as no run of another schedule did
  bool judged = true;             // no run failed, and the simulator knew all that they did
};

// Says what went wrong with a run, empty when nothing did.
std::string outcome(const RunResult& run);

// `beyond_counts`: what only the schedule strict-tensor shows is a part of the verdict.
Verdict judge(const std::vector<RunResult>& runs, const std::set<std::string>& allow, bool beyond_counts);
// Findings of class `fail_on` ('E', 'S' or 'A') and worse are errors.
Status status_of(const Verdict& verdict, char fail_on);

// `program` is as typed, with the options that a replay needs.
void print(const Verdict& verdict, const std::vector<RunResult>& runs, const std::string& program,
           Status status);
void write_json(const std::string& file, const Verdict& verdict, const std::vector<RunResult>& runs,
                const std::string& program, Status status);

}  // namespace command
