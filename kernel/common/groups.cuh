// groups.cuh -- the table of groups (the experts of an MoE layer) that have rows, made by one warp from the
// sizes that lie in device memory. The sizes are whatever the caller's kernels wrote there, so they are
// clamped to 0 .. M, and offsets are made to ascend: then no memory outside the tensors is ever read or
// written.
#pragma once

#include "kernel/common/scheduler.cuh"
#include "kernel/common/stream_k.cuh"
#include "kernel/params.h"
#include "ptx/common.cuh"

namespace dualgemm {

DUALGEMM_DEVICE int32_t clamp(int32_t value, int32_t low, int32_t high) { return max(low, min(value, high)); }

// Returns the sum or maximum of `value` over the lanes from 0 up to this one.
template <class Operation>
DUALGEMM_DEVICE int32_t scan(int32_t value, const Operation& operation) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const int32_t below = __shfl_up_sync(0xffffffff, value, distance);
    if (lane >= distance) value = operation(value, below);
  }
  return value;
}

// A sum that goes on from one warp-full of values to the next.
struct RunningSum {
  int32_t total = 0;
  // Returns `total` plus the values of the lanes below this one, and adds those of all lanes to `total`.
  DUALGEMM_DEVICE int32_t before(int32_t value) {
    const int32_t sum = total + scan(value, [](int32_t x, int32_t y) { return x + y; });
    total = __shfl_sync(0xffffffff, sum, 31);
    return sum - value;
  }
};

// All lanes of one warp call this. `p` has the fields of Params that say which rows there are. Returns how
// many groups have rows.
template <class Traits, class Rows>
DUALGEMM_DEVICE int32_t write_group_table(const Rows& p, GroupTable<Traits::kPlan.tile.m>& table) {
  using Table = GroupTable<Traits::kPlan.tile.m>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  RunningSum groups, m_tiles, blocks;
  int32_t last_end = p.group_offsets ? clamp(p.group_rows[0], 0, p.m) : 0;
  for (int32_t first = 0; first < p.problems; first += 32) {
    const int32_t group = first + lane;
    const bool exists = group < p.problems;
    int32_t row = 0, rows = 0;
    if (p.group_offsets) {
      // A group ends where its offset says, but never before the end of an earlier group.
      int32_t end = max(last_end, exists ? clamp(p.group_rows[group + 1], 0, p.m) : 0);
      end = scan(end, [](int32_t x, int32_t y) { return max(x, y); });
      row = __shfl_up_sync(0xffffffff, end, 1);
      if (lane == 0) row = last_end;
      rows = end - row;
      last_end = __shfl_sync(0xffffffff, end, 31);
    } else if (exists) {
      rows = clamp(p.group_rows[group], 0, p.m);
    }
    const int32_t m_tiles_before = m_tiles.before((rows + Traits::kPlan.tile.m - 1) / Traits::kPlan.tile.m);
    const int32_t sfa_block = blocks.before(p.group_offsets ? (rows + kSfAtomRows - 1) / kSfAtomRows : 0);
    const int32_t index = groups.before(rows > 0 ? 1 : 0);
    if (rows > 0) {
      table.m_tiles_before[index] = m_tiles_before;
      table.rows[index] = p.group_offsets ? row : rows;
      table.set_first_sfa_block(index, sfa_block);
      table.problem[index] = static_cast<uint16_t>(group);
    }
  }
  if (lane == 0) {
    table.m_tiles_before[groups.total] = m_tiles.total;
    table.rows[groups.total] = last_end;
    table.problem[groups.total] = Table::kNone;
  }
  return groups.total;
}

// Returns the tiles of this CTA, or of its cluster. `groups` is the table of a grouped kernel, and unused in
// others.
template <class Traits, class Rows, class Groups>
DUALGEMM_DEVICE auto scheduler_of(const Rows& p, const Groups& groups) {
  constexpr uint32_t kClusterSize = Traits::kPlan.cluster_size();
  const uint32_t first = blockIdx.x / kClusterSize, stride = gridDim.x / kClusterSize;
  if constexpr (Traits::kPlan.tile.grouped)
    return GroupedScheduler<Traits>(groups, p.n_tiles, p.group_offsets != 0, first, stride);
  else if constexpr (Traits::kPlan.tile.stream_k)
    return StreamScheduler<Traits>({p.m_tiles, p.n_tiles, p.problems}, p.m, p.k_tiles, p.shares, first,
                                   stride);
  else return DenseScheduler<Traits>({p.m_tiles, p.n_tiles, p.problems}, p.m, first, stride);
}

}  // namespace dualgemm
