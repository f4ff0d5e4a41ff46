// tensor_core.cpp -- the tensor core's data movers: tcgen05.cp from shared memory into TMEM, the
// register-to-cell maps of tcgen05.ld and st, and the static rules of tcgen05.mma. The multiplication itself
// is mma_tile.cpp.
//
// A TMEM address is (lane << 16) | column. tcgen05.ld takes the 32-lane quarter from the warp: bit 7 of the
// lane field, where 2-SM kernels put the CTA rank, is ignored, and the quarter bits must name the warp's own
// quarter.
#include "sim/engine/tensor_core.h"

#include <algorithm>
#include <string>

#include "sim/engine/descriptor.h"
#include "sim/fault.h"

namespace sim {
namespace {

std::string at(const char* what, uint32_t taddr) {
  return std::string(what) + " at TMEM lane " + std::to_string(lane_of(taddr)) + ", column " +
         std::to_string(column_of(taddr));
}

struct Columns {
  const char* what;
  uint32_t taddr;
  int count;
  uint32_t first() const { return column_of(taddr); }
  uint32_t end() const { return first() + static_cast<uint32_t>(count); }
};

void require_columns(const Columns& c, uint32_t alignment) {
  if (c.first() % alignment != 0)
    protocol_fault(at(c.what, c.taddr) + ": the column must be a multiple of " + std::to_string(alignment));
  if (c.end() > static_cast<uint32_t>(Tmem::kColumns))
    throw Fault(FaultKind::kBounds,
                at(c.what, c.taddr) + ": " + std::to_string(c.count) + " columns end beyond 512");
}

void require_lane_zero(const char* what, uint32_t taddr) {
  if (lane_of(taddr) != 0) protocol_fault(at(what, taddr) + ": the lane must be 0");
}

bool overlap(const Columns& a, const Columns& b) { return a.first() < b.end() && b.first() < a.end(); }

// K of one instruction is 32 bytes of a row: two chunks, which must stay inside the swizzle span.
void check_operand(const char* what, uint64_t desc, bool mn_major) {
  const SmemDescriptor d = decode_smem_descriptor(desc);
  if (d.span != 0 && !mn_major && d.start % d.span + 32 > d.span)
    protocol_fault(std::string(what) + ": the K step at byte " + std::to_string(d.start % d.span) +
                   " leaves its " + std::to_string(d.span) + "-byte swizzle row");
  if (d.span != 0 && mn_major && d.start % d.span != 0)
    protocol_fault(std::string(what) + ": an MN-major operand must start on a swizzle row");
}

}  // namespace

void check_mma(const MmaOp& op) {
  const MmaShape shape = decode_shape(op);
  if (op.a_in_tmem) require_lane_zero("matrix A", op.a_tmem);
  else check_operand("matrix A", op.a_desc, shape.a_mn_major);
  check_operand("matrix B", op.b_desc, shape.b_mn_major);

  // Kernels that run on a B200 place accumulators at multiples of 4 columns; finer placement is not
  // established.
  const bool split_columns = op.cta_group == 2 && shape.m == 128;
  const Columns d{"accumulator", op.d_tmem, split_columns ? shape.n / 2 : shape.n};
  require_columns(d, 4);
  const bool half_height = op.cta_group == 1 && shape.m == 64;
  if (lane_of(op.d_tmem) != 0 && !(half_height && lane_of(op.d_tmem) == 16))
    protocol_fault(at("accumulator", op.d_tmem) +
                   (half_height ? ": the lane must be 0 or 16" : ": the lane must be 0"));
  if (op.a_in_tmem) require_columns({"matrix A", op.a_tmem, shape.k / 2}, 4);
  if (!block_scaled(op.kind)) return;

  // A column holds the scale factors of 32 rows; B's are fetched in pairs of columns, whatever N is.
  const Columns sfa{"scale factors of A", op.sfa_tmem, 4};
  const Columns sfb{"scale factors of B", op.sfb_tmem, scale_columns_b(shape.n)};
  for (const Columns& sf : {sfa, sfb}) {
    require_lane_zero(sf.what, sf.taddr);
    require_columns(sf, 2);
    if (overlap(sf, d))
      protocol_fault(at(sf.what, sf.taddr) + ": they overlap " + at("the accumulator", op.d_tmem));
  }
}

CpPlan cp_plan(CpShape shape) {
  switch (shape) {
    case CpShape::k128x256b: return {128, 2};
    case CpShape::k128x128b: return {128, 1};
    case CpShape::k64x128b_02_13:
    case CpShape::k64x128b_01_23: return {64, 1};
    case CpShape::k32x128b_warpx4: return {32, 1};
    case CpShape::k4x256b: break;
  }
  throw Fault(FaultKind::kUnsupported, "tcgen05.cp.4x256b: the lanes it writes are not established");
}

void check_cp(CpShape shape, uint32_t taddr, uint64_t smem_desc) {
  const CpPlan plan = cp_plan(shape);
  require_lane_zero("tcgen05.cp destination", taddr);
  require_columns({"tcgen05.cp destination", taddr, static_cast<int>(plan.chunks) * 4}, 4);
  if (decode_smem_descriptor(smem_desc).span != 0)
    throw Fault(FaultKind::kUnsupported, "tcgen05.cp from a swizzled source");
}

void execute_cp(CpShape shape, uint32_t taddr, uint64_t smem_desc, const CtaMemory& cta) {
  check_cp(shape, taddr, smem_desc);
  const CpPlan plan = cp_plan(shape);
  const SmemDescriptor d = decode_smem_descriptor(smem_desc);

  // Returns the lane that receives copy `copy` of row i.
  const auto lanes = [shape](uint32_t i, uint32_t copy) -> int {
    switch (shape) {
      case CpShape::k32x128b_warpx4: return static_cast<int>(i + 32 * copy);
      case CpShape::k64x128b_02_13: return static_cast<int>(i + 64 * copy);
      case CpShape::k64x128b_01_23: return static_cast<int>(i % 32 + i / 32 * 64 + 32 * copy);
      default: return static_cast<int>(i);
    }
  };
  for (uint32_t i = 0; i < plan.rows; ++i) {
    for (uint32_t chunk = 0; chunk < plan.chunks; ++chunk) {
      uint32_t words[4];
      cta.smem->read(k_major_address(d, i, chunk), words, sizeof words);
      for (uint32_t copy = 0; copy < 128 / plan.rows; ++copy)
        cta.tmem->write_row(lanes(i, copy), static_cast<int>(column_of(taddr) + 4 * chunk), 4, words);
    }
  }
}

int ld_registers(LdShape shape, int repeat) {
  if (repeat < 1 || repeat > 128 || (repeat & (repeat - 1)) != 0) return -1;
  int per_repeat = 1;
  if (shape == LdShape::k16x128b) per_repeat = 2;
  if (shape == LdShape::k16x256b) per_repeat = 4;
  const int registers = repeat * per_repeat;
  return registers <= 128 ? registers : -1;
}

int ld_lanes(LdShape shape) { return shape == LdShape::k32x32b ? 32 : 16; }

Cell ld_cell(LdShape shape, int repeat, uint32_t taddr, int warp_in_cta, int thread, int j, int half_split,
             bool pack, int half) {
  const int registers = ld_registers(shape, repeat);
  if (registers < 0) throw Fault(FaultKind::kUnsupported, "tcgen05.ld/st: no such shape and repeat");
  if (j < 0 || j >= registers)
    throw Fault(FaultKind::kBounds, "tcgen05.ld/st: register " + std::to_string(j));

  const uint32_t lane_field = lane_of(taddr);
  const int quarter = warp_in_cta % 4;
  constexpr uint32_t kRankBit = 0x80;
  if (lane_field >= 2 * kRankBit)
    throw Fault(FaultKind::kBounds, at("tcgen05.ld/st", taddr) + ": the lane is outside tensor memory");

  // Lanes count from the addressed one, and columns as the unpacked form counts them.
  const int t = thread;
  int lane = 0, column = 0, split = 0;
  switch (shape) {
    case LdShape::k32x32b:
      lane = t;
      column = j;
      break;
    case LdShape::k16x64b:
      lane = t / 4 + 8 * (t % 2);
      column = 2 * j + t / 2 % 2;
      break;
    case LdShape::k16x128b:
      lane = t / 4 + 8 * (j % 2);
      column = 4 * (j / 2) + t % 4;
      break;
    case LdShape::k16x256b:
      lane = t / 4 + 8 * (j / 2 % 2);
      column = 8 * (j / 4) + 2 * (t % 4) + j % 2;
      break;
    case LdShape::k16x32bx2:
      lane = t % 16;
      column = j;
      split = t >= 16 ? half_split : 0;
      break;
  }
  if (pack) column = 2 * column + half;  // a register spans two columns; the split counts columns as they are
  const int half_of_quarter = ld_lanes(shape) == 16 ? static_cast<int>(lane_field & 16) : 0;
  const Cell cell{32 * quarter + half_of_quarter + lane, static_cast<int>(column_of(taddr)) + column + split};
  if (cell.column < 0 || cell.column >= Tmem::kColumns)
    throw Fault(FaultKind::kBounds, at("tcgen05.ld/st", taddr) + ": column " + std::to_string(cell.column));
  return cell;
}

}  // namespace sim
