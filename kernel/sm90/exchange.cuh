// exchange.cuh -- how every other instance finishes a tile: sums in fp32 go through shared memory to lanes
// that each have neighbouring columns of a row, where the epilogue of all architectures finishes them. The
// parts of a sum meet here too: those of the k groups, and with split-K those of the CTAs of the cluster, of
// which each finishes its share of the rows. They are added in the order of the parts, so that the result
// does not depend on who was first.
//
//   split_k = 1:   sums of some rows  --shared memory-->  add up, finish  -->  the next rows
//   split_k > 1:   all sums  --shared memory of each CTA, cluster barrier-->  add up a share, finish
//
// Sums lie as [k group][product][row][column], four more columns than there are (kExchangePadding): eight
// columns of four rows, two apart, which a warp writes at once, lie in all banks, and so do 16 bytes of
// neighbouring items below, eight of which a warp reads at once. With split-K they lie where the rings were.
// That a CTA reads the sums of others where they are was faster on an H200 than that each sends its own.
#pragma once

#include "kernel/epilogue/epilogue.cuh"
#include "kernel/sm90/multiply.cuh"
#include "ptx/cluster.cuh"
#include "ptx/sync.cuh"

namespace dualgemm::sm90 {

template <class Traits>
class FinishExchanged {
  static constexpr Plan kPlan = Traits::kPlan;
  static constexpr int kSlices = kPlan.tile.split_k;
  using Exchanged = ExchangedSums<Traits>;
  using Place = Consumer<Traits>;
  // An item is so many columns of a row: 16 where C may be NVFP4, whose blocks are that long.
  static constexpr int kWidth = Traits::Arithmetic::kGeneral ? 16 : 8;
  static constexpr int kColumns = kPlan.consumers.columns;
  static constexpr int kAside = kColumns / kWidth;  // items of a row of a column group
  static constexpr int kShare = (Exchanged::kRows + kSlices - 1) / kSlices;  // rows that are finished at once
  static constexpr int kItems = kShare * kAside;
  static constexpr int kWarpsOfItems = (kItems + 31) / 32;

 public:
  DUALGEMM_DEVICE FinishExchanged(const Params& p, SharedStorage<Traits>& smem, Cta<Traits> cta,
                                  Place consumer)
      : p_(p), smem_(smem), cta_(cta), consumer_(consumer) {}

  DUALGEMM_DEVICE void finish(const Sums<Traits>& sums, const Tile& tile) {
    if constexpr (kSlices > 1) {
      ptx::barrier_sync(kMultiplyBarrier, Place::kThreads);  // the rings are read before sums are kept there
      keep(sums, 0);
      meet_cluster();  // the sums are written before any CTA reads them
      finish_rows(tile, static_cast<int>(cta_.slice) * kShare);
      meet_cluster();  // the sums are read before their CTA may exit
    } else {
#pragma unroll 1  // what finishes them is long where it is general
      for (int first = 0; first < kPlan.tile.m; first += Exchanged::kRows) {
        keep(sums, first);
        meet_column_group();  // the sums are written before they are read
        finish_rows(tile, first);
        meet_column_group();  // and read before they are written again
      }
    }
    if (cta_.slice == 0)
      for (int row = 0; row < kPlan.tile.m; row += kSfAtomRows) {
        const Epilogue<Traits, AlongRow> epilogue(p_, tile, {row, tile.n * kPlan.tile.n}, smem_.output);
        epilogue.output.complete_tile(consumer_.thread());
      }
  }

  // Every thread of the cluster arrives here: what it did to shared memory comes before what any of them does
  // to it next.
  DUALGEMM_DEVICE static void meet_cluster() {
    ptx::cluster_arrive_release();
    ptx::cluster_wait_acquire();
  }

 private:
  DUALGEMM_DEVICE void meet_column_group() const {
    ptx::barrier_sync(kColumnsBarrier + consumer_.column_group(), Place::kThreadsOfColumns);
  }

  // Writes the sums of the rows first .. first + kRows - 1 for this CTA.
  DUALGEMM_DEVICE void keep(const Sums<Traits>& sums, int first) {
    const int part = consumer_.k_group();
    constexpr bool kBoth = kPlan.mma.products == 2;
#pragma unroll
    for (int i = 0; i < Accumulators<Traits>::kCount; ++i) {
      const int row = 8 * (i / 4) + i % 2, second = i / 2 % 2;  // of a lane whose first row is 0
      if (row / Exchanged::kRows * Exchanged::kRows != first) continue;
#pragma unroll
      for (int loop = 0; loop < kPlan.mma.main_loops(); ++loop) {
        const int product = kBoth ? second : loop, aside = kBoth ? 0 : 8 * second;
        smem_.exchanged()
            .sum[part][product][row % Exchanged::kRows + consumer_.first_row()][consumer_.column() + aside] =
            sums.of_loop[loop].d[i];
      }
    }
  }

  // Adds up and finishes kShare rows of the tile from `first` on, whose sums are kept. Lanes that have no
  // item take part with a row that does not exist, as an epilogue may need all lanes of a warp.
  DUALGEMM_DEVICE void finish_rows(const Tile& tile, int first) {
    const int rows = min(tile.rows, kPlan.tile.m);
#pragma unroll 1
    for (int item = consumer_.thread_of_columns(); item < 32 * kWarpsOfItems;
         item += Place::kThreadsOfColumns) {
      const int row = item / kAside;
      const int column = consumer_.column_group() * kColumns + item % kAside * kWidth;
      const bool exists = item < kItems && first + row < rows;
      const Epilogue<Traits, AlongRow> epilogue(
          p_, tile, {exists ? first + row : tile.rows, tile.n * kPlan.tile.n + column}, smem_.output);
      Fragment<kWidth> sum{};
      if (exists) {
        add_up(sum.acc1, 0, (first + row) % Exchanged::kRows, column);
        if constexpr (kPlan.mma.accumulators == 2)
          add_up(sum.acc2, 1, (first + row) % Exchanged::kRows, column);
      }
      __syncwarp();
      epilogue.finish(sum, 0);
    }
  }

  DUALGEMM_DEVICE void add_up(uint32_t (&sum)[kWidth], int product, int row, int column) const {
    float x[kWidth] = {};
#pragma unroll
    for (int slice = 0; slice < kSlices; ++slice)
#pragma unroll
      for (int k_group = 0; k_group < kPlan.consumers.k_groups; ++k_group)
#pragma unroll
        for (int i = 0; i < kWidth; i += 4) {
          uint32_t four[4];
          read(four, slice, &smem_.exchanged().sum[k_group][product][row][column + i]);
#pragma unroll
          for (int j = 0; j < 4; ++j) x[i + j] += __uint_as_float(four[j]);
        }
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sum[i] = __float_as_uint(x[i] * Traits::kUnscale);
  }

  // Reads four sums of the CTA that has a slice of K, which lie there as `place` does here.
  DUALGEMM_DEVICE static void read(uint32_t (&four)[4], int slice, const float* place) {
    const uint32_t here = ptx::smem_u32(place);
    if constexpr (kSlices > 1)
      ptx::ld_shared_cluster_v4_b32(four, ptx::mapa(here, static_cast<uint32_t>(slice)));
    else ptx::ld_shared_v4_b32(four, here);
  }

  const Params& p_;
  SharedStorage<Traits>& smem_;
  Cta<Traits> cta_;
  Place consumer_;
};

}  // namespace dualgemm::sm90
