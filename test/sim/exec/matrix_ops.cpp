// matrix_ops.cpp -- ldmatrix and stmatrix: one, two or four matrices of 8 x 8 elements of 16 bits between
// shared memory and the registers of a warp. Lane 8 * j + r gives the address of row r of matrix j, 16 bytes;
// register j of lane l holds elements 2 * (l % 4) (low half) and 2 * (l % 4) + 1 of row l / 4 of matrix j or,
// with .trans, of its column l / 4 (PTX ISA 9.7.14.5.15 and 9.7.14.5.16).
#include <cstring>

#include "sim/exec/exec.h"
#include "sim/exec/handlers.h"
#include "sim/exec/tmem_ops.h"

namespace sim::op {

constexpr uint32_t kRows = 8, kRowBytes = 16;

using Matrix = uint16_t[kRows][kRows];

static void check_registers(const Inst& inst, const Operand& registers) {
  const size_t given = registers.kind == Operand::Kind::kVector ? registers.items.size() : 1;
  if (inst.repeat != given)
    throw Fault(FaultKind::kUnsupported,
                std::to_string(given) + " registers for " + std::to_string(int(inst.repeat)) + " matrices");
}

// Returns the address of a row, which has to lie in shared memory. Lanes beyond the rows give none.
static uint64_t row_address(const Exec& x, const Inst& inst, const Operand& operand, uint32_t lane) {
  const uint64_t address = x.address(operand, lane);
  if (x.shared_of(inst.space, address, kRowBytes).cta != &x.cta)
    throw Fault(FaultKind::kBounds, "a row of a matrix in the shared memory of another CTA");
  return address;
}

// Visits the halves of every lane: visit(lane, half, row, column).
template <class Visit>
static void for_halves(const Inst& inst, Visit&& visit) {
  const bool transposed = inst.has(Q::kTrans);
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t half = 0; half < 2; ++half) {
      const uint32_t along = 2 * (lane % 4) + half, across = lane / 4;
      visit(lane, half, transposed ? along : across, transposed ? across : along);
    }
}

void ldmatrix(Exec& x, const Inst& inst) {
  if (!whole_warp(x)) return;
  check_registers(inst, inst.operands[0]);
  Matrix matrices[4];
  Holes holes[4][kRows];
  for (uint32_t lane = 0; lane < kRows * inst.repeat; ++lane)
    x.load(inst.space, row_address(x, inst, inst.operands[1], lane), lane,
           matrices[lane / kRows][lane % kRows], kRowBytes, Exec::Seen::kPlain,
           &holes[lane / kRows][lane % kRows]);
  for (uint32_t j = 0; j < inst.repeat; ++j) {
    Bits values[32];
    std::shared_ptr<const Poison> origins[32];
    for_halves(inst, [&](uint32_t lane, uint32_t half, uint32_t row, uint32_t column) {
      const uint32_t at = column * uint32_t(sizeof(uint16_t)), shift = 16 * half;
      if ((holes[j][row].bytes >> at & 3) == 0) {
        values[lane].known |= uint64_t(matrices[j][row][column]) << shift;
        return;
      }
      const auto* const data = reinterpret_cast<const uint8_t*>(matrices[j][row]);
      const Load load{Space::kShared, 0, data, holes[j][row]};
      const Bits bits = x.loaded(load, lane, at, sizeof(uint16_t), &origins[lane]);
      values[lane].known |= bits.known << shift;
      values[lane].unknown |= bits.unknown << shift;
    });
    for (uint32_t lane = 0; lane < 32; ++lane)
      x.write(element(inst.operands[0], j), lane, values[lane], std::move(origins[lane]));
  }
}

void stmatrix(Exec& x, const Inst& inst) {
  if (!whole_warp(x)) return;
  check_registers(inst, inst.operands[1]);
  Matrix matrices[4];
  for (uint32_t j = 0; j < inst.repeat; ++j) {
    const Value& from = element(inst.operands[1], j);
    for_halves(inst, [&](uint32_t lane, uint32_t half, uint32_t row, uint32_t column) {
      matrices[j][row][column] = uint16_t(x.source(from, lane) >> (16 * half));
    });
  }
  for (uint32_t lane = 0; lane < kRows * inst.repeat; ++lane)
    x.store(inst.space, row_address(x, inst, inst.operands[0], lane), lane,
            matrices[lane / kRows][lane % kRows], kRowBytes);
}

}  // namespace sim::op
