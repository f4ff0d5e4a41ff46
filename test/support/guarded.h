// guarded.h -- what a launch writes, on the device between guards: poisoned before the launch, and read back
// with every byte that belongs to no problem checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/device_memory.h"
#include "support/problem.h"

namespace dualgemm_test {

// The rows of one problem in a tensor that all share.
struct Rows {
  int64_t first, count;
};

// These are matrices of n columns, one for each problem, or one whose rows the problems share.
class GuardedMatrix {
 public:
  struct Layout {
    dualgemm_dtype_t dtype;
    int64_t problems, rows, n;
    int64_t pitch, stride;  // elements from row to row, a multiple of 16 bytes, and from problem to problem
  };
  GuardedMatrix(std::string name, const Layout& layout);

  void* data() const { return bytes_.data() + kGuard; }
  void poison();
  // Returns the rows of problem i without what is between them. Throws when another byte was written.
  std::vector<Output> download(const std::vector<Rows>& rows) const;

 private:
  static constexpr int64_t kGuard = 1024;

  std::string name_;
  Layout layout_;
  DeviceArray<uint8_t> bytes_;
};

// These are the factors of NVFP4 matrices of n columns, in the layout of ref/formats.h: of every block of 128
// rows that holds a row all bytes are to be written, what is no row's or no column's as zero, and no other
// block. Blocks of 128 rows follow each other, from one problem to the next at once or by a stride.
class GuardedFactors {
 public:
  struct Layout {
    int64_t n;
    int64_t blocks;  // of 128 rows, in each problem or of all together
    int64_t problems, stride;
  };
  explicit GuardedFactors(const Layout& layout);

  void* data() const { return bytes_.data() + kGuard; }
  void poison();
  // Returns the factors [count, n / 16] of each problem, whose `first` is the first of its blocks. Throws
  // when padding is not zero, or a byte was written that is none of theirs.
  std::vector<std::vector<uint8_t>> download(const std::vector<Rows>& rows) const;

 private:
  static constexpr int64_t kGuard = 16 * 33;  // keeps what follows aligned to 16 bytes, and to no more

  Layout layout_;
  DeviceArray<uint8_t> bytes_;
};

}  // namespace dualgemm_test
