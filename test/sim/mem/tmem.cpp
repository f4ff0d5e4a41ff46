// tmem.cpp -- cells and allocation of tensor memory. Storage is lane-major because its heavy user, the tensor
// core, reads and writes accumulator rows: one row is one contiguous run of cells and of validity flags.
//
// Where an allocation is placed is not documented; here it takes the lowest free base that is a multiple of
// its size.
#include "sim/mem/tmem.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "sim/fault.h"

namespace sim {

constexpr int kMinAllocation = 32;

static size_t index(int lane, int column) {
  return static_cast<size_t>(lane) * Tmem::kColumns + static_cast<size_t>(column);
}

static std::string cell_name(int lane, int column) {
  return "TMEM lane " + std::to_string(lane) + " column " + std::to_string(column);
}

static bool legal_size(int columns) {
  return columns >= kMinAllocation && columns <= Tmem::kColumns && (columns & (columns - 1)) == 0;
}

Tmem::Tmem() : cells_(static_cast<size_t>(kLanes) * kColumns), valid_(cells_.size(), 0) { owner_.fill(-1); }

void Tmem::check(int lane, int column, int n) const {
  if (lane < 0 || lane >= kLanes || column < 0 || column + n > kColumns) {
    const bool begins_inside = lane >= 0 && lane < kLanes && column >= 0 && column < kColumns;
    throw Fault(FaultKind::kBounds,
                cell_name(lane, begins_inside ? kColumns : column) + " is outside the 128 x 512 array");
  }
  int16_t owners = 0;  // negative where one of them is
  for (int c = column; c < column + n; ++c) owners |= owner_[static_cast<size_t>(c)];
  if (owners >= 0) return;
  while (owner_[static_cast<size_t>(column)] >= 0) ++column;
  throw Fault(FaultKind::kBounds, cell_name(lane, column) + ": the column is not allocated");
}

uint32_t Tmem::read(int lane, int column) const {
  uint32_t value;
  read_row(lane, column, 1, &value);
  return value;
}

void Tmem::write(int lane, int column, uint32_t value) { write_row(lane, column, 1, &value); }

void Tmem::poison(int lane, int column) {
  check(lane, column, 1);
  valid_[index(lane, column)] = 0;
}

void Tmem::read_row(int lane, int column, int n, uint32_t* out) const {
  if (n <= 0) return;
  check(lane, column, n);
  const size_t first = index(lane, column);
  const size_t count = static_cast<size_t>(n);
  if (const void* poison = std::memchr(&valid_[first], 0, count)) {
    const int bad = column + static_cast<int>(static_cast<const uint8_t*>(poison) - &valid_[first]);
    throw Fault(FaultKind::kPoison, cell_name(lane, bad) + " was never written");
  }
  std::memcpy(out, &cells_[first], count * sizeof(uint32_t));
}

int Tmem::read_row_with_poison(int lane, int column, int n, uint32_t* out, uint8_t* valid) const {
  check(lane, column, n);
  const size_t first = index(lane, column);
  const size_t count = static_cast<size_t>(n);
  std::memcpy(out, &cells_[first], count * sizeof(uint32_t));
  std::memcpy(valid, &valid_[first], count);
  const void* poison = std::memchr(valid, 0, count);
  return poison == nullptr ? n : static_cast<int>(static_cast<const uint8_t*>(poison) - valid);
}

void Tmem::write_row(int lane, int column, int n, const uint32_t* in) {
  if (n <= 0) return;
  check(lane, column, n);
  const size_t first = index(lane, column);
  const size_t count = static_cast<size_t>(n);
  std::memcpy(&cells_[first], in, count * sizeof(uint32_t));
  std::memset(&valid_[first], 0xFF, count);
}

int Tmem::alloc(int columns) {
  const std::string what = "tcgen05.alloc of " + std::to_string(columns) + " columns";
  if (!legal_size(columns)) protocol_fault(what + ": the size must be a power of two from 32 to 512");
  if (relinquished_) protocol_fault(what + " after tcgen05.relinquish_alloc_permit");
  if (last_columns_ != 0 && columns > last_columns_)
    protocol_fault(what + " after one of " + std::to_string(last_columns_) +
                   ": allocations of a CTA must not grow");

  for (int base = 0; base < kColumns; base += columns) {
    bool free = true;
    for (int c = base; c < base + columns; ++c) free = free && owner_[static_cast<size_t>(c)] < 0;
    if (!free) continue;
    std::fill_n(owner_.begin() + base, columns, static_cast<int16_t>(base));
    // Contents of new columns are undefined.
    for (int lane = 0; lane < kLanes; ++lane)
      std::memset(&valid_[index(lane, base)], 0, static_cast<size_t>(columns));
    last_columns_ = columns;
    return base;
  }
  return -1;
}

void Tmem::dealloc(int base, int columns) {
  const std::string what =
      "tcgen05.dealloc of " + std::to_string(columns) + " columns at column " + std::to_string(base);
  if (!legal_size(columns)) protocol_fault(what + ": the size must be a power of two from 32 to 512");
  if (base < 0 || base + columns > kColumns) protocol_fault(what + ": outside the array");
  for (int c = base; c < base + columns; ++c)
    if (owner_[static_cast<size_t>(c)] != base)
      protocol_fault(what + ": no allocation of that base and size is held");
  const int end = base + columns;
  if (end < kColumns && owner_[static_cast<size_t>(end)] == base)
    protocol_fault(what + ": the allocation there is larger");
  for (int c = base; c < end; ++c) owner_[static_cast<size_t>(c)] = -1;
}

void Tmem::relinquish() {
  if (relinquished_) protocol_fault("tcgen05.relinquish_alloc_permit twice in one CTA");
  relinquished_ = true;
}

int Tmem::allocated_columns() const {
  int held = 0;
  for (int16_t owner : owner_) held += owner >= 0;
  return held;
}

}  // namespace sim
