// parser.cpp -- module level: directives, variables with their initialisers, function headers. Bodies are in
// parser_body.cpp, operands in parser_operand.cpp.
#include "sim/parse/parser.h"

#include <algorithm>
#include <bit>

namespace sim::ptx {

constexpr uint32_t kMostNested = 100;  // what nvcc emits has three levels
// The host has a shadow of every variable among its own data, which is less than 2 GB in the code model that
// nvcc compiles for.
constexpr uint64_t kMostBytes = uint64_t{1} << 31;

Module parse(const std::string& text) { return Parser(text).parse_module(); }

// ---- tokens ----

void Parser::advance() {
  previous_end_ = lexer_.position();
  current_ = lexer_.next();
}

void Parser::unsupported(const std::string& message) const {
  lexer_.fail(FaultKind::kUnsupported, current_, message);
}

bool Parser::accept(std::string_view text) {
  if (!at(text)) return false;
  advance();
  return true;
}

void Parser::expect(std::string_view text) {
  if (!accept(text)) fail("expected '" + std::string(text) + "'");
}

Token Parser::expect_word(const char* what) {
  if (!at_kind(Token::Kind::kWord)) fail(std::string("expected ") + what);
  const Token token = current_;
  advance();
  return token;
}

int64_t Parser::expect_integer(const char* what) {
  if (!at_kind(Token::Kind::kInteger)) fail(std::string("expected ") + what);
  const int64_t value = current_.value;
  advance();
  return value;
}

void Parser::skip_statement() {
  while (!at(";")) {
    if (at_kind(Token::Kind::kEnd)) fail("expected ';'");
    advance();
  }
  advance();
}

Parser::Nested::Nested(Parser& parser) : depth_(parser.depth_) {
  if (++depth_ > kMostNested) parser.fail("nested more than " + std::to_string(kMostNested) + " deep");
}

// ---- module level ----

Module Parser::parse_module() {
  while (!at_kind(Token::Kind::kEnd)) parse_directive();
  for (size_t f = 0; f < module_.functions.size(); ++f) {
    // Neighbouring statements mostly share a .loc, and building its text is the expensive part.
    uint32_t last = SourceMap::kNowhere;
    std::string source;
    for (size_t i = 0; i < module_.functions[f].body.size(); ++i) {
      if (locations_[f][i] != last) {
        last = locations_[f][i];
        source = sources_.text(last);
      }
      module_.functions[f].body[i].site.source = source;
    }
  }
  return std::move(module_);
}

std::string_view Parser::parse_version_or_target() {
  advance();
  const std::string_view value = current_.text;
  advance();
  while (accept(",")) advance();  // .target sm_100a, debug
  return value;
}

void Parser::parse_directive() {
  if (at(".version")) {
    module_.version = parse_version_or_target();
  } else if (at(".target")) {
    module_.target = parse_version_or_target();
  } else if (accept(".address_size")) {
    if (expect_integer("an address size") != 64) unsupported("only 64-bit addresses");
  } else if (accept(".file")) {
    const int64_t number = expect_integer("a file number");
    if (!at_kind(Token::Kind::kString)) fail("expected a file name");
    sources_.add_file(number, current_.text);
    advance();
    while (accept(",")) advance();  // time stamp, size
  } else if (at(".section")) {
    parse_section();
  } else if (at(".loc")) {
    parse_location(nullptr);
  } else if (accept(".pragma")) {
    skip_statement();
  } else {
    bool is_extern = false;
    while (at(".visible") || at(".extern") || at(".weak") || at(".common")) {
      is_extern |= at(".extern");
      advance();
    }
    if (at(".entry") || at(".func")) {
      const bool is_entry = at(".entry");
      advance();
      parse_function(is_entry, is_extern);
    } else if (at_variable_space()) {
      const std::string_view space = current_.text.substr(1);
      advance();
      do {
        Variable variable = parse_variable(space, is_extern);
        module_names_.insert(variable.name);
        module_.variables.push_back(std::move(variable));
      } while (accept(","));
      expect(";");
    } else if (at_kind(Token::Kind::kWord) && current_.text[0] == '.') {
      unsupported("unknown directive " + std::string(current_.text));
    } else {
      fail("expected a directive");
    }
  }
}

void Parser::parse_section() {
  advance();
  const Token section = expect_word("a section name");
  if (!at("{")) fail("expected '{'");
  const std::string_view content = lexer_.skip_to_closing_brace();
  if (section.text == ".debug_str") sources_.add_debug_strings(content);
  advance();
}

// .loc F L C[, function_name LABEL[+N], inlined_at F L C]
void Parser::parse_location(Body* body) {
  advance();
  const auto position = [this] {
    SourcePosition at;
    at.file = expect_integer("a file number");
    at.line = expect_integer("a line number");
    at.column = expect_integer("a column number");
    return at;
  };
  const SourcePosition here = position();
  std::string_view function;
  int64_t offset = 0;
  SourcePosition call_site;
  if (accept(",")) {
    expect("function_name");
    function = expect_word("a label of .debug_str").text;
    if (accept("+")) offset = expect_integer("an offset");
    expect(",");
    expect("inlined_at");
    call_site = position();
  }
  // Line 0 marks code the compiler made up; the position before it says more.
  if (here.line == 0) return;
  const uint32_t location = sources_.add_location(here, function, offset, call_site);
  if (body != nullptr) body->location = location;
}

bool Parser::at_variable_space() const {
  return at(".global") || at(".const") || at(".shared") || at(".local") || at(".param");
}

Type Parser::parse_declared_type() {
  Type type = Type::kNone;
  if (!at_kind(Token::Kind::kWord) || current_.text[0] != '.') fail("expected a type");
  if (!parse_type(std::string(current_.text.substr(1)), &type)) {
    unsupported("unknown type " + std::string(current_.text));
  }
  advance();
  return type;
}

// Parses what follows the state space: attributes, type, name, array dimensions, initialiser.
Variable Parser::parse_variable(std::string_view space, bool is_extern, Token* name) {
  Variable variable;
  variable.space = space;
  variable.is_extern = is_extern;
  uint64_t vector = 1;
  bool pointee = false;  // after .ptr, .align and the state space describe what the parameter points at
  uint64_t align = 0;
  for (;;) {
    if (accept(".align")) {
      const uint64_t value = static_cast<uint64_t>(expect_integer("an alignment"));
      if (!std::has_single_bit(value) || value > kMostBytes)
        fail("an alignment is a power of two up to 2^31");
      if (!pointee) align = value;
    } else if (accept(".attribute")) {
      expect("(");
      while (!accept(")")) {
        if (at_kind(Token::Kind::kEnd)) fail("expected ')'");
        advance();
      }
    } else if (accept(".ptr")) {
      pointee = true;
    } else if (pointee && at_variable_space()) {
      advance();
    } else if (at(".v2") || at(".v4") || at(".v8")) {
      vector = static_cast<uint64_t>(current_.text[2] - '0');
      advance();
    } else if (variable.type == Type::kNone) {
      variable.type = parse_declared_type();
    } else {
      break;
    }
  }
  const Token name_token = expect_word("a variable name");
  if (name != nullptr) *name = name_token;
  variable.name = name_token.text;
  variable.ptx_line = name_token.line;
  const uint64_t element = static_cast<uint64_t>(bits(variable.type)) / 8;
  if (element == 0) fail("a variable needs a type of whole bytes");
  variable.align = align != 0 ? align : element * vector;

  std::vector<uint64_t> dimensions;
  bool unsized = false;
  while (accept("[")) {
    if (at("]")) {
      unsized = true;
      dimensions.push_back(0);
    } else {
      dimensions.push_back(static_cast<uint64_t>(parse_constant()));
    }
    expect("]");
  }
  if (vector > 1) dimensions.push_back(vector);
  variable.size = element;
  for (const uint64_t n : dimensions) {
    if (__builtin_mul_overflow(variable.size, n, &variable.size) || variable.size > kMostBytes)
      lexer_.fail(FaultKind::kSyntax, name_token, "a variable has at most 2^31 bytes");
  }

  if (accept("=")) {
    if (unsized) unsupported("an initialised array needs its size");
    if (dimensions.empty()) {
      parse_initial_element(variable, 0);
    } else {
      parse_initialiser(variable, dimensions, 0, 0);
    }
  }
  return variable;
}

void Parser::parse_initialiser(Variable& variable, const std::vector<uint64_t>& dimensions, size_t level,
                               uint64_t offset) {
  uint64_t stride = static_cast<uint64_t>(bits(variable.type)) / 8;
  for (size_t i = level + 1; i < dimensions.size(); ++i) stride *= dimensions[i];
  const Nested nested(*this);
  expect("{");
  if (accept("}")) return;
  uint64_t i = 0;
  do {
    if (i++ == dimensions[level]) fail("more initial values than elements");
    if (level + 1 < dimensions.size()) {
      parse_initialiser(variable, dimensions, level + 1, offset);
    } else {
      parse_initial_element(variable, offset);
    }
    offset += stride;
  } while (accept(","));
  expect("}");
}

void Parser::parse_initial_element(Variable& variable, uint64_t offset) {
  if (bits(variable.type) > 64) unsupported("an initial value of 128 bits");
  if (at_kind(Token::Kind::kWord) && !at("WARP_SZ")) unsupported("a symbol's address as an initial value");
  Operand value;
  if (at_kind(Token::Kind::kInteger) && !(variable.type == Type::kF32 || variable.type == Type::kF64)) {
    value.value = parse_constant();
  } else {
    value = parse_number_operand();
  }
  uint64_t pattern = static_cast<uint64_t>(value.value);
  if (variable.type == Type::kF32 || variable.type == Type::kF64) {
    double number = static_cast<double>(value.value);
    if (value.kind == Operand::Kind::kFloat) {
      number = value.bits32 ? std::bit_cast<float>(static_cast<uint32_t>(pattern))
                            : std::bit_cast<double>(pattern);
    }
    // A literal of the variable's own width is bits, which a conversion could change (NaN payloads).
    const bool as_written =
        value.kind == Operand::Kind::kFloat && value.bits32 == (variable.type == Type::kF32);
    if (!as_written) {
      pattern = variable.type == Type::kF32 ? std::bit_cast<uint32_t>(static_cast<float>(number))
                                            : std::bit_cast<uint64_t>(number);
    }
  } else if (value.kind == Operand::Kind::kFloat) {
    fail("a floating-point value for an integer variable");
  }
  variable.initial.emplace_back(offset, pattern);
}

// ---- function header ----

void Parser::parse_function(bool is_entry, bool is_extern) {
  Function function;
  function.is_entry = is_entry;
  if (at("(")) function.returns = parse_parameters();
  function.ptx_line = current_.line;
  function.name = expect_word("a function name").text;
  module_names_.insert(function.name);
  if (at("(")) function.params = parse_parameters();
  parse_function_attributes(function);
  if (accept(";")) {
    function.is_declaration = true;
    locations_.emplace_back();
  } else if (is_extern) {
    fail("expected ';' behind an external declaration");
  } else {
    parse_body(function);
  }
  module_.functions.push_back(std::move(function));
}

std::vector<Variable> Parser::parse_parameters() {
  std::vector<Variable> parameters;
  expect("(");
  if (accept(")")) return parameters;
  do {
    if (at(".reg")) unsupported("parameters in registers");
    expect(".param");
    parameters.push_back(parse_variable("param", false));
  } while (accept(","));
  expect(")");
  return parameters;
}

void Parser::parse_extent(uint32_t (&extent)[3]) {
  uint32_t n = 0;
  do {
    if (n == 3) fail("more than three dimensions");
    extent[n++] = static_cast<uint32_t>(parse_constant());
  } while (accept(","));
  while (n < 3) extent[n++] = 1;
}

void Parser::parse_function_attributes(Function& function) {
  for (;;) {
    if (accept(".maxntid")) {
      parse_extent(function.max_ntid);
    } else if (accept(".reqntid")) {
      parse_extent(function.req_ntid);
    } else if (accept(".reqnctapercluster")) {
      parse_extent(function.req_cluster);
    } else if (accept(".explicitcluster")) {
      function.explicit_cluster = true;
    } else if (accept(".maxnreg")) {
      function.max_registers = static_cast<uint32_t>(parse_constant());
    } else if (accept(".minnctapersm")) {
      function.min_ctas = static_cast<uint32_t>(parse_constant());
    } else if (at(".maxclusterrank") || at(".local_maxnreg") || at(".maxnctapersm") || at(".abi_preserve") ||
               at(".abi_preserve_control")) {
      // Hints for the register allocator and the occupancy; they do not change what a program computes.
      advance();
      parse_constant();
    } else if (accept(".noreturn")) {
    } else if (accept(".pragma")) {
      skip_statement();
    } else if (at("{") || at(";")) {
      return;
    } else if (at_kind(Token::Kind::kWord) && current_.text[0] == '.') {
      unsupported("unknown function directive " + std::string(current_.text));
    } else {
      fail("expected '{' or ';'");
    }
  }
}

}  // namespace sim::ptx
