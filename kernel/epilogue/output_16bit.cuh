// output_16bit.cuh -- C in fp16 or bf16, straight from registers to global memory.
#pragma once

#include <type_traits>

#include "kernel/common/scheduler.cuh"
#include "kernel/epilogue/fragment.cuh"
#include "kernel/epilogue/kinds.h"
#include "kernel/epilogue/list.h"
#include "kernel/params.h"
#include "ptx/global.cuh"
#include "ptx/math.cuh"

namespace dualgemm {

// Writes what a lane has of one tile. Traits tell how wide the stores of the architecture are.
template <class Traits, class Format, class Layout>
class Writer16 {
  static constexpr bool kFullSectors = limits_of(Traits::kPlan.arch).store_bytes == 32;
  static constexpr bool kRows = std::is_same_v<Layout, AlongRow>;

 public:
  static constexpr int32_t kStoreBytes =
      kRows ? limits_of(Traits::kPlan.arch).store_bytes : Layout::kLanesAside * 2;

  DUALGEMM_DEVICE Writer16(const Params& p, const Tile& tile, LanePlace at, const Nothing&)
      : exists_(Layout::exists(tile.rows - at.row, p.n - at.column)),
        rows_(tile.rows - at.row),
        columns_(p.n - at.column),
        ldc_(p.ldc),
        c_(static_cast<uint16_t*>(p.c) + tile.a_problem * p.c_stride + (int64_t{tile.row} + at.row) * p.ldc +
           at.column) {}

  // Returns how many elements of the lane exist in C, along the direction of the layout; possibly more than
  // the tile has.
  DUALGEMM_DEVICE int extent() const { return Layout::extent(rows_, columns_); }

  // These are some elements of the lane in the form in which they are written: two to a word.
  template <int kWidth>
  struct Results {
    uint32_t packed[kWidth / 2];
    DUALGEMM_DEVICE void put(int i, TwoFloats x) { packed[i / 2] = Format::pack(x.first, x.second); }
  };

  // Stores the elements first .. first + kWidth - 1.
  template <int kWidth>
  DUALGEMM_DEVICE void store(const Results<kWidth>& results, int first) const {
    if (!exists_) return;
    if constexpr (kRows) store_row<kWidth>(results.packed, first);
    else store_each<kWidth>(results.packed, first);
  }

 private:
  // The existing columns of a row are a multiple of 8. A row that starts on a 32-byte boundary is written in
  // full sectors; the row pitch promises only 16 bytes, and n only pieces of 8.
  template <int kWidth>
  DUALGEMM_DEVICE void store_row(const uint32_t* packed, int first) const {
    static_assert(kWidth % 16 == 0, "full sectors");
    uint16_t* row = c_ + first;
    const bool sectors = kFullSectors && reinterpret_cast<uintptr_t>(row) % 32 == 0;
#pragma unroll
    for (int column = 0; column < kWidth; column += 16) {
      const uint32_t* values = &packed[column / 2];
      if (sectors && first + column + 16 <= columns_) {
        if constexpr (kFullSectors) ptx::st_global_v8_b32(row + column, values);
      } else {
        if (first + column + 8 <= columns_) ptx::st_global_v4_b32(row + column, values);
        if (first + column + 16 <= columns_) ptx::st_global_v4_b32(row + column + 8, values + 4);
      }
    }
  }

  // Any other layout is written one element at a time. Down a column the 32 lanes of a warp write 64
  // neighbouring bytes of a row together.
  template <int kWidth>
  DUALGEMM_DEVICE void store_each(const uint32_t* packed, int first) const {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const int row = Layout::row(first + i), column = Layout::column(first + i);
      if (row < rows_ && column < columns_)
        c_[row * ldc_ + column] = static_cast<uint16_t>(packed[i / 2] >> (i % 2 * 16));
    }
  }

  // This says whether the lane has a part of C. It is computed before the accumulators are waited for: with
  // the comparison at the branch around the stores, ptxas 13.0 puts the second load of tensor memory after
  // the special functions of the gates, and the mma gets the accumulators back that much later.
  bool exists_;
  int rows_, columns_;  // of C, from the lane's first element on
  int64_t ldc_;
  uint16_t* c_;
};

// This is what fp16 and bf16 have in common. An output says which shared memory it needs for all epilogue
// warps, and what each of them has to do after its last tile.
struct Output16 {
  static constexpr int32_t kBits = 16;
  using Shared = Nothing;
  DUALGEMM_DEVICE static void complete() {}  // the stores are complete when the grid is
};

struct Fp16 : Output16 {
  static constexpr CType kType = CType::kFp16;
  static constexpr const char* kName = "fp16";
  template <class Traits, class Layout>
  using Writer = Writer16<Traits, Fp16, Layout>;
  DUALGEMM_DEVICE static uint32_t pack(float low, float high) { return ptx::cvt_rn_f16x2_f32(high, low); }
};

struct Bf16 : Output16 {
  static constexpr CType kType = CType::kBf16;
  static constexpr const char* kName = "bf16";
  template <class Traits, class Layout>
  using Writer = Writer16<Traits, Bf16, Layout>;
  DUALGEMM_DEVICE static uint32_t pack(float low, float high) { return ptx::cvt_rn_bf16x2_f32(high, low); }
};

}  // namespace dualgemm
