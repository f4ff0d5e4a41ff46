// parser_operand.cpp -- operands of a statement, and integer constant expressions.
#include <algorithm>
#include <string>

#include "sim/parse/parser.h"

namespace sim::ptx {
namespace {

// Tells the special registers of the ISA from a misspelt register. A component (.x) at the end of the name is
// ignored.
bool is_special_register(std::string_view name) {
  // Between spaces.
  static constexpr std::string_view kNames =
      " %tid %ntid %laneid %warpid %nwarpid %ctaid %nctaid %smid %nsmid %gridid %is_explicit_cluster "
      "%clusterid %nclusterid %cluster_ctaid %cluster_nctaid %cluster_ctarank %cluster_nctarank "
      "%lanemask_eq %lanemask_le %lanemask_lt %lanemask_ge %lanemask_gt %clock %clock_hi %clock64 "
      "%globaltimer %globaltimer_lo %globaltimer_hi %reserved_smem_offset_begin %reserved_smem_offset_end "
      "%reserved_smem_offset_cap %total_smem_size %aggr_smem_size %dynamic_smem_size %current_graph_exec ";
  const size_t dot = name.find('.');
  const std::string_view stem = name.substr(0, dot);
  if (dot != std::string_view::npos) {
    const std::string_view component = name.substr(dot);
    if (component != ".x" && component != ".y" && component != ".z" && component != ".w") return false;
  }
  if (kNames.find(" " + std::string(stem) + " ") != std::string_view::npos) return true;
  for (const std::string_view numbered : {"%pm", "%envreg", "%reserved_smem_offset_"}) {
    if (stem.size() > numbered.size() && stem.substr(0, numbered.size()) == numbered &&
        stem[numbered.size()] >= '0' && stem[numbered.size()] <= '9') {
      return true;
    }
  }
  return false;
}

struct BinaryOperator {
  std::string_view text;
  int precedence;
};
constexpr BinaryOperator kOperators[] = {{"|", 1}, {"^", 2}, {"&", 3}, {"+", 5},
                                         {"-", 5}, {"*", 6}, {"/", 6}, {"%", 6}};

}  // namespace

int64_t Parser::parse_constant() { return parse_constant_above(0); }

int64_t Parser::parse_constant_term() {
  const Nested nested(*this);
  if (accept("-")) return static_cast<int64_t>(-static_cast<uint64_t>(parse_constant_term()));
  if (accept("+")) return parse_constant_term();
  if (accept("~")) return ~parse_constant_term();
  if (accept("!")) return !parse_constant_term();
  if (accept("(")) {
    const int64_t value = parse_constant();
    expect(")");
    return value;
  }
  if (accept("WARP_SZ")) return 32;
  return expect_integer("an integer constant");
}

// Parses by precedence climbing; arithmetic wraps in 64 bits.
int64_t Parser::parse_constant_above(int precedence) {
  uint64_t left = static_cast<uint64_t>(parse_constant_term());
  for (;;) {
    const auto* op =
        std::find_if(std::begin(kOperators), std::end(kOperators), [&](const BinaryOperator& candidate) {
          return candidate.precedence > precedence && at(candidate.text);
        });
    const bool shift = op == std::end(kOperators) && precedence < 4 && (at("<") || at(">"));
    if (op == std::end(kOperators) && !shift) return static_cast<int64_t>(left);
    if (shift) {
      const bool to_left = at("<");
      advance();
      expect(to_left ? "<" : ">");
      const uint64_t amount = static_cast<uint64_t>(parse_constant_above(4));
      left = amount > 63 ? 0 : to_left ? left << amount : left >> amount;
      continue;
    }
    const Token where = current_;
    advance();
    const uint64_t right = static_cast<uint64_t>(parse_constant_above(op->precedence));
    switch (op->text[0]) {
      case '|': left |= right; break;
      case '^': left ^= right; break;
      case '&': left &= right; break;
      case '+': left += right; break;
      case '-': left -= right; break;
      case '*': left *= right; break;
      default:
        // A divisor of -1 is handled separately, because the most negative number divided by it overflows on
        // the host.
        if (right == 0) lexer_.fail(FaultKind::kSyntax, where, "division by zero in a constant");
        if (op->text[0] == '/') {
          left = right == ~uint64_t{0} ? 0 - left : static_cast<uint64_t>(int64_t(left) / int64_t(right));
        } else {
          left = right == ~uint64_t{0} ? 0 : static_cast<uint64_t>(int64_t(left) % int64_t(right));
        }
    }
  }
}

Operand Parser::parse_number_operand() {
  Operand operand;
  Lexer ahead = lexer_;
  const bool negative = at("-") && ahead.next().kind == Token::Kind::kFloat;
  if (negative) advance();
  if (at_kind(Token::Kind::kFloat)) {
    operand.kind = Operand::Kind::kFloat;
    operand.bits32 = current_.bits32;
    operand.value = current_.value;
    if (negative) operand.value ^= current_.bits32 ? int64_t{1} << 31 : INT64_MIN;
    advance();
    return operand;
  }
  operand.kind = Operand::Kind::kInteger;
  operand.value = parse_constant();
  return operand;
}

Operand Parser::parse_word_operand(Body& body, uint32_t statement) {
  const Token token = expect_word("an operand");
  const std::string_view name = token.text;
  Operand operand;
  if (name == "_") return operand;  // a sink
  if (const auto reg = body.scopes.find_register(name)) {
    operand.kind = Operand::Kind::kRegister;
    operand.reg = *reg;
    operand.name = name;
    return operand;
  }
  operand.name = name;
  if (name[0] == '%') {
    if (!is_special_register(name)) {
      lexer_.fail(FaultKind::kSyntax, token, "undeclared register " + std::string(name));
    }
    operand.kind = Operand::Kind::kSpecial;
    return operand;
  }
  operand.kind = Operand::Kind::kName;
  if (const std::string* unique = body.scopes.find_variable(name)) {
    operand.name = *unique;
  } else {
    body.uses.push_back({statement, body.scopes.current(), token});
  }
  return operand;
}

// [base], [base + offset], [base, {coordinates}]
Operand Parser::parse_address(Body& body, uint32_t statement) {
  expect("[");
  Operand address;
  address.kind = Operand::Kind::kAddress;
  if (at_kind(Token::Kind::kWord) && !at("WARP_SZ")) {
    address.items.push_back(parse_word_operand(body, statement));
    if (at("+") || at("-")) {
      // The signs are unary operators of the first term, so that [%r1+-16] and [%r1-16+4] read alike.
      const bool minus = at("-");
      if (!minus) advance();
      address.value = parse_constant();
    }
  } else {
    Operand base;
    base.kind = Operand::Kind::kInteger;
    base.value = parse_constant();
    address.items.push_back(base);
  }
  if (accept(",")) {
    if (accept("{")) {
      Operand list = parse_list(body, statement, "}");
      for (Operand& item : list.items) address.items.push_back(std::move(item));
    } else {
      address.items.push_back(parse_plain_operand(body, statement));
    }
  }
  expect("]");
  return address;
}

// Parses the items of a vector or of a parenthesised list, after its opening bracket.
Operand Parser::parse_list(Body& body, uint32_t statement, std::string_view close) {
  Operand list;
  list.kind = Operand::Kind::kVector;
  if (accept(close)) return list;
  do {
    list.items.push_back(parse_plain_operand(body, statement));
  } while (accept(","));
  expect(close);
  return list;
}

Operand Parser::parse_plain_operand(Body& body, uint32_t statement) {
  const Nested nested(*this);
  if (at("[")) return parse_address(body, statement);
  if (accept("{")) return parse_list(body, statement, "}");
  if (at_kind(Token::Kind::kWord) && !at("WARP_SZ")) return parse_word_operand(body, statement);
  if (at("!") || at("-")) {
    Lexer ahead = lexer_;
    if (ahead.next().kind == Token::Kind::kWord) {
      advance();
      Operand operand = parse_word_operand(body, statement);
      operand.negated = true;
      return operand;
    }
  }
  if (at_kind(Token::Kind::kInteger) || at_kind(Token::Kind::kFloat) || at("-") || at("+") || at("~") ||
      at("!") || at("(") || at("WARP_SZ")) {
    return parse_number_operand();
  }
  fail("expected an operand");
}

Operand Parser::parse_operand(Body& body, uint32_t statement) {
  Operand operand = parse_plain_operand(body, statement);
  if (!accept("|")) return operand;
  Operand pair;
  pair.kind = Operand::Kind::kPair;
  pair.items.push_back(std::move(operand));
  pair.items.push_back(parse_plain_operand(body, statement));
  return pair;
}

}  // namespace sim::ptx
