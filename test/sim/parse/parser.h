// parser.h -- recursive descent over the PTX grammar: directives, variables, functions, statements.
// It knows how operands look, not what an opcode does with them; the one exception is `call`,
// whose parentheses are lists.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/parse/lexer.h"
#include "sim/parse/module.h"
#include "sim/parse/scope.h"
#include "sim/parse/source_map.h"

namespace sim::ptx {

class Parser {
 public:
  explicit Parser(const std::string& text) : lexer_(text) { advance(); }
  Module parse_module();

 private:
  // Holds what the parser needs while it reads a function, beyond what the Function keeps.
  struct Body {
    explicit Body(Function& function) : scopes(function) {}
    struct Use {
      uint32_t statement, scope;
      Token token;
    };  // a name that may be a label
    struct Table {
      std::string name;
      uint32_t scope;
      std::vector<Token> labels;
    };
    Scopes scopes;
    std::set<std::string> names;  // variables, tables and prototypes: what a kName may be
    std::vector<Use> uses;
    std::vector<Table> tables;
    std::vector<uint32_t> locations;  // per statement
    uint32_t location = SourceMap::kNowhere;
  };

  // Tokens.
  void advance();
  [[noreturn]] void fail(const std::string& message) const {
    lexer_.fail(FaultKind::kSyntax, current_, message);
  }
  [[noreturn]] void unsupported(const std::string& message) const;
  bool at(std::string_view text) const { return current_.is(text); }
  bool at_kind(Token::Kind kind) const { return current_.kind == kind; }
  bool accept(std::string_view text);
  void expect(std::string_view text);
  Token expect_word(const char* what);
  int64_t expect_integer(const char* what);
  void skip_statement();

  // Counts how deep the text is nested while an object of it lives. The depth is limited because the parser
  // descends on the stack.
  class Nested {
   public:
    explicit Nested(Parser& parser);
    ~Nested() { --depth_; }
    Nested(const Nested&) = delete;

   private:
    uint32_t& depth_;
  };

  // Constants (parser_operand.cpp).
  int64_t parse_constant();
  int64_t parse_constant_term();
  int64_t parse_constant_above(int precedence);

  // Module level.
  void parse_directive();
  void parse_section();
  void parse_location(Body* body);
  std::string_view parse_version_or_target();
  Type parse_declared_type();
  Variable parse_variable(std::string_view space, bool is_extern, Token* name = nullptr);
  void parse_initialiser(Variable& variable, const std::vector<uint64_t>& dimensions, size_t level,
                         uint64_t offset);
  void parse_initial_element(Variable& variable, uint64_t offset);
  bool at_variable_space() const;

  // Functions.
  void parse_function(bool is_entry, bool is_extern);
  std::vector<Variable> parse_parameters();
  void parse_function_attributes(Function& function);
  void parse_extent(uint32_t (&extent)[3]);
  void parse_body(Function& function);
  void parse_block_item(Function& function, Body& body);
  void parse_registers(Body& body);
  void parse_local_variables(Function& function, Body& body);
  void parse_label(Function& function, Body& body, const Token& label);
  void parse_statement(Function& function, Body& body, Token first);
  void resolve_names(Function& function, Body& body);
  std::string unique_local_name(const Function& function, const Body& body, std::string_view name) const;

  // Operands (parser_operand.cpp).
  Operand parse_operand(Body& body, uint32_t statement);
  Operand parse_plain_operand(Body& body, uint32_t statement);
  Operand parse_word_operand(Body& body, uint32_t statement);
  Operand parse_number_operand();
  Operand parse_address(Body& body, uint32_t statement);
  Operand parse_list(Body& body, uint32_t statement, std::string_view close);

  Lexer lexer_;
  Token current_;
  size_t previous_end_ = 0;  // offset behind the token before current_
  uint32_t depth_ = 0;       // of Nested
  size_t registers_ = 0;     // declared in all functions
  Module module_;
  std::set<std::string> module_names_;
  SourceMap sources_;
  std::vector<std::vector<uint32_t>> locations_;  // per function, per statement
};

}  // namespace sim::ptx
