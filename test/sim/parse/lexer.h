// lexer.h -- PTX text as tokens, each with its line. A word includes its dots, so `cp.async.bulk.shared::cta`
// and `%tid.x` are one token each; but `.reg.b16` is two, `.reg` and `.b16`. What a word means is the
// parser's business. Tokens point into the text, which must outlive them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/fault.h"

namespace sim::ptx {

struct Token {
  enum class Kind : uint8_t { kWord, kInteger, kFloat, kString, kPunctuation, kEnd };
  Kind kind = Kind::kEnd;
  bool bits32 = false;    // kFloat written 0f...
  uint32_t line = 1;      // 1-based
  std::string_view text;  // as written; for a string, what stands between the quotes
  int64_t value = 0;      // kInteger; kFloat: the bits

  bool is(std::string_view expected) const {
    return text == expected && (kind == Kind::kWord || kind == Kind::kPunctuation);
  }
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Token next();

  // Moves past the next `}` and returns what stands before it. This reads debug sections, which are most of
  // the bytes of a module compiled with -lineinfo and hold neither braces nor strings.
  std::string_view skip_to_closing_brace();

  std::string_view text() const { return text_; }
  size_t position() const { return at_; }

  // Throws a fault of `kind` at a token. Its text is "ptx:LINE:COLUMN: message", the line, and a caret under
  // the token.
  [[noreturn]] void fail(FaultKind kind, const Token& where, const std::string& message) const;

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  void skip_blanks();
  Token word();
  Token number();
  Token hex_float(Token token, size_t digits);

  std::string_view text_;
  size_t at_ = 0;
  uint32_t line_ = 1;
};

}  // namespace sim::ptx
