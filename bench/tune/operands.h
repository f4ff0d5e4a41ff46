// operands.h -- operands of launches that are timed and not verified: made on the device from a few megabytes
// of random numbers, so that many sets of them take no time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/shapes.h"
#include "dualgemm.h"
#include "test/support/device_memory.h"

namespace bench {

// Random codes, elements of an A that has others than codes, and scale factors of the weights, on the device.
class RandomNumbers {
 public:
  explicit RandomNumbers(dualgemm_dtype_t a_dtype);
  enum Kind { kCodes, kElements, kScales };
  // Fills memory with numbers of a kind, each time others.
  void fill(Kind kind, const dualgemm_test::DeviceArray<uint8_t>& memory) const;

 private:
  std::unique_ptr<dualgemm_test::DeviceArray<uint8_t>> numbers_[3];
  mutable size_t next_ = 0;
};

// One set: everything that a launch of a shape reads and writes.
class TimedOperands {
 public:
  TimedOperands(const Shape& shape, const Epilogue& epilogue, const RandomNumbers& numbers,
                const dualgemm_test::DeviceArray<uint8_t>& workspace);
  const dualgemm_args_t& args() const { return args_; }

 private:
  using Bytes = dualgemm_test::DeviceArray<uint8_t>;
  Bytes a_, b1_, b2_, sfa_, sfb1_, sfb2_;
  dualgemm_test::DeviceArray<float> a_row_factors_;
  dualgemm_test::DeviceArray<int16_t> b1_row_exponents_, b2_row_exponents_;
  Bytes c_, sfc_;
  dualgemm_test::DeviceArray<int32_t> group_rows_;
  dualgemm_args_t args_;
};

// Returns the bytes of a set.
double timed_bytes(const Shape& shape, const Epilogue& epilogue);

// The arguments of a launch without pointers. With OFFSETS the library is left to count the rows.
dualgemm_args_t timed_sizes(const Shape& shape, const Epilogue& epilogue);

}  // namespace bench
