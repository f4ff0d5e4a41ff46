// device_problem.h -- a problem on the device: copied there, launched through the public interface, read back
// with every byte around the output checked. The CUDA runtime underneath is either the real one or the
// simulator's; nothing here can tell.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "host/dualgemm.h"
#include "support/problem.h"

namespace dualgemm_test {

void check_cuda(cudaError_t error, const char* what);  // throws std::runtime_error
void check_status(dualgemm_status_t status);           // likewise, with what the library says

// Device memory of exactly `bytes`, freed with the object.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(size_t bytes);
  explicit DeviceBuffer(const std::vector<uint8_t>& bytes);
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  void* get() const { return data_; }
  size_t size() const { return bytes_; }
  void upload(const void* from, size_t bytes, size_t offset = 0);
  void download(void* to, size_t bytes, size_t offset = 0) const;

 private:
  void* data_ = nullptr;
  size_t bytes_;
};

// What a test may ask of a launch besides the problem.
struct LaunchOptions {
  dualgemm_dtype_t dtype = DUALGEMM_DTYPE_FP16;
  dualgemm_activation_t activation = kDefaultActivation;
  int32_t config_id = 0;  // 0: the library chooses
  int32_t max_sms = 0;
  int64_t ldc_padding = 0;        // elements beyond n, a multiple of 8
  bool alphas_on_device = false;  // alpha1_dev, alpha2_dev carry the factors, the host ones are 1
  uint32_t flags = 0;             // DUALGEMM_FLAG_*
};

// A problem on the device, with an output buffer between guard bytes. Everything outside the m x n outputs
// must keep its poison; C itself starts as NaN, so an output that was never written cannot pass a comparison.
class DeviceProblem {
 public:
  DeviceProblem(const Problem& problem, const LaunchOptions& options);

  const dualgemm_args_t& args() const { return args_; }
  void poison();                           // of C and its guards
  void upload(const Problem& problem);     // other data of the same shape, into the same buffers
  void launch(cudaStream_t stream) const;  // throws when the library refuses
  Output download() const;                 // after synchronising; throws when a guard byte changed

 private:
  LaunchOptions options_;
  int64_t m_, n_, ldc_;
  DeviceBuffer a_, b1_, b2_, sfa_, sfb1_, sfb2_, alphas_, c_;
  dualgemm_args_t args_;
};

// Upload, launch on the default stream, read back.
Output run(const Problem& problem, const LaunchOptions& options = {});

// The configurations of the library: ids and what they are.
struct NamedConfig {
  int32_t id;
  dualgemm_config_info_t info;
  dualgemm_activation_t activation;
};
std::vector<NamedConfig> all_configs();
std::vector<dualgemm_activation_t> all_activations();
std::vector<NamedConfig> configs_computing(dualgemm_activation_t activation);
// Of the default activation.
std::vector<NamedConfig> dense_configs();    // for one problem or a batch
std::vector<NamedConfig> grouped_configs();  // for groups

// Launch options that force a configuration, with the output type and the activation that are its own.
LaunchOptions use(const NamedConfig& config);

}  // namespace dualgemm_test
