// device_problem.cpp -- see device_problem.h.
#include "support/device_problem.h"

#include <set>

#include "kernel/instance.h"

namespace dualgemm_test {
namespace {

ProblemSet set_of(const Problem& p) {
  ProblemSet set;
  set.m = p.m;
  set.n = p.n;
  set.k = p.k;
  set.problems = {p};
  return set;
}

}  // namespace

DeviceProblem::DeviceProblem(const Problem& problem, const LaunchOptions& options)
    : set_(set_of(problem), options) {}

void DeviceProblem::upload(const Problem& problem) { set_.upload(set_of(problem)); }

Output run(const Problem& problem, const LaunchOptions& options) {
  DeviceProblem device(problem, options);
  device.launch(nullptr);
  return device.download();
}

namespace {

dualgemm_activation_t activation_of(const dualgemm::Instance& instance) {
  return static_cast<dualgemm_activation_t>(instance.epilogue.activation);
}

}  // namespace

std::vector<NamedConfig> all_configs() {
  std::vector<NamedConfig> out;
  for (int32_t id = 1; id <= dualgemm_config_count(); ++id) {
    NamedConfig config{id, {}, activation_of(dualgemm::instance(id - 1))};
    check_status(dualgemm_config_info(id, &config.info));
    out.push_back(config);
  }
  return out;
}

std::vector<dualgemm_activation_t> all_activations() {
  std::set<dualgemm_activation_t> out;
  for (const dualgemm::Instance& instance : dualgemm::instances()) out.insert(activation_of(instance));
  return {out.begin(), out.end()};
}

std::vector<NamedConfig> configs_computing(dualgemm_activation_t activation) {
  std::vector<NamedConfig> out = all_configs();
  std::erase_if(out, [&](const NamedConfig& config) { return config.activation != activation; });
  return out;
}

namespace {

std::vector<NamedConfig> configs_where(bool grouped) {
  std::vector<NamedConfig> out = configs_computing(kDefaultActivation);
  std::erase_if(out, [&](const NamedConfig& config) { return (config.info.grouped != 0) != grouped; });
  return out;
}

}  // namespace

std::vector<NamedConfig> dense_configs() { return configs_where(false); }
std::vector<NamedConfig> grouped_configs() { return configs_where(true); }

LaunchOptions use(const NamedConfig& config) {
  LaunchOptions options;
  options.dtype = static_cast<dualgemm_dtype_t>(config.info.c_dtype);
  options.activation = config.activation;
  options.config_id = config.id;
  return options;
}

}  // namespace dualgemm_test
