// edit.cpp -- see edit.h.
#include "mutation/edit.h"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace mutation {
namespace {

using sim::ptx::Type;

// Visits every branch target of the function.
template <class Visit>
void for_each_target(Function& function, Visit visit) {
  for (Statement& statement : function.body)
    for (Operand& operand : statement.operands)
      if (operand.kind == Operand::Kind::kLabel) {
        uint32_t target = static_cast<uint32_t>(operand.value);
        visit(target);
        operand.value = target;
      }
  for (auto& [name, targets] : function.branch_targets)
    for (uint32_t& target : targets) visit(target);
}

void collect(const Operand& operand, std::vector<uint32_t>& out) {
  if (operand.kind == Operand::Kind::kRegister) out.push_back(operand.reg);
  for (const Operand& item : operand.items) collect(item, out);
}

// Puts `op` with `amount` before the statement and its result where `operand` stood.
void compute(Function& function, size_t at, Operand& operand, const std::string& op, int64_t amount) {
  if (operand.kind == Operand::Kind::kInteger) {
    operand.value = op == "xor" ? operand.value ^ amount : operand.value + amount;
    return;
  }
  if (operand.kind != Operand::Kind::kRegister)
    throw std::logic_error("operand of `" + function.body[at].text + "` is neither register nor integer");
  const Type type = function.registers[operand.reg].type;
  const std::string width = std::to_string(sim::ptx::bits(type));
  const uint32_t reg = fresh_register(function, type);
  const Operand before = operand;
  operand = of_register(reg);
  const std::string suffix = (op == "xor" ? ".b" : ".s") + width;
  Statement step = make(function.body[at], op + suffix, {of_register(reg), before, integer(amount)});
  step.guarded = false;
  insert(function, at, std::move(step));
}

bool same(const Operand& a, const Operand& b) {
  return a.kind == b.kind && a.reg == b.reg && a.value == b.value && a.name == b.name &&
         std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), same);
}

bool same_statement(const Statement& a, const Statement& b) {
  return a.opcode == b.opcode && a.qualifiers == b.qualifiers && a.guarded == b.guarded &&
         std::equal(a.operands.begin(), a.operands.end(), b.operands.begin(), b.operands.end(), same);
}

}  // namespace

bool same_statements(const Function& a, const Function& b) {
  return std::equal(a.body.begin(), a.body.end(), b.body.begin(), b.body.end(), same_statement);
}

std::string spelling(const Statement& statement) {
  std::string out = statement.opcode;
  for (const std::string& qualifier : statement.qualifiers) out += "." + qualifier;
  return out;
}

bool is(const Statement& statement, std::string_view prefix) {
  const std::string text = spelling(statement);
  return text.starts_with(prefix) && (text.size() == prefix.size() || text[prefix.size()] == '.');
}

void erase(Function& function, size_t at) {
  function.body.erase(function.body.begin() + static_cast<std::ptrdiff_t>(at));
  for_each_target(function, [at](uint32_t& target) {
    if (target > at) --target;
  });
}

void insert(Function& function, size_t at, Statement statement) {
  function.body.insert(function.body.begin() + static_cast<std::ptrdiff_t>(at), std::move(statement));
  for_each_target(function, [at](uint32_t& target) {
    if (target > at) ++target;
  });
}

void move_before(Function& function, size_t from, size_t other) {
  Statement moved = function.body[from];
  erase(function, from);
  insert(function, other > from ? other - 1 : other, std::move(moved));
}

void move_behind(Function& function, size_t from, size_t other) {
  Statement moved = function.body[from];
  erase(function, from);
  // It stands after the other one, so branches to the statement that follows do not reach it.
  const size_t at = other > from ? other : other + 1;
  function.body.insert(function.body.begin() + static_cast<std::ptrdiff_t>(at), std::move(moved));
  for_each_target(function, [at](uint32_t& target) {
    if (target >= at) ++target;
  });
}

void drop_qualifier(Statement& statement, const std::string& qualifier) {
  if (std::erase(statement.qualifiers, qualifier) == 0)
    throw std::logic_error("`" + statement.text + "` has no ." + qualifier);
}

void replace_qualifier(Statement& statement, const std::string& from, const std::string& to) {
  const auto found = std::find(statement.qualifiers.begin(), statement.qualifiers.end(), from);
  if (found == statement.qualifiers.end()) throw std::logic_error("`" + statement.text + "` has no ." + from);
  *found = to;
}

Statement make(const Statement& like, const std::string& spelling, std::vector<Operand> operands) {
  Statement out = like;
  out.qualifiers.clear();
  std::istringstream words(spelling);
  std::getline(words, out.opcode, '.');
  for (std::string word; std::getline(words, word, '.');) out.qualifiers.push_back(word);
  out.operands = std::move(operands);
  out.text = spelling + " (planted at `" + like.text + "`)";
  return out;
}

Operand integer(int64_t value) {
  Operand out;
  out.kind = Operand::Kind::kInteger;
  out.value = value;
  return out;
}

Operand of_register(uint32_t reg) {
  Operand out;
  out.kind = Operand::Kind::kRegister;
  out.reg = reg;
  return out;
}

uint32_t fresh_register(Function& function, Type type) {
  const uint32_t reg = static_cast<uint32_t>(function.registers.size());
  function.registers.push_back({"%planted" + std::to_string(reg), type});
  return reg;
}

void add_to_operand(Function& function, size_t at, size_t index, int64_t delta) {
  Operand& operand = function.body[at].operands.at(index);
  if (operand.kind == Operand::Kind::kAddress) operand.value += delta;
  else compute(function, at, operand, "add", delta);
}

void flip_operand(Function& function, size_t at, size_t index, int64_t bits) {
  compute(function, at, function.body[at].operands.at(index), "xor", bits);
}

void add_to_coordinate(Function& function, size_t at, size_t index, size_t which, int64_t delta) {
  compute(function, at, function.body[at].operands.at(index).items.at(1 + which), "add", delta);
}

std::vector<uint32_t> writes(const Statement& statement) {
  // Opcodes whose first operand is not a result, by their beginnings.
  static constexpr std::string_view kNoResult[] = {// memory
                                                   "st", "stmatrix", "cp", "prefetch",
                                                   // order
                                                   "bar", "barrier.cta.sync", "barrier.cta.arrive", "fence",
                                                   "mbarrier.init", "mbarrier.arrive", "griddepcontrol",
                                                   // control flow
                                                   "bra", "ret",
                                                   // tensor core
                                                   "tcgen05.mma", "tcgen05.cp", "tcgen05.commit",
                                                   "tcgen05.st", "tcgen05.dealloc", "tcgen05.alloc",
                                                   "tcgen05.wait::ld"};
  std::vector<uint32_t> out;
  const bool none = std::any_of(std::begin(kNoResult), std::end(kNoResult),
                                [&](std::string_view prefix) { return is(statement, prefix); });
  if (!none && !statement.operands.empty()) collect(statement.operands[0], out);
  return out;
}

std::vector<uint32_t> reads(const Statement& statement) {
  std::vector<uint32_t> out;
  const bool accumulates = is(statement, "wgmma.mma_async");  // its first operand is both
  const size_t first = writes(statement).empty() || accumulates ? 0 : 1;
  for (size_t i = first; i < statement.operands.size(); ++i) collect(statement.operands[i], out);
  if (statement.guarded) out.push_back(statement.guard);
  return out;
}

}  // namespace mutation
