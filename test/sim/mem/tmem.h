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

  // Cells are stored lane by lane: those of one lane are contiguous over columns. All access throws Fault
  // kBounds when the cell is outside the array or its column is not allocated; reading throws kPoison when it
  // was never written.
  void check(int lane, int column, int n) const;  // n columns of a lane
  uint32_t read(int lane, int column) const;
  void write(int lane, int column, uint32_t value);
  void poison(int lane, int column);
  // Access n cells of one lane, starting at a column, for the tensor core.
  void read_row(int lane, int column, int n, uint32_t* out) const;
  // Reads cells that may be poison. Returns where the first such one is among them, n when there is none.
  int read_row_with_poison(int lane, int column, int n, uint32_t* out, uint8_t* valid) const;
  void write_row(int lane, int column, int n, const uint32_t* in);

  // alloc returns the base column, or -1 when it must wait for space. A Fault kProtocol enforces every rule
  // that the ISA and the toolchain's guardrails name: a size is a power of two >= 32 and not larger than the
  // one before, nothing is allocated after relinquish, and only what was allocated is freed.
  int alloc(int columns);
  void dealloc(int base, int columns);
  void relinquish();
  bool relinquished() const { return relinquished_; }
  int allocated_columns() const;  // still held: a leak when the CTA exits

 private:
  std::vector<uint32_t> cells_;
  std::vector<uint8_t> valid_;
  std::array<int16_t, kColumns> owner_;  // base column of the allocation that holds this column, -1 when free
  int last_columns_ = 0;                 // size of the previous alloc, 0 before the first
  bool relinquished_ = false;
};

}  // namespace sim
