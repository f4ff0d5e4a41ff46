// region.h -- which bytes a tensor of one or several problems takes, and whether two tensors share one. It
// knows addresses as numbers only.
#pragma once

#include <cstdint>

namespace dualgemm {

// A region is `problems` times `rows` rows of `row_bytes` bytes: rows are `pitch` bytes apart, problems
// `stride`. Neither is looked at where there is only one. Rows do not overlap, and a problem ends before the
// next one begins. From the first byte to the last there are fewer than 2^63, and none lies beyond the last
// address.
struct Region {
  const char* name;
  const void* base;
  int64_t problems, stride;
  int64_t rows, pitch;
  int64_t row_bytes;
};

// Returns false only if the two share no byte, and true where that cannot be told. It is exact for equal
// strides and pitches, and for a tensor of one problem beside one of several; problems at unequal strides,
// and rows at unequal pitches, may be taken for overlapping once the ranges of addresses from their first
// byte to their last do.
bool overlap(const Region& x, const Region& y);

}  // namespace dualgemm
