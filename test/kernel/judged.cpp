// judged.cpp -- see judged.h.
#include "kernel/judged.h"

#include "sim/schedule/schedule.h"
#include "sim/shim/shim.h"

namespace dualgemm_test {

namespace {

sim::JudgeOptions options_of(const std::string& mode, uint64_t seed) {
  sim::JudgeOptions options;
  options.mode = mode;
  options.seed = seed;
  options.program = "kernel_test";
  return options;
}

}  // namespace

Judged::Judged(const std::string& mode, uint64_t seed) : judge_(options_of(mode, seed), sim::shim::memory()) {
  sim::shim::set_judge(&judge_);
}

Judged::~Judged() {
  sim::shim::set_judge(nullptr);
  sim::shim::clear_fault();
}

std::string Judged::findings() const {
  std::string out;
  for (const sim::Report& report : judge_.reports())
    if (report.severity != 'A') out += sim::render(report, "kernel_test");
  return out;
}

std::string Judged::findings_and_certificate() const {
  std::string out = findings();
  for (const sim::CertificateText::Refused& refused : judge_.certificate().refused)
    out += std::to_string(refused.count) + " mbarriers of " + refused.init + ": " + refused.reason + "\n";
  return out;
}

Scheduled::Scheduled(const std::string& mode, uint64_t seed) : policy_(sim::make_policy(mode, seed)) {
  sim::shim::set_launch_options({policy_.get(), nullptr});
}

Scheduled::~Scheduled() { sim::shim::set_launch_options({}); }

}  // namespace dualgemm_test
