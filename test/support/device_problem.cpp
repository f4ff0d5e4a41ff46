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

std::vector<NamedInstance> all_instances() {
  std::vector<NamedInstance> out;
  for (int32_t id = 1; id <= dualgemm_instance_count(); ++id) {
    NamedInstance instance{id, {}, activation_of(dualgemm::instance(id - 1))};
    check_status(dualgemm_instance_info(id, &instance.info));
    out.push_back(instance);
  }
  return out;
}

std::vector<dualgemm_activation_t> all_activations() {
  std::set<dualgemm_activation_t> out;
  for (const dualgemm::Instance& instance : dualgemm::instances()) out.insert(activation_of(instance));
  return {out.begin(), out.end()};
}

std::vector<NamedInstance> instances_computing(dualgemm_activation_t activation) {
  std::vector<NamedInstance> out = all_instances();
  std::erase_if(out, [&](const NamedInstance& instance) { return instance.activation != activation; });
  return out;
}

namespace {

std::vector<NamedInstance> instances_where(bool grouped) {
  std::vector<NamedInstance> out = instances_computing(kDefaultActivation);
  std::erase_if(out, [&](const NamedInstance& instance) { return (instance.info.grouped != 0) != grouped; });
  return out;
}

}  // namespace

std::vector<NamedInstance> dense_instances() { return instances_where(false); }
std::vector<NamedInstance> grouped_instances() { return instances_where(true); }

LaunchOptions use(const NamedInstance& instance) {
  LaunchOptions options;
  options.dtype = static_cast<dualgemm_dtype_t>(instance.info.c_dtype);
  options.activation = instance.activation;
  options.instance_id = instance.id;
  return options;
}

}  // namespace dualgemm_test
