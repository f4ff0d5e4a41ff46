// tensormap_ops.cpp -- tensor maps that a kernel changes: one field at a time (PTX ISA 9.7.9.26), and copied
// by a warp from shared to global memory with the release that the tensormap proxy needs (9.7.13.16).
#include <algorithm>
#include <iterator>

#include "sim/engine/tensor_map.h"
#include "sim/exec/exec.h"
#include "sim/exec/handlers.h"

namespace sim::op {

constexpr uint32_t kMapBytes = 128;

static MapField field_of(const Inst& inst) {
  constexpr std::pair<Q, MapField> kFields[] = {{Q::kGlobalAddress, MapField::kGlobalAddress},
                                                {Q::kRank, MapField::kRank},
                                                {Q::kBoxDim, MapField::kBoxDim},
                                                {Q::kGlobalDim, MapField::kGlobalDim},
                                                {Q::kGlobalStride, MapField::kGlobalStride},
                                                {Q::kElementStride, MapField::kElementStride},
                                                {Q::kElementType, MapField::kElementType},
                                                {Q::kInterleave, MapField::kInterleave},
                                                {Q::kSwizzle, MapField::kSwizzle},
                                                {Q::kFill, MapField::kFill}};
  return std::find_if(std::begin(kFields), std::end(kFields),
                      [&](const auto& entry) { return inst.has(entry.first); })
      ->second;
}

// tensormap.replace [map]{, ordinal}, value is a weak access to all 128 bytes of the map.
void tensormap_replace(Exec& x, const Inst& inst) {
  const bool of_dimension = inst.operands.size() == 3;
  SIM_FOR_LANES(lane, x.mask) {
    const uint64_t at = x.address(inst.operands[0], lane);
    const uint64_t ordinal = of_dimension ? x.source(inst.operands[1].value, lane) : 0;
    const uint64_t value = x.source(inst.operands.back().value, lane);
    uint8_t map[kMapBytes];
    x.load(inst.space, at, lane, map, sizeof map, Exec::Seen::kNot);
    replace_field(map, field_of(inst), uint32_t(ordinal), value);
    x.store(inst.space, at, lane, map, sizeof map);
  }
}

// tensormap.cp_fenceproxy [global], [shared], 128: the warp copies as a whole, and releases what it knows to
// the tensormap proxy.
void tensormap_copy(Exec& x, const Inst& inst) {
  if (!x.converged()) return;
  if (x.uniform(inst.operands[2].value, "the size") != kMapBytes)
    throw Fault(FaultKind::kProtocol, "tensormap.cp_fenceproxy copies 128 bytes");
  const auto same = [&](const Operand& operand) {
    const uint64_t at = x.address(operand, uint32_t(__builtin_ctz(x.mask)));
    SIM_FOR_LANES(lane, x.mask) {
      if (x.address(operand, lane) != at)
        throw Fault(FaultKind::kProtocol, "the lanes of a tensormap.cp_fenceproxy name different addresses");
    }
    return at;
  };
  const uint64_t to = same(inst.operands[0]), from = same(inst.operands[1]);
  uint8_t map[kMapBytes];
  SIM_FOR_LANES(lane, x.mask) x.load(Space::kShared, from, lane, map, sizeof map, Exec::Seen::kCollective);
  SIM_FOR_LANES(lane, x.mask) x.store(Space::kGlobal, to, lane, map, sizeof map, Exec::Seen::kCollective);
  fence(x, inst);
}

}  // namespace sim::op
