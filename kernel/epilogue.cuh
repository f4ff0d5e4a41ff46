// epilogue.cuh -- the epilogue role: C = silu(alpha1 * acc1) * (alpha2 * acc2), from tensor memory through
// registers to global memory. Eight warps, two for each quarter of the lanes of tensor memory: a lane owns a
// row of C, or a column where the sides of the mma are swapped, and the columns of its half.
#pragma once

#include "kernel/cta.cuh"
#include "kernel/params.h"
#include "kernel/scheduler.cuh"
#include "kernel/shared_storage.cuh"
#include "kernel/swiglu.cuh"
#include "kernel/tmem_map.cuh"
#include "kernel/wait.cuh"
#include "ptx/bulk.cuh"
#include "ptx/cluster.cuh"
#include "ptx/global.cuh"
#include "ptx/math.cuh"
#include "ptx/tcgen05_mem.cuh"

namespace dualgemm {

struct ApproximateMath {
  DUALGEMM_DEVICE static float ex2(float x) { return ptx::ex2_approx_ftz(x); }
  DUALGEMM_DEVICE static float rcp(float x) { return ptx::rcp_approx_ftz(x); }
};

template <CType kC>
DUALGEMM_DEVICE uint32_t pack(float low, float high) {
  if constexpr (kC == CType::kFp16) return ptx::cvt_rn_f16x2_f32(high, low);
  else return ptx::cvt_rn_bf16x2_f32(high, low);
}

// kWidth columns of both accumulators in registers: raw bits of fp32.
template <int kWidth>
struct Chunk {
  uint32_t acc1[kWidth], acc2[kWidth];

  template <int kAccumulators = 2>  // 1: acc2 is not there, and stays undefined
  DUALGEMM_DEVICE void load(uint32_t acc1_tmem, uint32_t acc2_tmem) {
    ptx::tcgen05_ld_32x32b(acc1, acc1_tmem);
    if constexpr (kAccumulators == 2) ptx::tcgen05_ld_32x32b(acc2, acc2_tmem);
    ptx::tcgen05_wait_ld();  // the registers are defined, and tensor memory has been read, only after this
    // Nothing tells the compiler that the wait defines the registers; these empty statements keep their uses
    // below it.
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      if constexpr (kAccumulators == 2) asm volatile("" : "+r"(acc1[i]), "+r"(acc2[i])::"memory");
      else asm volatile("" : "+r"(acc1[i])::"memory");
    }
  }
};

// What a lane writes: the place of its first result in C and how much of the tile exists there.
template <class Cfg>
struct Output {
  uint16_t* c;
  int64_t ldc;
  int columns;  // accumulator columns that exist in C, of any number from 1 up
  bool inside;  // this lane exists in C
  float alpha1, alpha2;

  DUALGEMM_DEVICE Output(const Params& p, Cta<Cfg> cta, const Tile& tile, EpilogueWarp warp) : ldc(p.ldc) {
    const int64_t factor = tile.problem * p.alpha_stride;
    alpha1 = p.alpha1_dev ? p.alpha1 * p.alpha1_dev[factor] : p.alpha1;
    alpha2 = p.alpha2_dev ? p.alpha2 * p.alpha2_dev[factor] : p.alpha2;
    const int lane = warp.lane();
    int row = 0, column = tile.n * Cfg::kTileN;  // from the tile's first row
    if constexpr (Cfg::kSwap) {
      columns = tile.rows;
      column += lane;
      inside = column < p.n;
    } else {
      columns = p.n - column;
      row = static_cast<int>(cta.rank) * Cfg::kLanes + lane;
      inside = row < tile.rows;
    }
    c = static_cast<uint16_t*>(p.c) + tile.a_problem * p.c_stride + (int64_t{tile.row} + row) * p.ldc +
        column;
  }

  // The results of accumulator columns [column, column + kWidth). staging: this lane's, for kBulk.
  template <int kWidth>
  DUALGEMM_DEVICE void finish(const Chunk<kWidth>& chunk, int column, uint8_t* staging = nullptr) const {
    uint32_t packed[kWidth / 2];
#pragma unroll
    for (int i = 0; i < kWidth; i += 2) {
      const auto scaled = [i](float alpha, const uint32_t* acc) {
        return Pair{alpha * __uint_as_float(acc[i]), alpha * __uint_as_float(acc[i + 1])};
      };
      Pair result = scaled(alpha1, chunk.acc1);
      if constexpr (Cfg::kProducts != Products::kFirstOnly) {
        const Pair gate = result, up = scaled(alpha2, chunk.acc2);
        if constexpr (Cfg::kSharedReciprocal) result = swiglu_shared<ApproximateMath>(gate, up);
        else
          result = {swiglu<ApproximateMath>(gate.first, up.first),
                    swiglu<ApproximateMath>(gate.second, up.second)};
      }
      packed[i / 2] = pack<Cfg::kC>(result.first, result.second);
    }
    if (!inside) return;
    if constexpr (Cfg::kSwap) store_down<kWidth>(packed, column);
    else if constexpr (Cfg::kStore == Store::kBulk) store_bulk<kWidth>(packed, column, staging);
    else store_along<kWidth>(packed, column);
  }

 private:
  // Along a row of C. Its existing columns are a multiple of 8. A row that starts on a 32-byte boundary is
  // written in full sectors; the row pitch promises only 16 bytes, and n only pieces of 8.
  template <int kWidth>
  DUALGEMM_DEVICE void store_along(const uint32_t* packed, int first) const {
    static_assert(kWidth % 16 == 0, "full sectors");
    uint16_t* row = c + first;
    const bool sectors = reinterpret_cast<uintptr_t>(row) % 32 == 0;
#pragma unroll
    for (int column = 0; column < kWidth; column += 16) {
      const uint32_t* values = &packed[column / 2];
      if (sectors && first + column + 16 <= columns) {
        ptx::st_global_v8_b32(row + column, values);
      } else {
        if (first + column + 8 <= columns) ptx::st_global_v4_b32(row + column, values);
        if (first + column + 16 <= columns) ptx::st_global_v4_b32(row + column + 8, values + 4);
      }
    }
  }

  // Along a row of C by a bulk copy from shared memory. A lane waits for its own copies only, which is
  // enough: no other lane writes to its part of the staging area.
  template <int kWidth>
  DUALGEMM_DEVICE void store_bulk(const uint32_t* packed, int first, uint8_t* staging) const {
    static_assert(2 * kWidth <= Cfg::kStagingPitch);
    if (first >= columns) return;
    ptx::cp_async_bulk_wait_group_read();  // the copy before has read the staging area
#pragma unroll
    for (int i = 0; i < kWidth / 2; i += 4)
      reinterpret_cast<uint4*>(staging)[i / 4] = {packed[i], packed[i + 1], packed[i + 2], packed[i + 3]};
    ptx::fence_proxy_async();  // the stores above come before what the copy reads
    ptx::cp_async_bulk_shared_to_global(c + first, staging, 2 * min(kWidth, columns - first));
    ptx::cp_async_bulk_commit_group();
  }

  // Down a column of C: the 32 lanes of a warp write 64 neighbouring bytes of a row at a time.
  template <int kWidth>
  DUALGEMM_DEVICE void store_down(const uint32_t* packed, int first) const {
#pragma unroll
    for (int i = 0; i < kWidth; ++i)
      if (first + i < columns) c[(first + i) * ldc] = static_cast<uint16_t>(packed[i / 2] >> (i % 2 * 16));
  }
};

// Columns that a warp handles at once: 64 accumulators per lane, enough independent work to hide the latency
// of ex2 and rcp without spilling.
inline constexpr int kChunkColumns = 32;

// Returns when the accumulators are final and this warp may load them.
DUALGEMM_DEVICE void wait_for_accumulators(uint64_t& acc_full, uint32_t phase) {
  wait(acc_full, phase);
  ptx::tcgen05_fence_after_thread_sync();  // the mma of these accumulators come before the loads that follow
}

// First column of chunk `i` of a warp, and whether all that the mma of the next tile overwrites has been read
// once that chunk is in registers. Overlapping pairs: the shared columns, acc2[0] from 64 on and acc1[1] up
// to 63, are read first, half of them by each of the two warps of a lane.
template <class Cfg>
DUALGEMM_DEVICE int chunk_column(EpilogueWarp warp, int i, int acc) {
  if constexpr (Cfg::kOverlapped) {
    static_assert(Cfg::kSharedColumns == 2 * kChunkColumns && Cfg::kColumns == 4 * kChunkColumns);
    const bool upper = (acc == 0) == (i == 0);
    return warp.half * kChunkColumns + (upper ? Cfg::kColumns - Cfg::kSharedColumns : 0);
  } else {
    return warp.half * (Cfg::kColumns / 2) + i * kChunkColumns;
  }
}
template <class Cfg>
inline constexpr int kChunks = Cfg::kColumns / 2 / kChunkColumns;
template <class Cfg>
inline constexpr int kReleasingChunk = Cfg::kOverlapped ? 0 : kChunks<Cfg> - 1;

template <class Cfg, class Scheduler>
DUALGEMM_DEVICE void epilogue_role(const Params& p, SharedStorage<Cfg>& smem, Cta<Cfg> cta, Scheduler tiles,
                                   EpilogueWarp warp) {
  const TmemMap<Cfg> tmem{smem.tmem_base + warp.tmem_lane()};
  auto a = consumer_start<Cfg::kAccBarriers>();
  for (Tile tile; tiles.next(tile); ++a) {
    const int acc = Cfg::kOverlapped ? static_cast<int>(a.phase) : a.index;
    const Output<Cfg> output(p, cta, tile, warp);
    wait_for_accumulators(smem.acc_full[a.index], a.phase);
#pragma unroll
    for (int i = 0; i < kChunks<Cfg>; ++i) {
      const int column = chunk_column<Cfg>(warp, i, acc);
      Chunk<kChunkColumns> chunk;
      chunk.template load<Cfg::kAccumulators>(tmem.acc1(acc) + column, tmem.acc2(acc) + column);
      if (i == kReleasingChunk<Cfg>) {
        // In registers: the mma of a later tile may overwrite the accumulators during the work below.
        ptx::tcgen05_fence_before_thread_sync();  // this lane's reads come before the arrival
        __syncwarp();                             // and so do those of the other lanes
        if (ptx::elect_sync()) cta.arrive_at_leader(smem.acc_empty[a.index]);
        __syncwarp();
      }
      if constexpr (Cfg::kStore == Store::kBulk)
        output.finish(chunk, column, smem.staging.row[warp.half * Cfg::kLanes + warp.lane()]);
      else output.finish(chunk, column);
      __syncwarp();  // the next tcgen05.ld needs the lanes together again
    }
  }
  // C is written, and shared memory read, before the CTA ends.
  if constexpr (Cfg::kStore == Store::kBulk) ptx::cp_async_bulk_wait_group();
}

}  // namespace dualgemm
