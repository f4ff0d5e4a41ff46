// device_set.h -- the problems of one launch on the device: laid out as the public header says, launched
// through it, read back with every byte that belongs to no problem checked. Between and after the problems
// stand NaN scale factors, the largest codes or exponents, and a poisoned C.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "host/include/dualgemm.h"
#include "support/device_memory.h"
#include "support/guarded.h"
#include "support/problem_set.h"

namespace dualgemm_test {

void check_status(dualgemm_status_t status);  // std::runtime_error with what the library says

// Returns how an instance divides K, as Output::split_k has it.
int32_t parts_of(const dualgemm_instance_info_t& info);

// A test may ask this of a launch besides the problem.
struct LaunchOptions {
  dualgemm_dtype_t dtype = DUALGEMM_DTYPE_FP16;
  dualgemm_dtype_t a_dtype = DUALGEMM_DTYPE_NVFP4;
  dualgemm_activation_t activation = kDefaultActivation;
  int32_t instance_id = 0;  // 0: the library chooses
  int32_t max_sms = 0;
  int64_t ldc_padding = 0;        // elements beyond n, and as many more as the next 16 bytes take
  bool alphas_on_device = false;  // alpha1_dev, alpha2_dev carry the alphas times 2, the host ones are 1/2
  bool encode_on_device = false;  // c_global_scale_dev likewise
  uint32_t flags = 0;             // DUALGEMM_FLAG_*
  bool d = false;                 // d1 and d2 are asked for
  dualgemm_dtype_t d_dtype = DUALGEMM_DTYPE_BF16;
  bool amax = false;  // amax_out is asked for
  float amax_before = 0;
};

// A test may ask this of a launch of several problems besides them.
struct SetOptions : LaunchOptions {
  SetOptions() = default;
  SetOptions(const LaunchOptions& options) : LaunchOptions(options) {}

  // There is room between the end of a problem and the next one, in units of the smallest legal step: so much
  // in A, SFA and C, twice as much in B1, three times in B2, four and five times in their scale factors, six
  // times in those of C, two and three times in D1 and D2. Between the exponents of rows there are as many.
  int32_t gap = 0;
  int32_t expected_rows = 0;  // of a group
  bool add_in_place = false;  // c_add is C
  // With OFFSETS there is room for the scale factors of A after any division of its rows, not just the one at
  // hand.
  bool any_division = false;
};

class DeviceSet {
 public:
  DeviceSet(const ProblemSet& set, const SetOptions& options);

  const dualgemm_args_t& args() const { return args_; }
  void poison();                                             // of what a launch writes, and its guards
  void upload(const ProblemSet& set);                        // other problems, with room for as many rows
  void upload_group_rows(const std::vector<int32_t>& rows);  // whatever the problems say
  void launch(cudaStream_t stream) const;                    // throws when the library refuses
  // Returns one output for every problem, after synchronising. Throws when a byte changed that belongs to
  // none of them.
  std::vector<Output> download() const;
  std::vector<Output> download_d(int side) const;  // the same of D1 (0) or D2 (1)
  float amax() const;

 private:
  void set_tensors(const ProblemSet& set);
  void set_strides();
  void set_epilogue(const ProblemSet& set);
  void set_problems(const ProblemSet& set);
  void set_one_product(const ProblemSet& set);
  void set_mxfp4();
  bool packed_a() const { return options_.a_dtype == DUALGEMM_DTYPE_NVFP4; }
  bool adds() const { return !c_add_.empty(); }
  void upload_a(const ProblemSet& set);
  void lay_out_c_add(const ProblemSet& set);
  void upload_exponents(DeviceArray<int16_t>& to, const ProblemSet& set,
                        const std::vector<int16_t> Problem::*exponents);
  void upload_rows(DeviceArray<float>& to, const ProblemSet& set, const std::vector<float> Problem::*factors,
                   int64_t stride);
  // Returns the blocks of 128 rows in the scale factors of A and of C: of one problem, with OFFSETS of all.
  int64_t row_blocks(const ProblemSet& set) const;
  int32_t split_k() const;  // of the instance that the library takes

  SetOptions options_;
  dualgemm_group_mode_t mode_;
  int64_t m_, n_, ldc_;
  // The layout has these strides: elements of A, B1, B2 and C, bytes of scale factors.
  int64_t stride_a_, stride_b1_, stride_b2_, stride_c_, stride_sfa_, stride_sfb1_, stride_sfb2_;
  std::vector<Rows> rows_, blocks_;  // of every problem; the first of its blocks in SFC
  std::vector<float> encodes_;
  DeviceArray<uint8_t> a_, b1_, b2_, sfa_, sfb1_, sfb2_;
  int64_t stride_rows_, stride_c_rows_, stride_bias_;  // of row factors, of elements of a bias
  DeviceArray<float> alphas_, encode_, row_scale_, c_row_scale_;
  DeviceArray<uint8_t> bias1_, bias2_;
  int64_t stride_exponents_;
  DeviceArray<int16_t> b1_exponents_, b2_exponents_;
  DeviceArray<int32_t> group_rows_;
  GuardedMatrix c_;
  std::vector<uint8_t> c_add_;  // as C lies; its copy on the device, unless it is C
  std::optional<DeviceArray<uint8_t>> c_add_device_;
  std::optional<GuardedFactors> sfc_;
  std::optional<GuardedMatrix> d_[2];
  DeviceArray<float> amax_;  // between two others
  std::optional<DeviceArray<uint8_t>> workspace_;
  dualgemm_args_t args_;
};

// Uploads, launches on the default stream, and reads back.
std::vector<Output> run(const ProblemSet& set, const SetOptions& options);

}  // namespace dualgemm_test
