// footprint.h -- which bytes of shared memory and which cells of tensor memory a tensor core instruction
// touches in each CTA it works on, which the observer is told at issue. These are pure functions of the
// operands and read no memory.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/tensor_core.h"

namespace sim {

struct ByteRange {
  uint32_t offset, bytes;
};

// A rectangle of 32-bit cells of tensor memory.
struct CellRange {
  int lane, lanes, column, columns;
};

// Returns the bytes of the 16-byte chunks that begin at `chunks`, in rising order and merged.
std::vector<ByteRange> merged_chunks(std::vector<uint32_t> chunks);

// Returns the shared-memory bytes that a matrix operand reads in each CTA, in rising order and merged. There
// are none for A in tensor memory.
std::vector<ByteRange> operand_ranges(const MmaOp& op, bool operand_b);

// Returns the cells of D in a CTA of the pair, without the lanes that are kept.
std::vector<CellRange> accumulator_cells(const MmaOp& op, int cta);

// Returns, for each CTA, the cells of the scale factors of A and B or of A in tensor memory.
std::vector<CellRange> operand_cells(const MmaOp& op);

std::vector<ByteRange> cp_source(CpShape shape, uint64_t smem_desc);
CellRange cp_destination(CpShape shape, uint32_t taddr);

// Returns all cells of a warp's ld or st. It faults as ld_cell does.
std::vector<CellRange> ld_cells(LdShape shape, int repeat, uint32_t taddr, int warp_in_cta, int half_split,
                                bool pack);

}  // namespace sim
