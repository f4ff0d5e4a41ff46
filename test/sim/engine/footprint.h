// footprint.h -- which bytes of shared memory and which cells of tensor memory a tensor core instruction
// touches in each CTA it works on: what a watcher is told at issue. Pure functions of the operands, like the
// instructions themselves; they read no memory.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/tensor_core.h"

namespace sim {

struct ByteRange {
  uint32_t offset, bytes;
};

// A rectangle of 32-bit cells.
struct CellRange {
  int lane, lanes, column, columns;
};

// The shared-memory bytes a matrix operand reads in each CTA, rising and merged; none for A in tensor memory.
std::vector<ByteRange> operand_ranges(const MmaOp& op, bool operand_b);

// In each CTA: the cells of D; those of the scale factors of A and B, or of A in tensor memory.
std::vector<CellRange> accumulator_cells(const MmaOp& op);
std::vector<CellRange> operand_cells(const MmaOp& op);

std::vector<ByteRange> cp_source(CpShape shape, uint64_t smem_desc);
CellRange cp_destination(CpShape shape, uint32_t taddr);

// All cells of a warp's ld or st. Faults as ld_cell does.
std::vector<CellRange> ld_cells(LdShape shape, int repeat, uint32_t taddr, int warp_in_cta, int half_split,
                                bool pack);

}  // namespace sim
