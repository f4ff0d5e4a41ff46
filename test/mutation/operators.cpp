// operators.cpp -- see operators.h.
#include "mutation/operators.h"

#include <algorithm>

namespace mutation {
namespace {

bool has(const Statement& s, const std::string& qualifier) {
  return std::find(s.qualifiers.begin(), s.qualifiers.end(), qualifier) != s.qualifiers.end();
}

// Says whether the statement turns an address of a CTA into that of its pair's leader: it keeps the upper
// bits without the lowest of the rank.
bool names_leader(const Statement& s) {
  return is(s, "and.b32") && s.operands[2].kind == Operand::Kind::kInteger &&
         (static_cast<uint32_t>(s.operands[2].value) >> 24) == 0xfe;
}

}  // namespace

Operator change(const char* operation, std::function<void(Function&, size_t)> edit) {
  return [=](const Function&, size_t at) {
    return std::vector<Change>{{operation, [=](Function& f) { edit(f, at); }}};
  };
}

Operator deletion() { return change("delete", erase); }

Operator twice() {
  return change("twice", [](Function& f, size_t at) { insert(f, at, Statement(f.body[at])); });
}

Operator offset(const char* operation, size_t operand, int64_t delta) {
  return change(operation, [=](Function& f, size_t at) { add_to_operand(f, at, operand, delta); });
}

Operator flip(const char* operation, size_t operand, int64_t bits) {
  return change(operation, [=](Function& f, size_t at) { flip_operand(f, at, operand, bits); });
}

Operator set_to(const char* operation, size_t operand, int64_t value) {
  return change(operation, [=](Function& f, size_t at) { f.body[at].operands[operand] = integer(value); });
}

Operator qualifier(const char* from, const char* to) {
  const std::string operation = std::string(".") + from + " to ." + to;
  return [=](const Function& function, size_t at) {
    if (!has(function.body[at], from)) return std::vector<Change>{};
    return std::vector<Change>{{operation, [=](Function& f) { replace_qualifier(f.body[at], from, to); }}};
  };
}

Operator replaced(const char* operation, const char* with, Operands operands) {
  return change(operation,
                [=](Function& f, size_t at) { f.body[at] = make(f.body[at], with, operands(f.body[at])); });
}

Operator lane_0_only() {
  return change("lane 0 only", [](Function& f, size_t at) { f.body[at].operands.back() = integer(1); });
}

Operator not_to(const char* operation, int rank) {
  return [=](const Function& function, size_t at) {
    const Statement& s = function.body[at];
    if (!has(s, "multicast::cluster")) return std::vector<Change>{};
    // The CTAs are the last operand, or the one before the cache policy.
    const size_t ranks = s.operands.size() - (has(s, "L2::cache_hint") ? 2 : 1);
    return flip(operation, ranks, 1 << rank)(function, at);
  };
}

Operator own_barrier(size_t operand) {
  return [=](const Function& function, size_t at) {
    const Operand& address = function.body[at].operands.at(operand);
    const bool direct = address.kind == Operand::Kind::kRegister;
    const uint32_t reg = direct ? address.reg : address.items.empty() ? ~0u : address.items[0].reg;
    const auto leader = std::find_if(function.body.begin(), function.body.end(), [&](const Statement& s) {
      return names_leader(s) && writes(s) == std::vector{reg};
    });
    if (leader == function.body.end()) return std::vector<Change>{};
    return std::vector<Change>{{"own barrier", [=, own = leader->operands[1]](Function& f) {
                                  Operand& target = f.body[at].operands[operand];
                                  (direct ? target : target.items[0]) = own;
                                }}};
  };
}

Operator without_bytes() {
  return change("arrive without bytes", [](Function& f, size_t at) {
    drop_qualifier(f.body[at], "expect_tx");
    f.body[at].operands.pop_back();
  });
}

Operator arrive_at_barrier_0() {
  return change("arrive only", [](Function& f, size_t at) {
    f.body[at] = make(f.body[at], "bar.arrive", {integer(0), integer(f.max_ntid[0])});
  });
}

Operator no_cluster_barrier() {
  return [](const Function& function, size_t at) {
    if (!is(function.body[at + 1], "barrier.cluster.wait")) return deletion()(function, at);
    return std::vector<Change>{{"no barrier", [=](Function& f) {
                                  erase(f, at);
                                  erase(f, at);
                                }}};
  };
}

Operator accumulates(const char* operation, bool always) {
  return change(operation, [=](Function& f, size_t at) {
    const uint32_t reg = fresh_register(f, sim::ptx::Type::kPred);
    f.body[at].operands.back() = of_register(reg);
    insert(f, at, make(f.body[at], "mov.pred", {of_register(reg), integer(always ? -1 : 0)}));
  });
}

Operator another_map() {
  return change("another map", [](Function& f, size_t at) {
    Operand& map = f.body[at].operands[1].items[0];
    const uint32_t reg = fresh_register(f, sim::ptx::Type::kB64), old = map.reg;
    map = of_register(reg);
    insert(f, at, make(f.body[at], "xor.b64", {of_register(reg), of_register(old), integer(128)}));
  });
}

Operator next_coordinate(const char* operation, size_t which) {
  return change(operation, [=](Function& f, size_t at) { add_to_coordinate(f, at, 1, which, 1); });
}

}  // namespace mutation
