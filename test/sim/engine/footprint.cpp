// footprint.cpp -- footprints from the address maps of descriptor.h and tensor_core.h.
#include "sim/engine/footprint.h"

#include <algorithm>
#include <array>
#include <bitset>

#include "sim/engine/descriptor.h"

namespace sim {
std::vector<ByteRange> merged_chunks(std::vector<uint32_t> chunks) {
  std::sort(chunks.begin(), chunks.end());
  std::vector<ByteRange> ranges;
  for (uint32_t chunk : chunks) {
    if (!ranges.empty() && chunk <= ranges.back().offset + ranges.back().bytes)
      ranges.back().bytes = chunk + kChunk - ranges.back().offset;
    else ranges.push_back({chunk, kChunk});
  }
  return ranges;
}

std::vector<ByteRange> operand_ranges(const MmaOp& op, bool operand_b) {
  if (!operand_b && op.a_in_tmem) return {};
  const MmaShape shape = decode_shape(op);
  const SmemDescriptor d = decode_smem_descriptor(operand_b ? op.b_desc : op.a_desc);
  const uint32_t rows = static_cast<uint32_t>(operand_b ? shape.b_rows_per_cta(op.cta_group)
                                                        : shape.rows_per_cta(op.cta_group));
  std::vector<uint32_t> chunks;
  if (operand_b ? shape.b_mn_major : shape.a_mn_major) {
    for (uint32_t k = 0; k < static_cast<uint32_t>(shape.k); ++k)
      for (uint32_t c = 0; c < rows / 8; ++c) chunks.push_back(mn_major_address(d, c, k));
  } else {
    for (uint32_t row = 0; row < rows; ++row)
      for (uint32_t c = 0; c < kChunksPerRow; ++c) chunks.push_back(k_major_address(d, row, c));
  }
  return merged_chunks(std::move(chunks));
}

std::vector<CellRange> accumulator_cells(const MmaOp& op, int cta) {
  const MmaShape shape = decode_shape(op);
  const int column = column_of(op.d_tmem);
  std::vector<CellRange> whole;
  if (shape.rows_per_cta(op.cta_group) == 128) {
    whole = {{0, 128, column, shape.n}};
  } else if (op.cta_group == 2) {
    whole = {{0, 128, column, shape.n / 2}};
  } else {  // 16 rows in every quarter of the lanes
    for (int quarter = 0; quarter < 4; ++quarter)
      whole.push_back({32 * quarter + lane_of(op.d_tmem), 16, column, shape.n});
  }
  std::vector<CellRange> cells;
  for (const CellRange& range : whole) {
    bool joins = false;
    for (int lane = range.lane; lane < range.lane + range.lanes; ++lane) {
      if (op.keeps(cta, lane)) joins = false;
      else if (joins) ++cells.back().lanes;
      else {
        cells.push_back({lane, 1, range.column, range.columns});
        joins = true;
      }
    }
  }
  return cells;
}

std::vector<CellRange> operand_cells(const MmaOp& op) {
  const MmaShape shape = decode_shape(op);
  std::vector<CellRange> cells;
  if (op.a_in_tmem) cells.push_back({0, 128, column_of(op.a_tmem), shape.k / 2});
  if (block_scaled(op.kind)) {
    cells.push_back({0, 128, column_of(op.sfa_tmem), 4});
    cells.push_back({0, 128, column_of(op.sfb_tmem), scale_columns_b(shape.n)});
  }
  return cells;
}

std::vector<ByteRange> cp_source(CpShape shape, uint64_t smem_desc) {
  const CpPlan plan = cp_plan(shape);
  const SmemDescriptor d = decode_smem_descriptor(smem_desc);
  std::vector<uint32_t> chunks;
  for (uint32_t row = 0; row < plan.rows; ++row)
    for (uint32_t c = 0; c < plan.chunks; ++c) chunks.push_back(k_major_address(d, row, c));
  return merged_chunks(std::move(chunks));
}

CellRange cp_destination(CpShape shape, uint32_t taddr) {
  return {0, Tmem::kLanes, column_of(taddr), static_cast<int>(4 * cp_plan(shape).chunks)};
}

std::vector<CellRange> ld_cells(LdShape shape, int repeat, uint32_t taddr, int warp_in_cta, int half_split,
                                bool pack) {
  const int registers = ld_registers(shape, repeat);
  std::array<std::bitset<Tmem::kColumns>, 32> touched;
  for (int thread = 0; thread < 32; ++thread)
    for (int j = 0; j < std::max(registers, 1); ++j)  // at least once, for the fault of an illegal shape
      for (int half = 0; half < (pack ? 2 : 1); ++half) {
        const Cell cell = ld_cell(shape, repeat, taddr, warp_in_cta, thread, j, half_split, pack, half);
        touched[static_cast<size_t>(cell.lane % 32)].set(static_cast<size_t>(cell.column));
      }
  std::vector<CellRange> cells;
  const int first_lane = warp_in_cta % 4 * 32;
  for (int lane = 0; lane < 32;) {
    const auto& columns = touched[static_cast<size_t>(lane)];
    int end = lane + 1;
    while (end < 32 && touched[static_cast<size_t>(end)] == columns) ++end;
    for (int column = 0; column < Tmem::kColumns;) {
      int last = column;
      while (last < Tmem::kColumns && columns[static_cast<size_t>(last)]) ++last;
      if (last > column) cells.push_back({first_lane + lane, end - lane, column, last - column});
      column = last + 1;
    }
    lane = end;
  }
  return cells;
}

}  // namespace sim
