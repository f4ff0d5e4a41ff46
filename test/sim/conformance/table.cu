// table.cu -- see table.h. This is host code only. The bits of a result and of the correctly rounded result
// are read as integers, so that their difference leads back to every result, NaN and infinity included:
//
//   7      the next 7 results are the correctly rounded ones
//   c, C   a result that is 3 more, 3 less (a to z, A to Z)
//   <-40>  a result that is 40 less
//
// The correctly rounded result comes from the double function of the C library. Two libraries may round one
// result in some 10^8 differently; the hash next to the text then differs.
#include "test/sim/conformance/table.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace conformance {
namespace {

struct Format {
  int bytes, exponent, mantissa;

  int lowest() const { return 2 - (1 << (exponent - 1)); }  // exponent of the smallest normal number
  uint32_t sign() const { return 1u << (exponent + mantissa); }
  uint32_t infinity() const { return ((1u << exponent) - 1) << mantissa; }
};

bool has(const std::string& name, const char* part) { return name.find(part) != std::string::npos; }

Format format_of(const std::string& name) {
  if (has(name, "bf16")) return {2, 8, 7};
  return has(name, "f16") ? Format{2, 5, 10} : Format{4, 8, 23};
}

double decoded(uint32_t bits, const Format& f, bool flush) {
  const uint32_t magnitude = bits & (f.sign() - 1), exponent = magnitude >> f.mantissa;
  const uint32_t fraction = magnitude - (exponent << f.mantissa);
  double x = std::ldexp(fraction, f.lowest() - f.mantissa);
  if (exponent != 0)
    x = std::ldexp(fraction + (1u << f.mantissa), int(exponent) - 1 + f.lowest() - f.mantissa);
  if (magnitude == f.infinity()) x = std::numeric_limits<double>::infinity();
  if (magnitude > f.infinity()) x = std::numeric_limits<double>::quiet_NaN();
  if (flush && exponent == 0) x = 0;
  return bits & f.sign() ? -x : x;
}

uint32_t rounded(double x, const Format& f, bool flush) {
  if (std::isnan(x)) return f.sign() - 1;
  const uint32_t sign = std::signbit(x) ? f.sign() : 0;
  if (std::isinf(x)) return sign | f.infinity();
  const int exponent = x == 0 ? f.lowest() : std::max(std::ilogb(x), f.lowest());
  if (exponent > 1 - f.lowest()) return sign | f.infinity();
  // The leading bit of a normal number adds one to the exponent's field, as a carry out of the fraction does.
  const auto digits = uint32_t(std::nearbyint(std::ldexp(std::fabs(x), f.mantissa - exponent)));
  const uint32_t magnitude = (uint32_t(exponent - f.lowest()) << f.mantissa) + digits;
  return sign | (flush && magnitude < 1u << f.mantissa ? 0 : magnitude);
}

double function(const std::string& name, double x) {
  if (has(name, "/ex2")) return std::exp2(x);
  if (has(name, "/lg2")) return std::log2(x);
  if (has(name, "/rcp")) return 1 / x;
  if (has(name, "/rsqrt")) return 1 / std::sqrt(x);
  if (has(name, "/sqrt")) return std::sqrt(x);
  if (has(name, "/sin")) return std::sin(x);
  if (has(name, "/cos")) return std::cos(x);
  if (has(name, "/tanh")) return std::tanh(x);
  throw std::runtime_error(name + " is no function that a table is known of");
}

uint32_t element(const Bytes& bytes, size_t i, const Format& f) {
  uint32_t bits = 0;
  for (int k = 0; k < f.bytes; ++k) bits |= uint32_t(bytes[i * f.bytes + k]) << (8 * k);
  return bits;
}

uint32_t nearest(const std::string& name, const Bytes& inputs, size_t i, const Format& f) {
  const bool flush = has(name, ".ftz");
  return rounded(function(name, decoded(element(inputs, i, f), f, flush)), f, flush);
}

int64_t read_number(const std::string& text, size_t& at) {
  size_t digits = 0;
  const int64_t number = std::stoll(text.substr(at, 20), &digits);
  at += digits;
  return number;
}

}  // namespace

std::string table_text(const std::string& name, const Bytes& inputs, const Bytes& results) {
  const Format f = format_of(name);
  std::string out;
  int64_t equal = 0;
  const auto flush_equal = [&] {
    if (equal != 0) out += std::to_string(equal);
    equal = 0;
  };
  for (size_t i = 0; i < results.size() / f.bytes; ++i) {
    const int64_t off = int64_t(element(results, i, f)) - nearest(name, inputs, i, f);
    if (off == 0) {
      ++equal;
      continue;
    }
    flush_equal();
    if (off > 0 && off <= 26) out += char('a' + off - 1);
    else if (off < 0 && off >= -26) out += char('A' - off - 1);
    else out += '<' + std::to_string(off) + '>';
  }
  flush_equal();
  return out;
}

Bytes table_results(const std::string& name, const Bytes& inputs, const std::string& text) {
  const Format f = format_of(name);
  Bytes out;
  const auto put = [&](int64_t off) {
    if (out.size() == inputs.size()) throw std::runtime_error(name + ": more results than inputs");
    const uint32_t bits = uint32_t(nearest(name, inputs, out.size() / f.bytes, f) + off);
    for (int k = 0; k < f.bytes; ++k) out.push_back(uint8_t(bits >> (8 * k)));
  };
  for (size_t at = 0; at < text.size();) {
    if (std::isdigit(static_cast<unsigned char>(text[at]))) {
      for (int64_t n = read_number(text, at); n > 0; --n) put(0);
    } else if (text[at] == '<') {
      put(read_number(text, ++at));
      ++at;
    } else {
      const char letter = text[at++];
      put(std::islower(static_cast<unsigned char>(letter)) ? letter - 'a' + 1 : -(letter - 'A' + 1));
    }
  }
  return out;
}

}  // namespace conformance
