// wgmma_operands.cpp -- see the header. The operands of wgmma.mma_async are
//
//   d, a-desc, b-desc, scale-d, imm-scale-a, imm-scale-b, imm-trans-a, imm-trans-b    A in shared memory
//   d, {a0..a3}, b-desc, scale-d, imm-scale-a, imm-scale-b, imm-trans-b               A in registers
//
// with the transpositions only if A and B have 16 bits.
#include "sim/decode/wgmma_operands.h"

#include <algorithm>
#include <optional>

#include "sim/fault.h"

namespace sim {

constexpr size_t kFragments = 4;  // registers of A in a thread: 16 rows of 32 bytes, 32 threads
constexpr size_t kFactors = 4, kTranspositions = 6;  // the first operands of each kind

template <class Visit>
static void for_registers(const Operand& operand, Visit&& visit) {
  const auto see = [&](const Value& value) {
    if (value.kind == Value::Kind::kRegister) visit(value.reg);
  };
  see(operand.value);
  std::for_each(operand.items.begin(), operand.items.end(), see);
}

// Visits the accumulators, then the fragments of A.
template <class Visit>
static void for_matrix_registers(const Inst& inst, Visit&& visit) {
  for_registers(inst.operands[0], visit);
  if (inst.operands[1].kind == Operand::Kind::kVector) for_registers(inst.operands[1], visit);
}

static std::optional<DenseFormat> format_named(const std::string& qualifier) {
  if (qualifier == "f16") return DenseFormat::kF16;
  if (qualifier == "bf16") return DenseFormat::kBf16;
  if (qualifier == "e4m3") return DenseFormat::kE4m3;
  if (qualifier == "e5m2") return DenseFormat::kE5m2;
  return std::nullopt;
}

void read_wgmma(Inst& inst) {
  const auto refuse = [&](FaultKind kind, const std::string& text) {
    throw Fault(kind, text + ": " + describe(*inst.statement));
  };
  // mma_async sync aligned, the shape, and the types of D, A and B
  const std::vector<std::string>& qualifiers = inst.statement->qualifiers;
  constexpr size_t kTypeA = 5, kTypeB = 6;
  const auto format = [&](size_t i) {
    return i < qualifiers.size() ? format_named(qualifiers[i]) : std::nullopt;
  };
  if (qualifiers.size() != kTypeB + 1 || !format(kTypeA) || !format(kTypeB))
    refuse(FaultKind::kSyntax, "wgmma.mma_async needs one shape and the types of D, A and B");
  inst.formats = {*format(kTypeA), *format(kTypeB)};
  const Operand &d = inst.operands[0], &a = inst.operands[1];
  if (d.items.size() * 2 != inst.columns)
    refuse(FaultKind::kSyntax, std::to_string(d.items.size()) +
                                   " accumulators for N = " + std::to_string(inst.columns) + ", which has " +
                                   std::to_string(inst.columns / 2));
  const bool a_in_registers = a.kind == Operand::Kind::kVector;
  if (a_in_registers && a.items.size() != kFragments)
    refuse(FaultKind::kSyntax, std::to_string(a.items.size()) + " registers of A, which has 4");
  const size_t transposable = element_bytes(inst.formats.a) != 2 ? 0 : a_in_registers ? 1 : 2;
  if (inst.operands.size() != kTranspositions + transposable)
    refuse(FaultKind::kSyntax,
           "wgmma.mma_async has " + std::to_string(inst.operands.size()) +
               " operands: it transposes matrices of 16 bits in shared memory, and nothing else");
  for (size_t i = kFactors; i < inst.operands.size(); ++i) {
    const Value& value = inst.operands[i].value;
    const int64_t number = int64_t(value.constant);
    const bool legal = i < kTranspositions ? number == 1 || number == -1 : number == 0 || number == 1;
    if (value.kind != Value::Kind::kConstant || !legal)
      refuse(FaultKind::kSyntax, i < kTranspositions ? "imm-scale-a and imm-scale-b are 1 or -1"
                                                     : "imm-trans-a and imm-trans-b are 0 or 1");
  }
  std::vector<uint32_t> seen;
  for (const Operand* operand : {&d, &a})
    for (const Value& value : operand->items) {
      if (value.kind != Value::Kind::kRegister)
        refuse(FaultKind::kUnsupported, "an element of a matrix that is no register");
      if (std::find(seen.begin(), seen.end(), value.reg) != seen.end())
        refuse(FaultKind::kUnsupported,
               "a register is named twice as a destination, or as one and as a source");
      if (operand == &d) seen.push_back(value.reg);
    }
}

void find_wgmma_registers(Kernel& kernel) {
  std::vector<uint32_t>& all = kernel.wgmma_registers;
  for (const Inst& inst : kernel.code)
    if (inst.operation == Operation::wgmma_mma)
      for_matrix_registers(inst, [&](uint32_t reg) { all.push_back(reg); });
  if (all.empty()) return;
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  for (Inst& inst : kernel.code) {
    const auto note = [&](uint32_t reg) {
      const auto at = std::lower_bound(all.begin(), all.end(), reg);
      if (at != all.end() && *at == reg) inst.wgmma_registers.push_back(uint32_t(at - all.begin()));
    };
    if (inst.operation == Operation::wgmma_mma) for_matrix_registers(inst, note);
    else
      for (const Operand& operand : inst.operands) for_registers(operand, note);
  }
}

}  // namespace sim
