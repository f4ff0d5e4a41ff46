// tensor_core.h -- what tcgen05.mma, cp, ld and st compute, as pure functions over shared memory and tensor
// memory of one or two CTAs. Descriptors are decoded from the bit tables of the PTX ISA (descriptor.h). When
// and in which order these run is exec/'s business; the numerics are in numerics.h.
#pragma once

#include <array>
#include <cstdint>

#include "sim/mem/bytes.h"
#include "sim/mem/tmem.h"

namespace sim {

// The two halves of an address of tensor memory.
inline int lane_of(uint32_t taddr) { return static_cast<int>(taddr >> 16); }
inline int column_of(uint32_t taddr) { return static_cast<int>(taddr & 0xFFFF); }

// kF16 has fp16 or bf16 inputs and f32 or f16 accumulators.
enum class MmaKind : uint8_t { kF16, kTf32, kMxf4, kMxf4nvf4 };
enum class ScaleBlock : uint8_t { kNone, kBlock16, kBlock32 };

// The memory of one CTA of an MMA. smem offsets count from the start of the CTA's shared window.
struct CtaMemory {
  const Bytes* smem;
  Tmem* tmem;
};

struct MmaOp {
  MmaKind kind;
  ScaleBlock scale_block = ScaleBlock::kNone;
  int cta_group = 1;    // 1 or 2
  uint32_t d_tmem = 0;  // (lane << 16) | column
  uint64_t a_desc = 0, b_desc = 0;
  bool a_in_tmem = false;  // then a_tmem is used (kF16 only)
  uint32_t a_tmem = 0;
  uint32_t idesc = 0;
  uint32_t sfa_tmem = 0, sfb_tmem = 0;
  bool accumulate = false;  // enable-input-d
  // disable-output-lane: a set bit keeps a lane of tensor memory as it is, and D is neither read nor written
  // there. The first four words are the lanes of the even CTA.
  std::array<uint32_t, 8> kept_lanes{};
  bool keeps(int cta, int lane) const {
    return kept_lanes[static_cast<size_t>(4 * cta + lane / 32)] >> lane % 32 & 1;
  }
};

// Checks what the operands alone decide: M, N, reserved bits, scale ids, descriptor fields and the alignment
// of columns. Throws Fault kProtocol or kUnsupported.
void check_mma(const MmaOp& op);
// Executes the operation. ctas[0] is the even CTA of the pair; ctas[1] is used only when cta_group == 2.
// Throws Fault kPoison or kBounds where operands, scale factors or accumulators were never written.
void execute_mma(const MmaOp& op, const CtaMemory ctas[2]);

enum class CpShape : uint8_t {
  k128x256b,
  k128x128b,
  k4x256b,
  k64x128b_02_13,
  k64x128b_01_23,
  k32x128b_warpx4
};
struct CpPlan {
  uint32_t rows, chunks;  // of 16 bytes: 4 columns each
};
CpPlan cp_plan(CpShape shape);  // Fault kUnsupported
// Checks what the operands alone decide, as check_mma does.
void check_cp(CpShape shape, uint32_t taddr, uint64_t smem_desc);
// Copies for one CTA of the group, so it is called once for each.
void execute_cp(CpShape shape, uint32_t taddr, uint64_t smem_desc, const CtaMemory& cta);

enum class LdShape : uint8_t { k32x32b, k16x64b, k16x128b, k16x256b, k16x32bx2 };
// Returns the registers of a thread, or -1 when shape and repeat do not go together.
int ld_registers(LdShape shape, int repeat);
int ld_lanes(LdShape shape);  // that it accesses: 32, or one half of them
// Returns the cell that register j of a thread holds; warp_in_cta % 4 says which quarter of the lanes the
// warp has. Only one bit of the lane field of taddr counts, and only for shapes of 16 lanes: it says which
// half of the quarter is meant. Throws Fault kBounds for a lane or a column that tensor memory does not have.
// `pack` stands for .pack::16b and .unpack::16b, where a register spans two columns, and `half` chooses one
// of them.
struct Cell {
  int lane, column;
};
Cell ld_cell(LdShape shape, int repeat, uint32_t taddr, int warp_in_cta, int thread, int j, int half_split,
             bool pack, int half);

}  // namespace sim
