// bulk_store.cuh -- C in fp16 by bulk copies: each lane puts its results into shared memory, from where the
// async proxy copies them along the row.
#pragma once

#include "bench/ablation/bulk.cuh"
#include "kernel/epilogue/output.cuh"
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
  static constexpr int kLeastWidth = 16;

  DUALGEMM_DEVICE BulkWriter(const dualgemm::Params& p, const dualgemm::Tile& tile, dualgemm::LanePlace at,
                             Staging& staging)
      : exists_(at.row < tile.rows),
        columns_(p.n - at.column),
        c_(static_cast<uint16_t*>(p.c.start) + tile.a_problem * p.c.stride +
           (int64_t{tile.row} + at.row) * p.c.pitch + at.column),
        staging_(staging.row[threadIdx.x]) {}

  DUALGEMM_DEVICE int extent() const { return columns_; }

  template <int kWidth>
  using Results = typename dualgemm::DirectWriter<Traits, dualgemm::Fp16, Layout>::template Results<kWidth>;
  template <int kWidth>
  DUALGEMM_DEVICE static void put(Results<kWidth>& results, int i, dualgemm::TwoFloats x) {
    dualgemm::Fp16::put(results.words, i, x);
  }

  // A lane waits for its own copies only, which is enough: no other lane writes to its part of the staging
  // area.
  template <int kWidth>
  DUALGEMM_DEVICE void store(const Results<kWidth>& results, int first) const {
    static_assert(2 * kWidth <= Staging::kPitch);
    const uint32_t(&words)[kWidth / 2] = results.words;
    if (!exists_ || first >= columns_) return;
    cp_async_bulk_wait_group_read();  // the copy before has read the staging area
#pragma unroll
    for (int i = 0; i < kWidth / 2; i += 4)
      reinterpret_cast<uint4*>(staging_)[i / 4] = {words[i], words[i + 1], words[i + 2], words[i + 3]};
    dualgemm::ptx::fence_proxy_async();  // the stores above come before what the copy reads
    cp_async_bulk_shared_to_global(c_ + first, staging_, 2 * min(kWidth, columns_ - first));
    cp_async_bulk_commit_group();
  }
  DUALGEMM_DEVICE void complete_tile(int) const {}

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
