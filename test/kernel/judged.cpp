// judged.cpp -- see judged.h.
#include "kernel/judged.h"

#include "sim/exec/policy.h"
#include "sim/judge/judge.h"
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

struct Judged::Impl {
  sim::Judge judge;
  explicit Impl(const sim::JudgeOptions& options) : judge(options, sim::shim::memory()) {}
};

Judged::Judged(const std::string& mode, uint64_t seed)
    : impl_(std::make_unique<Impl>(options_of(mode, seed))) {
  sim::shim::set_judge(&impl_->judge);
}

Judged::~Judged() {
  sim::shim::set_judge(nullptr);
  sim::shim::clear_fault();
}

std::string Judged::findings() const {
  std::string out;
  for (const sim::Report& report : impl_->judge.reports())
    if (report.severity != 'A') out += sim::render(report, "kernel_test");
  return out;
}

std::string Judged::findings_and_certificate() const {
  std::string out = findings();
  for (const sim::CertificateText::Refused& refused : impl_->judge.certificate().refused)
    out += std::to_string(refused.count) + " mbarriers of " + refused.init + ": " + refused.reason + "\n";
  return out;
}

struct Scheduled::Impl {
  std::unique_ptr<sim::Policy> policy;
  Impl(const std::string& mode, uint64_t seed) : policy(sim::make_policy(mode, seed)) {}
};

Scheduled::Scheduled(const std::string& mode, uint64_t seed) : impl_(std::make_unique<Impl>(mode, seed)) {
  sim::shim::set_launch_options({impl_->policy.get(), nullptr});
}

Scheduled::~Scheduled() { sim::shim::set_launch_options({}); }

}  // namespace dualgemm_test
