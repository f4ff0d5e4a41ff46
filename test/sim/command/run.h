// run.h -- one run of the judged program as a child process: the simulated runtime in its library path, the
// schedule and the checks in its environment, its report read back from a file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/judge/report.h"

namespace command {

struct RunOptions {
  std::string runtime;  // directory with libcudart.so of this build's CUDA, and libcuda.so.1
  std::vector<std::string> program;
  std::string machine, mode;
  uint64_t seed = 0;
  std::string checks, names, trace;
  double timeout = 0;                                                  // seconds, 0: none
  bool quiet = false;                                                  // the program's own output is dropped
  bool go_on = false, elect_lowest = false, align_as_declared = true;  // as in sim::JudgeOptions
  uint64_t patience = sim::kDefaultPatience;
};

struct RunResult {
  std::string mode;
  uint64_t seed = 0;
  bool timed_out = false;
  int signal = 0;       // that ended the program, 0: none
  int status = 0;       // exit status of the program
  bool judged = false;  // it wrote a whole report
  uint64_t grids = 0;
  std::vector<sim::Report> findings;
  sim::CertificateText certificate;
};

// Throws std::runtime_error when the program cannot be started at all.
RunResult run(const RunOptions& options);

}  // namespace command
