// region.h -- which bytes a tensor of one or several problems takes, and whether two tensors share any byte.
// Addresses are only numbers here.
#pragma once

#include <cstdint>

namespace dualgemm {

// A region is `problems` times `rows` rows of `row_bytes` bytes. Rows are `pitch` bytes apart, and problems
// `stride` bytes. `pitch` is not looked at where there is only one row, nor `stride` where there is only one
// problem. Rows do not overlap, and a problem ends before the next one begins. From the first byte to the
// last there are fewer than 2^63 bytes, and none of them lies beyond the last address.
struct Region {
  const char* name;
  const void* base;
  int64_t problems, stride;
  int64_t rows, pitch;
  int64_t row_bytes;
};

// Returns false only if the two regions share no byte, and true if that cannot be told. The answer is exact
// for equal strides and pitches, also where one region has one problem and the other several. Problems with
// unequal strides, and rows with unequal pitches, may be taken for overlapping if the ranges of addresses
// from their first byte to their last overlap.
bool overlap(const Region& x, const Region& y);

}  // namespace dualgemm
