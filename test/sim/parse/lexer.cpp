// lexer.cpp -- see lexer.h. It makes one pass and allocates nothing: a token is a view of the text.
#include "sim/parse/lexer.h"

#include <algorithm>
#include <bit>
#include <charconv>

namespace sim::ptx {

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_hex_digit(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
static bool starts_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%' || c == '.';
}
static bool continues_word(char c) { return starts_word(c) || is_digit(c); }

void Lexer::fail(FaultKind kind, const Token& where, const std::string& message) const {
  const size_t offset = std::min<size_t>(where.text.data() - text_.data(), text_.size());
  size_t begin = offset;
  while (begin > 0 && text_[begin - 1] != '\n') --begin;
  const size_t end = std::min(text_.find('\n', offset), text_.size());
  std::string line(text_.substr(begin, end - begin));
  // Every tab becomes a column of its own, so that the caret stands under the token.
  std::replace(line.begin(), line.end(), '\t', ' ');
  throw Fault(kind, "ptx:" + std::to_string(where.line) + ":" + std::to_string(offset - begin + 1) + ": " +
                        message + "\n  " + line + "\n  " + std::string(offset - begin, ' ') + "^");
}

void Lexer::skip_blanks() {
  for (;;) {
    const char c = peek();
    if (c == '\n') {
      ++line_;
      ++at_;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v' ||
               (c == '\0' && at_ < text_.size())) {
      ++at_;  // NUL is a blank too: text from a fat binary ends with it
    } else if (c == '/' && peek(1) == '/') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '/' && peek(1) == '*') {
      const size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos) {
        Token open;
        open.line = line_;
        open.text = text_.substr(at_, 2);
        fail(FaultKind::kSyntax, open, "comment is not closed");
      }
      line_ += static_cast<uint32_t>(std::count(text_.begin() + at_, text_.begin() + end, '\n'));
      at_ = end + 2;
    } else {
      return;
    }
  }
}

Token Lexer::word() {
  Token token;
  token.kind = Token::Kind::kWord;
  token.line = line_;
  const size_t begin = at_;
  const bool directive = peek() == '.';  // `.reg.b16` is two words
  for (;;) {
    if (directive && at_ > begin && peek() == '.') break;
    if (continues_word(peek())) {
      ++at_;
    } else if (peek() == ':' && peek(1) == ':' && continues_word(peek(2))) {
      at_ += 2;  // shared::cta; a single colon ends a label
    } else {
      break;
    }
  }
  token.text = text_.substr(begin, at_ - begin);
  return token;
}

Token Lexer::hex_float(Token token, size_t digits) {
  const size_t begin = at_ + 2;
  size_t end = begin;
  while (end < text_.size() && is_hex_digit(text_[end])) ++end;
  token.text = text_.substr(at_, end - at_);
  if (end - begin != digits) {
    fail(FaultKind::kSyntax, token,
         "a floating-point literal needs " + std::to_string(digits) + " hex digits here");
  }
  uint64_t bits = 0;
  std::from_chars(text_.data() + begin, text_.data() + end, bits, 16);
  token.kind = Token::Kind::kFloat;
  token.bits32 = digits == 8;
  token.value = static_cast<int64_t>(bits);
  at_ = end;
  return token;
}

Token Lexer::number() {
  Token token;
  token.line = line_;
  token.text = text_.substr(at_, 1);
  const char second = peek(1);
  if (peek() == '0' && (second == 'f' || second == 'F')) return hex_float(token, 8);
  if (peek() == '0' && (second == 'd' || second == 'D')) return hex_float(token, 16);

  const size_t begin = at_;
  int base = 10;
  size_t digits = begin;
  if (peek() == '0' && (second == 'x' || second == 'X')) {
    base = 16;
    digits += 2;
  } else if (peek() == '0' && (second == 'b' || second == 'B')) {
    base = 2;
    digits += 2;
  } else if (peek() == '0' && is_digit(second)) {
    base = 8;
  }
  size_t end = digits;
  while (end < text_.size() && (base == 16 ? is_hex_digit(text_[end]) : is_digit(text_[end]))) ++end;

  const char after = end < text_.size() ? text_[end] : '\0';
  if (base != 16 && base != 2 && (after == '.' || after == 'e' || after == 'E')) {
    double decimal = 0;
    const auto result = std::from_chars(text_.data() + begin, text_.data() + text_.size(), decimal);
    end = result.ptr - text_.data();
    token.kind = Token::Kind::kFloat;
    token.value = std::bit_cast<int64_t>(decimal);
    if (result.ec != std::errc()) fail(FaultKind::kSyntax, token, "number out of range");
  } else {
    uint64_t value = 0;
    const auto result = std::from_chars(text_.data() + digits, text_.data() + end, value, base);
    token.kind = Token::Kind::kInteger;
    token.value = static_cast<int64_t>(value);
    if (result.ec != std::errc() || result.ptr != text_.data() + end) {
      fail(FaultKind::kSyntax, token, "malformed or too large integer");
    }
    if (after == 'U') ++end;  // the unsigned suffix
  }
  token.text = text_.substr(begin, end - begin);
  at_ = end;
  if (continues_word(peek())) fail(FaultKind::kSyntax, token, "a number runs into a word");
  return token;
}

Token Lexer::next() {
  skip_blanks();
  const char c = peek();
  if (starts_word(c)) return word();
  if (is_digit(c)) return number();

  Token token;
  token.line = line_;
  token.text = text_.substr(at_, 1);
  if (at_ >= text_.size()) {
    token.text = std::string_view(text_.data() + text_.size(), 0);
    return token;
  }
  if (c == '"') {
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size() || text_[end] != '"') fail(FaultKind::kSyntax, token, "string is not closed");
    token.kind = Token::Kind::kString;
    token.text = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return token;
  }
  if (std::string_view(",;:()[]{}<>|!@+-*/%~&^=").find(c) == std::string_view::npos) {
    fail(FaultKind::kSyntax, token, std::string("unexpected character '") + c + "'");
  }
  token.kind = Token::Kind::kPunctuation;
  ++at_;
  return token;
}

std::string_view Lexer::skip_to_closing_brace() {
  const size_t end = text_.find('}', at_);
  if (end == std::string_view::npos) {
    Token here;
    here.line = line_;
    here.text = text_.substr(at_, 0);
    fail(FaultKind::kSyntax, here, "section is not closed");
  }
  const std::string_view skipped = text_.substr(at_, end - at_);
  line_ += static_cast<uint32_t>(std::count(skipped.begin(), skipped.end(), '\n'));
  at_ = end + 1;
  return skipped;
}

}  // namespace sim::ptx
