// device_set.h -- the problems of one launch on the device: laid out as the public header says, launched
// through it, read back with every byte that belongs to no problem checked. Between and after the problems
// stand NaN scale factors, the largest codes, and a poisoned C.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "host/dualgemm.h"
#include "support/device_memory.h"
#include "support/problem_set.h"

namespace dualgemm_test {

void check_status(dualgemm_status_t status);  // std::runtime_error with what the library says

// A test may ask this of a launch besides the problem.
struct LaunchOptions {
  dualgemm_dtype_t dtype = DUALGEMM_DTYPE_FP16;
  dualgemm_activation_t activation = kDefaultActivation;
  int32_t instance_id = 0;  // 0: the library chooses
  int32_t max_sms = 0;
  int64_t ldc_padding = 0;        // elements beyond n, a multiple of 8
  bool alphas_on_device = false;  // alpha1_dev, alpha2_dev carry the alphas times 2, the host ones are 1/2
  uint32_t flags = 0;             // DUALGEMM_FLAG_*
};

// A test may ask this of a launch of several problems besides them.
struct SetOptions : LaunchOptions {
  SetOptions() = default;
  SetOptions(const LaunchOptions& options) : LaunchOptions(options) {}

  // There is room between the end of a problem and the next one, in units of the smallest legal step: so much
  // in A, SFA and C, twice as much in B1, three times in B2, four and five times in their scale factors.
  int32_t gap = 0;
  int32_t expected_rows = 0;  // of a group
  // With OFFSETS there is room for the scale factors of A after any division of its rows, not just the one at
  // hand.
  bool any_division = false;
};

class DeviceSet {
 public:
  DeviceSet(const ProblemSet& set, const SetOptions& options);

  const dualgemm_args_t& args() const { return args_; }
  void poison();                                             // of C and its guards
  void upload(const ProblemSet& set);                        // other problems, with room for as many rows
  void upload_group_rows(const std::vector<int32_t>& rows);  // whatever the problems say
  void launch(cudaStream_t stream) const;                    // throws when the library refuses
  // Returns one output for every problem, after synchronising. Throws when a byte changed that belongs to
  // none of them.
  std::vector<Output> download() const;

 private:
  size_t sfa_bytes(const ProblemSet& set) const;  // of one problem, with OFFSETS of all of them
  int32_t split_k() const;                        // of the instance that the library takes

  SetOptions options_;
  dualgemm_group_mode_t mode_;
  int64_t m_, n_, ldc_;
  // The layout has these strides: elements of A, B1, B2 and C, bytes of scale factors.
  int64_t stride_a_, stride_b1_, stride_b2_, stride_c_, stride_sfa_, stride_sfb1_, stride_sfb2_;
  std::vector<int64_t> first_rows_, rows_;  // of every problem
  DeviceArray<uint8_t> a_, b1_, b2_, sfa_, sfb1_, sfb2_;
  DeviceArray<float> alphas_;
  DeviceArray<int32_t> group_rows_;
  DeviceArray<uint16_t> c_;
  dualgemm_args_t args_;
};

// Uploads, launches on the default stream, and reads back.
std::vector<Output> run(const ProblemSet& set, const SetOptions& options);

}  // namespace dualgemm_test
