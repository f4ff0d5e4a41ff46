// exchange.cuh -- how every other instance finishes a tile: sums in fp32 go through shared memory to lanes
// that each have neighbouring columns of a row, where the epilogue of all architectures finishes them. The
// parts of a sum meet here too: those of the k groups, and with split-K those of the CTAs of the cluster, of
// which each finishes its share of the rows. They are added in the order of the parts, so that the result
// does not depend on who was first.
//
//   split_k = 1:   sums of some rows  --shared memory-->  add up, finish  -->  the next rows
//   split_k > 1:   all sums  --shared memory of the rows' CTA-->  cluster barrier  -->  add up, finish
//
// Sums lie as [part][product][row][column], four more columns than there are (kExchangePadding): eight
// columns of four rows, two apart, which a warp writes at once, lie in all banks, and so do 16 bytes of
// neighbouring items below, eight of which a warp reads at once. With split-K those of many rows lie where
// the rings were (traits.cuh), so that the cluster meets before they are sent as well.
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
  using Sums = ExchangedSums<Traits>;
  using Place = Consumer<Traits>;
  // An item is so many columns of a row: 16 where C may be NVFP4, whose blocks are that long.
  static constexpr int kWidth = Traits::Arithmetic::kGeneral ? 16 : 8;
  static constexpr int kAside = kColumns / kWidth;  // items of a row of a column group
  static constexpr int kItems = Sums::kRows * kAside;
  static constexpr int kWarpsOfItems = (kItems + 31) / 32;

 public:
  DUALGEMM_DEVICE FinishExchanged(const Params& p, SharedStorage<Traits>& smem, Cta<Traits> cta,
                                  Place consumer)
      : p_(p), smem_(smem), cta_(cta), consumer_(consumer) {}

  DUALGEMM_DEVICE void finish(const Accumulators<Traits>& sums, const Tile& tile) {
    if constexpr (kSlices > 1) {
      send(sums);
      // The sums are written before they are read below. From here on nobody reaches into another CTA, so
      // each may exit when it likes.
      meet_cluster();
      finish_rows(tile, static_cast<int>(cta_.slice) * Sums::kRows);
    } else {
#pragma unroll 1  // what finishes them is long where it is general
      for (int first = 0; first < kPlan.tile.m; first += Sums::kRows) {
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
  DUALGEMM_DEVICE void keep(const Accumulators<Traits>& sums, int first) {
    const int part = consumer_.k_group();
#pragma unroll
    for (int i = 0; i < Accumulators<Traits>::kCount; ++i) {
      const int row = 8 * (i / 4) + i % 2, product = i / 2 % 2;  // of a lane whose first row is 0
      if (row / Sums::kRows * Sums::kRows != first) continue;
      smem_.exchanged().sum[part][product][row % Sums::kRows + consumer_.first_row()][consumer_.column()] =
          sums.d[i];
    }
  }

  // Sends the sums of each row to the CTA that finishes it.
  DUALGEMM_DEVICE void send(const Accumulators<Traits>& sums) {
    const int part = static_cast<int>(cta_.slice) * kPlan.consumers.k_groups + consumer_.k_group();
#pragma unroll
    for (int i = 0; i < Accumulators<Traits>::kCount; ++i) {
      const int row = 8 * (i / 4) + consumer_.first_row() + i % 2, product = i / 2 % 2;
      const float* const at = &smem_.exchanged().sum[part][product][row % Sums::kRows][consumer_.column()];
      ptx::st_shared_cluster_b32(ptx::mapa(ptx::smem_u32(at), static_cast<uint32_t>(row / Sums::kRows)),
                                 __float_as_uint(sums.d[i]));
    }
  }

  // Adds up and finishes the rows of the tile from `first` on whose sums are here. Lanes that have no item
  // take part with a row that does not exist, as an epilogue may need all lanes of a warp.
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
        add_up(sum.acc1, 0, row, column);
        add_up(sum.acc2, 1, row, column);
      }
      __syncwarp();
      epilogue.finish(sum, 0);
    }
  }

  DUALGEMM_DEVICE void add_up(uint32_t (&sum)[kWidth], int product, int row, int column) const {
    float x[kWidth] = {};
#pragma unroll
    for (int part = 0; part < Sums::kParts; ++part)
#pragma unroll
      for (int i = 0; i < kWidth; i += 4) {
        const float4 four =
            *reinterpret_cast<const float4*>(&smem_.exchanged().sum[part][product][row][column + i]);
        x[i] += four.x, x[i + 1] += four.y, x[i + 2] += four.z, x[i + 3] += four.w;
      }
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sum[i] = __float_as_uint(x[i] * Traits::kUnscale);
  }

  const Params& p_;
  SharedStorage<Traits>& smem_;
  Cta<Traits> cta_;
  Place consumer_;
};

}  // namespace dualgemm::sm90
