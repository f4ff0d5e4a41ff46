// device_problem.h -- a problem on the device: copied there, launched through the public interface, read back
// with every byte around the output checked. The CUDA runtime underneath is either the real one or the
// simulator's; nothing here can tell.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "host/dualgemm.h"
#include "support/device_set.h"
#include "support/problem.h"

namespace dualgemm_test {

// This is a set of one problem.
class DeviceProblem {
 public:
  DeviceProblem(const Problem& problem, const LaunchOptions& options);

  const dualgemm_args_t& args() const { return set_.args(); }
  void poison() { set_.poison(); }      // of C and its guards
  void upload(const Problem& problem);  // other data of the same shape, into the same buffers
  void launch(cudaStream_t stream) const { set_.launch(stream); }  // throws when the library refuses
  Output download() const { return set_.download().at(0); }        // throws when a byte outside C was written

 private:
  DeviceSet set_;
};

// Uploads, launches on the default stream, and reads back.
Output run(const Problem& problem, const LaunchOptions& options = {});

// These are the instances of the library: ids and what they are.
struct NamedInstance {
  int32_t id;
  dualgemm_instance_info_t info;
  dualgemm_activation_t activation;
};
std::vector<NamedInstance> all_instances();
std::vector<dualgemm_activation_t> all_activations();
std::vector<NamedInstance> instances_computing(dualgemm_activation_t activation);
// These compute kDefaultActivation.
std::vector<NamedInstance> dense_instances();    // for one problem or a batch
std::vector<NamedInstance> grouped_instances();  // for groups

// Returns launch options that force an instance, with the output type and the activation that are its own.
LaunchOptions use(const NamedInstance& instance);

}  // namespace dualgemm_test
