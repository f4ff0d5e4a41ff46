// tmem.h -- tensor memory of one SM: 128 lanes x 512 columns of 32-bit cells, with one validity flag per cell
// and the allocation state of tcgen05.alloc (PTX ISA "Tensor Memory Allocation and Management Instructions").
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace sim {

class Tmem {
 public:
  static constexpr int kLanes = 128;
  static constexpr int kColumns = 512;

  Tmem();

  // Cells. Lane-major storage: the cells of one lane are contiguous over columns. Fault kBounds when the cell
  // is outside the array or its column is not allocated, kPoison when it was never written.
  uint32_t read(int lane, int column) const;
  void write(int lane, int column, uint32_t value);
  void poison(int lane, int column);
  // Row-wise access for the tensor core: n cells of one lane starting at a column.
  void read_row(int lane, int column, int n, uint32_t* out) const;
  void write_row(int lane, int column, int n, const uint32_t* in);

  // Allocation. alloc returns the base column, or -1 when it must wait for space. Faults kProtocol on every
  // rule the ISA and the toolchain's guardrails name: power of two >= 32, not growing, not after relinquish,
  // free what was got.
  int alloc(int columns);
  void dealloc(int base, int columns);
  void relinquish();
  bool relinquished() const { return relinquished_; }
  int allocated_columns() const;  // still held: a leak when the CTA exits

 private:
  void check(int lane, int column) const;
  std::vector<uint32_t> cells_;
  std::vector<uint8_t> valid_;
  std::array<int16_t, kColumns> owner_;  // base column of the allocation that holds this column, -1 when free
  int last_columns_ = 0;                 // size of the previous alloc, 0 before the first
  bool relinquished_ = false;
};

}  // namespace sim
