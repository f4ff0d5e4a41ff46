// fragment.cuh -- accumulators in the registers of a lane, and where they belong in C. The epilogue works on
// fragments and does not know where they come from: tensor memory, partial sums of split-K, or the register
// fragment of an mma. It is plain C++.
#pragma once

#include <cstdint>

#include "ptx/host_device.h"

namespace dualgemm {

struct TwoFloats {
  float first, second;
};

// A fragment has kWidth accumulators of each product, as raw bits of fp32: acc1[i] and acc2[i] make one
// element of C, or acc1[i] alone where an instance computes one product.
template <int kWidth, int kProducts = 2>
struct Fragment {
  uint32_t acc1[kWidth], acc2[kWidth];
};
template <int kWidth>
struct Fragment<kWidth, 1> {
  uint32_t acc1[kWidth];
};

// Where a lane's first element lies: its row counts from the first row of the tile, its column from the first
// column of C.
struct LanePlace {
  int row, column;
};

// A layout says where element i of a lane lies, counted from the lane's first element. From that element on C
// has `rows` more rows and `columns` more columns, itself included; they may be 0 or less. `exists` tells
// whether the first element exists, and `extent` how many elements exist along the layout, which may be more
// than the lane has. kLanesAside lanes of a warp have their elements i side by side in a row of C.

// A lane has one row of C.
struct AlongRow {
  static constexpr int kLanesAside = 1;
  DUALGEMM_HOST_DEVICE static constexpr int row(int) { return 0; }
  DUALGEMM_HOST_DEVICE static constexpr int column(int i) { return i; }
  DUALGEMM_HOST_DEVICE static constexpr bool exists(int rows, int) { return rows > 0; }
  DUALGEMM_HOST_DEVICE static constexpr int extent(int, int columns) { return columns; }
};

// A lane has one column of C: so it is with swap A/B where accumulators are finished as they lie in tensor
// memory. Where warps hold accumulators in registers, a general epilogue exchanges them through shared memory
// first, and then each lane has neighbouring columns of a row (AlongRow).
struct DownColumn {
  static constexpr int kLanesAside = 32;
  DUALGEMM_HOST_DEVICE static constexpr int row(int i) { return i; }
  DUALGEMM_HOST_DEVICE static constexpr int column(int) { return 0; }
  DUALGEMM_HOST_DEVICE static constexpr bool exists(int, int columns) { return columns > 0; }
  DUALGEMM_HOST_DEVICE static constexpr int extent(int rows, int) { return rows; }
};

}  // namespace dualgemm
