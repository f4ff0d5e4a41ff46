// parser_body.cpp -- what stands between the braces of a function: declarations, blocks, labels, statements.
#include <algorithm>

#include "sim/parse/parser.h"

namespace sim::ptx {

constexpr int64_t kMostRegisters = 1 << 24;
constexpr size_t kSpareRegisters = 1 << 12;  // a short text may round up the number that it declares

// Returns the statement on one line, with white space collapsed and without comments.
static std::string on_one_line(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '/') {
      if (text.compare(i, 2, "//") == 0) i = std::min(text.find('\n', i), text.size() - 1);
      if (text.compare(i, 2, "/*") == 0) i = text.find("*/", i + 2) + 1;
    }
    const char c = text[i];
    const bool blank =
        c == ' ' || c == '\t' || c == '\n' || c == '\r' || (c == '/' && i > 0 && text[i - 1] == '*');
    if (!blank) {
      out += c;
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

static std::vector<std::string> split_qualifiers(std::string_view text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('.', begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

void Parser::parse_body(Function& function) {
  Body body(function);
  for (const Variable& v : function.params) body.names.insert(v.name);
  for (const Variable& v : function.returns) body.names.insert(v.name);
  expect("{");
  while (!(at("}") && body.scopes.at_outermost())) parse_block_item(function, body);
  advance();
  resolve_names(function, body);
  locations_.push_back(std::move(body.locations));
}

void Parser::parse_block_item(Function& function, Body& body) {
  if (at_kind(Token::Kind::kEnd)) fail("function " + function.name + " is not closed");
  if (accept("{")) {
    body.scopes.open();
  } else if (accept("}")) {
    body.scopes.close();
  } else if (accept(";")) {
    // an empty statement, as inline asm leaves behind
  } else if (at(".loc")) {
    parse_location(&body);
  } else if (accept(".pragma")) {
    skip_statement();
  } else if (accept(".reg")) {
    parse_registers(body);
  } else if (at_variable_space() || at(".extern")) {
    parse_local_variables(function, body);
  } else if (at("@")) {
    parse_statement(function, body, current_);
  } else if (at_kind(Token::Kind::kWord) && current_.text[0] == '.') {
    unsupported("unknown directive " + std::string(current_.text));
  } else if (at_kind(Token::Kind::kWord)) {
    const Token first = current_;
    Lexer ahead = lexer_;
    if (ahead.next().is(":")) {
      advance();
      advance();
      parse_label(function, body, first);
    } else {
      parse_statement(function, body, first);
    }
  } else {
    fail("expected a statement");
  }
}

void Parser::parse_registers(Body& body) {
  if (at(".v2") || at(".v4")) unsupported("vector registers");
  const Type type = parse_declared_type();
  do {
    const Token name = expect_word("a register name");
    bool fresh = true;
    if (accept("<")) {
      const int64_t count = expect_integer("a number of registers");
      expect(">");
      if (count < 0 || count > kMostRegisters)
        lexer_.fail(FaultKind::kSyntax, name, "impossible number of registers");
      // A text that names each of its registers has fewer registers than bytes, which limits the number that
      // may be declared.
      registers_ += static_cast<size_t>(count);
      if (registers_ > lexer_.text().size() + kSpareRegisters)
        lexer_.fail(FaultKind::kSyntax, name, "more registers than the module could name");
      fresh = body.scopes.declare_registers(name.text, static_cast<uint32_t>(count), type);
    } else {
      fresh = body.scopes.declare_register(name.text, type);
    }
    if (!fresh) {
      lexer_.fail(FaultKind::kSyntax, name,
                  "register " + std::string(name.text) + " is declared twice in this block");
    }
  } while (accept(","));
  expect(";");
}

std::string Parser::unique_local_name(const Function& function, const Body& body,
                                      std::string_view name) const {
  const auto taken = [&](const std::string& candidate) {
    return module_names_.count(candidate) != 0 || body.names.count(candidate) != 0 ||
           candidate == function.name;
  };
  std::string unique(name);
  for (int n = 2; taken(unique); ++n) unique = std::string(name) + "#" + std::to_string(n);
  return unique;
}

void Parser::parse_local_variables(Function& function, Body& body) {
  const bool is_extern = accept(".extern");
  if (!at_variable_space()) fail("expected a state space");
  const std::string_view space = current_.text.substr(1);
  advance();
  do {
    Token name;
    Variable variable = parse_variable(space, is_extern, &name);
    variable.name = unique_local_name(function, body, name.text);
    body.names.insert(variable.name);
    if (!body.scopes.declare_variable(name.text, variable.name)) {
      lexer_.fail(FaultKind::kSyntax, name, std::string(name.text) + " is declared twice in this block");
    }
    function.locals.push_back(std::move(variable));
  } while (accept(","));
  expect(";");
}

// Parses what follows `NAME:`. Tables and prototypes are statements in the text but not instructions.
void Parser::parse_label(Function& function, Body& body, const Token& label) {
  const std::string name(label.text);
  if (at(".branchtargets") || at(".calltargets") || at(".callprototype")) {
    const bool branches = at(".branchtargets");
    advance();
    const std::string unique = unique_local_name(function, body, name);
    body.names.insert(unique);
    if (!body.scopes.declare_variable(label.text, unique)) {
      lexer_.fail(FaultKind::kSyntax, label, name + " is declared twice in this block");
    }
    if (!branches) {
      skip_statement();
      return;
    }
    Body::Table table{unique, body.scopes.current(), {}};
    do {
      table.labels.push_back(expect_word("a label"));
    } while (accept(","));
    expect(";");
    body.tables.push_back(std::move(table));
    return;
  }
  if (!body.scopes.declare_label(label.text, static_cast<uint32_t>(function.body.size()))) {
    lexer_.fail(FaultKind::kSyntax, label, "label " + name + " is declared twice in this block");
  }
}

// [@[!]p] opcode.qualifiers [operand, ...];
void Parser::parse_statement(Function& function, Body& body, Token first) {
  Statement statement;
  statement.site.ptx_line = first.line;
  if (accept("@")) {
    statement.guarded = true;
    statement.guard_negated = accept("!");
    const Token guard = expect_word("a predicate register");
    const auto reg = body.scopes.find_register(guard.text);
    if (!reg) lexer_.fail(FaultKind::kSyntax, guard, "undeclared register " + std::string(guard.text));
    if (function.registers[*reg].type != Type::kPred) {
      lexer_.fail(FaultKind::kSyntax, guard, "a guard is a predicate register");
    }
    statement.guard = *reg;
  }
  const Token opcode = expect_word("an opcode");
  if (opcode.text[0] == '.' || opcode.text[0] == '%')
    lexer_.fail(FaultKind::kSyntax, opcode, "expected an opcode");
  statement.qualifiers = split_qualifiers(opcode.text);
  // Blanks may separate qualifiers, as in `mma.sync .row`.
  while (at_kind(Token::Kind::kWord) && current_.text[0] == '.') {
    for (std::string& part : split_qualifiers(current_.text.substr(1)))
      statement.qualifiers.push_back(std::move(part));
    advance();
  }
  statement.opcode = std::move(statement.qualifiers.front());
  statement.qualifiers.erase(statement.qualifiers.begin());
  if (std::find(statement.qualifiers.begin(), statement.qualifiers.end(), "") != statement.qualifiers.end()) {
    lexer_.fail(FaultKind::kSyntax, opcode, "empty qualifier");
  }

  const uint32_t index = static_cast<uint32_t>(function.body.size());
  const bool call = statement.opcode == "call";
  if (!at(";")) {
    do {
      if (call && accept("(")) {
        statement.operands.push_back(parse_list(body, index, ")"));
      } else {
        statement.operands.push_back(parse_operand(body, index));
      }
    } while (accept(","));
  }
  if (!at(";")) fail("expected ',' or ';'");
  const size_t begin = static_cast<size_t>(first.text.data() - lexer_.text().data());
  statement.text = on_one_line(lexer_.text().substr(begin, previous_end_ - begin));
  advance();
  body.locations.push_back(body.location);
  function.body.push_back(std::move(statement));
}

// A label may stand after its use, so names that are neither registers nor variables are settled here.
void Parser::resolve_names(Function& function, Body& body) {
  const auto settle = [](auto&& self, Operand& operand, std::string_view name, uint32_t target) -> void {
    if (operand.kind == Operand::Kind::kName && operand.name == name) {
      operand.kind = Operand::Kind::kLabel;
      operand.value = target;
    }
    for (Operand& item : operand.items) self(self, item, name, target);
  };
  for (const Body::Use& use : body.uses) {
    if (const auto target = body.scopes.find_label(use.token.text, use.scope)) {
      for (Operand& operand : function.body[use.statement].operands)
        settle(settle, operand, use.token.text, *target);
      continue;
    }
    const std::string name(use.token.text);
    if (body.names.count(name) == 0 && module_names_.count(name) == 0) {
      lexer_.fail(FaultKind::kSyntax, use.token, "unknown name " + name);
    }
  }
  for (const Body::Table& table : body.tables) {
    std::vector<uint32_t>& targets = function.branch_targets[table.name];
    for (const Token& label : table.labels) {
      const auto target = body.scopes.find_label(label.text, table.scope);
      if (!target) lexer_.fail(FaultKind::kSyntax, label, "unknown label " + std::string(label.text));
      targets.push_back(*target);
    }
  }
}

}  // namespace sim::ptx
