// epilogue.cuh -- the epilogue role: C = silu(alpha1 * acc1) * (alpha2 * acc2), from tensor memory through
// registers to global memory. Four warps; lane l of warp w owns row 32 w + l of the CTA's rows, so each lane
// stores along its own row of C.
#pragma once

#include "kernel/cta_pair.cuh"
#include "kernel/params.h"
#include "kernel/scheduler.cuh"
#include "kernel/shared_storage.cuh"
#include "kernel/swiglu.cuh"
#include "kernel/tmem_map.cuh"
#include "kernel/wait.cuh"
#include "ptx/global.cuh"
#include "ptx/math.cuh"
#include "ptx/tcgen05_mem.cuh"

namespace dualgemm {

// Columns of C that a warp handles at once: 64 accumulators per lane, enough independent work to hide the
// latency of ex2 and rcp without spilling.
inline constexpr int kChunkColumns = 32;

struct ApproximateMath {
  DUALGEMM_DEVICE static float ex2(float x) { return ptx::ex2_approx_ftz(x); }
  DUALGEMM_DEVICE static float rcp(float x) { return ptx::rcp_approx_ftz(x); }
};

template <CType kC>
DUALGEMM_DEVICE uint32_t pack(float low, float high) {
  if constexpr (kC == CType::kFp16) return ptx::cvt_rn_f16x2_f32(high, low);
  else return ptx::cvt_rn_bf16x2_f32(high, low);
}

// One accumulator pair's chunk in registers: raw bits of fp32, one column of C per element.
struct Chunk {
  uint32_t acc1[kChunkColumns], acc2[kChunkColumns];

  DUALGEMM_DEVICE void load(uint32_t acc1_tmem, uint32_t acc2_tmem) {
    ptx::tcgen05_ld_32x32b_x32(acc1, acc1_tmem);
    ptx::tcgen05_ld_32x32b_x32(acc2, acc2_tmem);
    ptx::tcgen05_wait_ld();  // the registers are defined, and tensor memory has been read, only after this
    // Nothing tells the compiler that the wait defines the registers; these empty statements keep their uses
    // below it.
#pragma unroll
    for (int i = 0; i < kChunkColumns; ++i) asm volatile("" : "+r"(acc1[i]), "+r"(acc2[i])::"memory");
  }
};

// Stores `kChunkColumns` results at `row`, of which `columns` (a multiple of 8) exist in C. A row that starts
// on a 32-byte boundary is written in full sectors; the row pitch promises only 16 bytes, and n only pieces
// of 8.
DUALGEMM_DEVICE void store_row(uint16_t* row, const uint32_t (&packed)[kChunkColumns / 2], int columns) {
  const bool sectors = reinterpret_cast<uintptr_t>(row) % 32 == 0;
#pragma unroll
  for (int column = 0; column < kChunkColumns; column += 16) {
    const uint32_t* values = &packed[column / 2];
    if (sectors && column + 16 <= columns) {
      ptx::st_global_v8_b32(row + column, values);
    } else {
      if (column + 8 <= columns) ptx::st_global_v4_b32(row + column, values);
      if (column + 16 <= columns) ptx::st_global_v4_b32(row + column + 8, values + 4);
    }
  }
}

template <class Cfg>
DUALGEMM_DEVICE void epilogue_role(const Params& p, SharedStorage<Cfg>& smem, CtaPair<Cfg> cta,
                                   TileScheduler tiles, int warp) {
  const TmemMap<Cfg> tmem{smem.tmem_base};
  const float alpha1 = p.alpha1_dev ? p.alpha1 * *p.alpha1_dev : p.alpha1;
  const float alpha2 = p.alpha2_dev ? p.alpha2 * *p.alpha2_dev : p.alpha2;
  const uint32_t quarter = static_cast<uint32_t>(warp) << 21;  // lane 32 * warp, in bits 16-31 of an address
  const int lane = static_cast<int>(threadIdx.x) % 32;

  auto a = consumer_start<Cfg::kAccStages>();
  for (Tile tile; tiles.next(tile); ++a) {
    const int row = tile.m * Cfg::kTileM + static_cast<int>(cta.rank) * Cfg::kCtaRows + warp * 32 + lane;
    const int first_column = tile.n * Cfg::kTileN;
    uint16_t* c = static_cast<uint16_t*>(p.c) + row * p.ldc + first_column;

    wait(smem.acc_full[a.index], a.phase);
    __syncwarp();                            // lanes may leave the wait apart; tcgen05.ld needs them together
    ptx::tcgen05_fence_after_thread_sync();  // the mma of these accumulators come before the loads below
#pragma unroll
    for (int column = 0; column < Cfg::kTileN; column += kChunkColumns) {
      Chunk chunk;
      chunk.load(tmem.acc1(a.index) + quarter + column, tmem.acc2(a.index) + quarter + column);
      if (column + kChunkColumns == Cfg::kTileN) {
        // Everything is in registers: the mma of a later tile may overwrite the accumulators during the work
        // below.
        ptx::tcgen05_fence_before_thread_sync();  // this lane's reads come before the arrival
        __syncwarp();                             // and so do those of the other lanes
        if (ptx::elect_sync()) cta.arrive_at_leader(smem.acc_empty[a.index]);
        __syncwarp();
      }
      uint32_t packed[kChunkColumns / 2];
#pragma unroll
      for (int i = 0; i < kChunkColumns; i += 2) {
        const auto result = [&](int j) {
          return swiglu<ApproximateMath>(alpha1 * __uint_as_float(chunk.acc1[j]),
                                         alpha2 * __uint_as_float(chunk.acc2[j]));
        };
        packed[i / 2] = pack<Cfg::kC>(result(i), result(i + 1));
      }
      if (row < p.m) store_row(c + column, packed, p.n - first_column - column);
      __syncwarp();  // the next tcgen05.ld needs the lanes together again
    }
  }
}

}  // namespace dualgemm
