// exchange.cuh -- how a general instance finishes a tile: sums in fp32 go through shared memory, so that each
// lane gets neighbouring columns of a row, which the epilogue that all architectures share then finishes.
//
//   sums of some rows  --shared memory-->  finish  -->  the next rows
//
// Sums lie as [product][row][column], with four columns of padding (kExchangePadding), which avoids bank
// conflicts. In one access a warp writes eight columns in each of the rows r, r + 2, r + 4 and r + 6: the 32
// words lie in 32 different banks. In one access it reads 16 bytes for each of eight lanes, every eighth
// column of 32 columns in two rows: these, too, lie in 32 different banks.
#pragma once

#include "kernel/epilogue/epilogue.cuh"
#include "kernel/sm90/multiply.cuh"
#include "ptx/cluster.cuh"
#include "ptx/sync.cuh"

namespace dualgemm::sm90 {

template <class Traits>
class FinishExchanged {
  static constexpr Plan kPlan = Traits::kPlan;
  using Exchanged = ExchangedSums<Traits>;
  static constexpr int kRows = Exchanged::kRows;  // at once
  // An item is this many columns of a row. The items of a warp are 32 columns of neighbouring rows.
  static constexpr int kWidth = kExchangedColumns;
  static constexpr int kColumns = kPlan.consumers.columns;
  static constexpr int kAside = 32 / kWidth;
  static constexpr int kItems = kRows * kColumns / kWidth;
  static_assert(kItems % 32 == 0, "whole warps");

 public:
  DUALGEMM_DEVICE FinishExchanged(const Params& p, SharedStorage<Traits>& smem, Cta<Traits> cta,
                                  Consumer<Traits> consumer)
      : p_(p),
        smem_(smem),
        exchanged_(smem.results()),
        slice_(static_cast<int>(cta.slice)),
        consumer_(consumer) {}

  DUALGEMM_DEVICE void finish(const Sums<Traits>& sums, const Tile& tile) {
    const int rows = min(tile.rows, kPlan.tile.m);
#pragma unroll 1  // what finishes them is long
    for (int first = 0; first < rows; first += kRows) {
      if (!Reduction<Traits>::finishes(slice_, first)) continue;
      keep(sums, first);
      meet_column_group();  // the sums are written before they are read
      finish_rows(tile, first, rows);
      meet_column_group();  // and read before they are written again
    }
    if (slice_ == 0)
      for (int row = 0; row < kPlan.tile.m; row += kSfAtomRows) {
        const Epilogue<Traits, AlongRow> epilogue(p_, tile, {row, tile.n * kPlan.tile.n}, smem_.output);
        epilogue.output.complete_tile(consumer_.thread());
      }
  }

 private:
  DUALGEMM_DEVICE void meet_column_group() const {
    ptx::barrier_sync(kColumnsBarrier + consumer_.column_group(), kWarpgroup);
  }

  // Writes the sums of the rows first .. first + kRows - 1.
  DUALGEMM_DEVICE void keep(const Sums<Traits>& sums, int first) {
    constexpr bool kBoth = kPlan.mma.products == 2;
#pragma unroll
    for (int i = 0; i < Accumulators<Traits>::kCount; ++i) {
      const int row = 8 * (i / 4) + i % 2, second = i / 2 % 2;  // for a lane whose first row is 0
      if (row / kRows * kRows != first) continue;
#pragma unroll
      for (int loop = 0; loop < kPlan.mma.main_loops(); ++loop) {
        const int product = kBoth ? second : loop, aside = kBoth ? 0 : 8 * second;
        exchanged_.sum[product][row % kRows + consumer_.first_row()][consumer_.column() + aside] =
            sums.of_loop[loop].d[i];
      }
    }
  }

  // Finishes kRows rows of the tile from `first` on, as far as they exist, whose sums keep() has written.
  // Lanes whose row does not exist take part, because an epilogue may need all lanes of a warp.
  DUALGEMM_DEVICE void finish_rows(const Tile& tile, int first, int rows) {
#pragma unroll 1
    for (int item = consumer_.thread_of_columns(); item < kItems; item += kWarpgroup) {
      const int row = item / kAside % kRows;
      const int column =
          consumer_.column_group() * kColumns + item / kAside / kRows * 32 + item % kAside * kWidth;
      const bool exists = first + row < rows;
      const Epilogue<Traits, AlongRow> epilogue(
          p_, tile, {exists ? first + row : tile.rows, tile.n * kPlan.tile.n + column}, smem_.output);
      Fragment<kWidth, kPlan.mma.accumulators> sum{};
      if (exists) {
        load(sum.acc1, 0, row, column);
        if constexpr (kPlan.mma.accumulators == 2) load(sum.acc2, 1, row, column);
      }
      __syncwarp();
      epilogue.finish(sum, 0);
    }
  }

  DUALGEMM_DEVICE void load(uint32_t (&sum)[kWidth], int product, int row, int column) const {
#pragma unroll
    for (int i = 0; i < kWidth; i += 4) {
      uint32_t four[4];
      ptx::ld_shared_v4_b32(four, ptx::smem_u32(&exchanged_.sum[product][row][column + i]));
#pragma unroll
      for (int j = 0; j < 4; ++j) sum[i + j] = __float_as_uint(__uint_as_float(four[j]) * Traits::kUnscale);
    }
  }

  const Params& p_;
  SharedStorage<Traits>& smem_;
  Exchanged& exchanged_;
  int slice_;
  Consumer<Traits> consumer_;
};

}  // namespace dualgemm::sm90
