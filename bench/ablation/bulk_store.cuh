// bulk_store.cuh -- C in fp16 by bulk copies: each lane puts its results into shared memory, from where the
// async proxy copies them along the row.
#pragma once

#include "bench/ablation/bulk.cuh"
#include "kernel/epilogue/output_16bit.cuh"
#include "ptx/cluster.cuh"

namespace bench {

// Each lane of the eight epilogue warps has a row here: 32 results, and room so that lanes differ in banks.
struct Staging {
  static constexpr int kPitch = 80;
  alignas(16) uint8_t row[256][kPitch];
};

template <class Traits, class Layout>
class BulkWriter {
  static_assert(std::is_same_v<Layout, dualgemm::AlongRow>, "a lane has a row of C to copy");

 public:
  static constexpr int32_t kStoreBytes = 64;  // one copy of 32 results

  DUALGEMM_DEVICE BulkWriter(const dualgemm::Params& p, const dualgemm::Tile& tile, dualgemm::LanePlace at,
                             Staging& staging)
      : exists_(at.row < tile.rows),
        columns_(p.n - at.column),
        c_(static_cast<uint16_t*>(p.c) + tile.a_problem * p.c_stride + (int64_t{tile.row} + at.row) * p.ldc +
           at.column),
        staging_(staging.row[threadIdx.x]) {}

  DUALGEMM_DEVICE int extent() const { return columns_; }

  template <int kWidth>
  using Results = typename dualgemm::Writer16<Traits, dualgemm::Fp16, Layout>::template Results<kWidth>;

  // A lane waits for its own copies only, which is enough: no other lane writes to its part of the staging
  // area.
  template <int kWidth>
  DUALGEMM_DEVICE void store(const Results<kWidth>& results, int first) const {
    static_assert(2 * kWidth <= Staging::kPitch);
    const uint32_t(&packed)[kWidth / 2] = results.packed;
    if (!exists_ || first >= columns_) return;
    cp_async_bulk_wait_group_read();  // the copy before has read the staging area
#pragma unroll
    for (int i = 0; i < kWidth / 2; i += 4)
      reinterpret_cast<uint4*>(staging_)[i / 4] = {packed[i], packed[i + 1], packed[i + 2], packed[i + 3]};
    dualgemm::ptx::fence_proxy_async();  // the stores above come before what the copy reads
    cp_async_bulk_shared_to_global(c_ + first, staging_, 2 * min(kWidth, columns_ - first));
    cp_async_bulk_commit_group();
  }

 private:
  bool exists_;
  int columns_;
  uint16_t* c_;
  uint8_t* staging_;
};

struct Fp16Bulk : dualgemm::Fp16 {
  using Shared = Staging;
  template <class Traits, class Layout>
  using Writer = BulkWriter<Traits, Layout>;
  // C is written, and shared memory read, before the CTA ends.
  DUALGEMM_DEVICE static void complete() { cp_async_bulk_wait_group(); }
};

}  // namespace bench
