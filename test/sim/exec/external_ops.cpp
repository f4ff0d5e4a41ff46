// external_ops.cpp -- calls of the functions that a module only declares: vprintf, to which nvcc turns
// printf, and __assertfail, to which it turns a failed assert.
#include <cstdio>
#include <string>

#include "sim/engine/formatted.h"
#include "sim/exec/exec.h"
#include "sim/text.h"

namespace sim {
namespace {

constexpr size_t kLongestText = 1 << 20;  // so that a text without an end is not read for ever

std::string read_text(Exec& x, uint64_t address, uint32_t lane, size_t longest = kLongestText) {
  std::string text;
  for (char c; text.size() < longest; text += c) {
    x.load(Space::kGeneric, address + text.size(), lane, &c, 1);
    if (c == 0) break;
  }
  return text;
}

// Returns an operand of the call: a register, or a .param variable, which is local memory.
uint64_t argument(Exec& x, const Operand& operand, uint32_t lane, uint32_t bytes) {
  if (operand.value.kind == Value::Kind::kRegister) return x.source(operand.value, lane);
  uint64_t value = 0;
  x.load(Space::kLocal, x.source(operand.value, lane), lane, &value, bytes);
  return value;
}

void give_back(Exec& x, const Value& result, uint32_t lane, int value) {
  if (result.kind == Value::Kind::kRegister) x.write(result, lane, uint32_t(value));
  else if (result.kind != Value::Kind::kSink)
    x.store(Space::kLocal, x.source(result, lane), lane, &value, sizeof value);
}

uint64_t special(const Exec& x, Special which, uint32_t lane) {
  Value value;
  value.kind = Value::Kind::kSpecial;
  value.special = which;
  return x.source(value, lane);
}

std::string triple(const Exec& x, uint32_t lane, Special first, Special second, Special third) {
  return "[" + std::to_string(special(x, first, lane)) + "," + std::to_string(special(x, second, lane)) +
         "," + std::to_string(special(x, third, lane)) + "]";
}

// int vprintf(const char* format, const void* arguments). The arguments lie one behind the other, each at a
// multiple of its size.
void print(Exec& x, const Inst& inst) {
  SIM_FOR_LANES(lane, x.mask) {
    const uint64_t format = argument(x, inst.operands[1], lane, 8);
    uint64_t at = argument(x, inst.operands[2], lane, 8);
    if (format == 0) {
      give_back(x, inst.operands[0].value, lane, -1);
      continue;
    }
    FormatArguments arguments;
    arguments.next = [&](uint32_t bytes) {
      at = (at + bytes - 1) / bytes * bytes;
      uint64_t value = 0;
      x.load(Space::kGeneric, at, lane, &value, bytes);
      at += bytes;
      return value;
    };
    arguments.string = [&](uint64_t address, size_t longest) { return read_text(x, address, lane, longest); };
    const Formatted formatted = sim::format(read_text(x, format, lane), arguments);
    std::fwrite(formatted.text.data(), 1, formatted.text.size(), x.grid.out);
    give_back(x, inst.operands[0].value, lane, formatted.arguments);
  }
}

// void __assertfail(const char* condition, const char* file, unsigned line, const char* function,
//                   size_t char_size)
[[noreturn]] void fail_assertion(Exec& x, const Inst& inst) {
  std::string fault;
  SIM_FOR_LANES(lane, x.mask) {
    const auto text = [&](size_t i) { return read_text(x, argument(x, inst.operands[i], lane, 8), lane); };
    const std::string condition = text(0), file = text(1), function = text(3);
    const std::string line = std::to_string(argument(x, inst.operands[2], lane, 4));
    const std::string told =
        file + ":" + line + ": " + function +
        ": block: " + triple(x, lane, Special::kCtaidX, Special::kCtaidY, Special::kCtaidZ) +
        ", thread: " + triple(x, lane, Special::kTidX, Special::kTidY, Special::kTidZ) + " Assertion `" +
        condition + "` failed.\n";
    std::fwrite(told.data(), 1, told.size(), x.grid.err);
    if (fault.empty())
      fault = "assertion failed: " + condition + ", " + file + ":" + line + " in " + function;
  }
  throw Fault(FaultKind::kAssert, fault);
}

}  // namespace

void call_external(Exec& x, const Inst& inst) {
  switch (x.grid.kernel.functions[inst.callee].external) {
    case External::kPrint: return print(x, inst);
    case External::kFailAssertion: fail_assertion(x, inst);
    case External::kNone: break;
  }
}

}  // namespace sim
