// formatted.cpp -- a format string is taken apart here. The C library gets one conversion at a time, put
// together anew from parts that were recognised, with an argument of the type that this conversion has.
#include "sim/engine/formatted.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "sim/fault.h"

namespace sim {
namespace {

constexpr int kMostArguments = 32;
constexpr size_t kLongest = 1 << 20;  // bytes of one conversion: as many as CUDA buffers by default

struct Conversion {
  std::string text;   // as written
  std::string flags;  // of # 0 + - and space
  bool width_argument = false;
  int width = 0;       // 0: none
  int precision = -1;  // -1: none
  std::string size;    // h, l, ll
  char type = 0;       // 0: this is no conversion
};

bool one_of(const char* list, char c) { return c != 0 && std::strchr(list, c) != nullptr; }

[[noreturn]] void unlisted(const std::string& text) {
  throw Fault(FaultKind::kUnsupported, "conversion " + text + " of device printf, which CUDA does not list");
}

int checked(int64_t value, const Conversion& c) {
  if (value > int64_t{kLongest} || value < -int64_t{kLongest})
    throw Fault(FaultKind::kUnsupported, "width or precision " + std::to_string(value) + " of conversion " +
                                             c.text + " of device printf");
  return int(value);
}

// Reads a conversion that begins with the % at `start`.
Conversion parse(const std::string& format, size_t start) {
  size_t at = start + 1;
  const auto here = [&] { return at < format.size() ? format[at] : '\0'; };
  Conversion c;
  const auto number = [&] {
    int64_t value = 0;
    for (; one_of("0123456789", here()); ++at)
      value = std::min<int64_t>(value * 10 + (here() - '0'), 2 * kLongest);
    return value;
  };
  for (; one_of("#0+- ", here()); ++at)
    if (c.flags.find(here()) == std::string::npos) c.flags += here();
  int64_t width = 0, precision = -1;
  if (here() == '*') {
    c.width_argument = true;
    ++at;
  } else {
    width = number();
  }
  bool precision_argument = false;
  if (here() == '.') {
    ++at;
    precision_argument = here() == '*';
    if (precision_argument) ++at;
    else precision = number();
  }
  const size_t size = at;
  while (one_of("hlLqjzt", here())) ++at;
  c.size = format.substr(size, at - size);
  const char type = here();
  if (one_of("%cdiouxXpeEfFgGaAsnCSm", type)) ++at;
  c.text = format.substr(start, at - start);
  if (!one_of("%cdiouxXpeEfFgGaAsnCSm", type)) return c;
  if (one_of("nCSm", type) || precision_argument ||
      !(c.size.empty() || c.size == "h" || c.size == "l" || c.size == "ll"))
    unlisted(c.text);
  c.width = checked(width, c);
  c.precision = checked(precision, c);
  c.type = type;
  return c;
}

template <class T>
std::string converted(const Conversion& c, const char* size, T value) {
  std::string spec = "%" + c.flags;
  if (c.width != 0) spec += std::to_string(c.width);
  if (c.precision >= 0) spec += "." + std::to_string(c.precision);
  spec += size;
  spec += c.type;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  std::vector<char> out(size_t(std::max(0, std::snprintf(nullptr, 0, spec.c_str(), value))) + 1);
  std::snprintf(out.data(), out.size(), spec.c_str(), value);
#pragma GCC diagnostic pop
  return std::string(out.data(), out.size() - 1);  // a character may be zero
}

// Every combination of parts is accepted: a size counts for integers, and elsewhere changes nothing.
std::string convert(const Conversion& c, const FormatArguments& arguments) {
  const bool wide = c.size == "l" || c.size == "ll";
  switch (c.type) {
    case 'd':
    case 'i': {
      if (wide) return converted(c, "ll", static_cast<long long>(arguments.next(8)));
      const int value = int(uint32_t(arguments.next(4)));
      return converted(c, "", c.size == "h" ? int(int16_t(value)) : value);
    }
    case 'o':
    case 'u':
    case 'x':
    case 'X': {
      if (wide) return converted(c, "ll", static_cast<unsigned long long>(arguments.next(8)));
      const unsigned value = unsigned(arguments.next(4));
      return converted(c, "", c.size == "h" ? unsigned(uint16_t(value)) : value);
    }
    case 'c': return converted(c, "", int(uint32_t(arguments.next(4))));
    case 'p': return converted(c, "", reinterpret_cast<const void*>(arguments.next(8)));
    case 's': {
      const uint64_t address = arguments.next(8);
      const size_t longest = c.precision < 0 ? kLongest : size_t(c.precision);
      return converted(c, "", (address == 0 ? "(null)" : arguments.string(address, longest)).c_str());
    }
    default: {
      const uint64_t bits = arguments.next(8);
      double value;
      std::memcpy(&value, &bits, sizeof value);
      return converted(c, "", value);
    }
  }
}

}  // namespace

Formatted format(const std::string& format, const FormatArguments& arguments) {
  Formatted out;
  for (size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      out.text += format[at++];
      continue;
    }
    Conversion c = parse(format, at);
    at += c.text.size();
    const int takes = c.type == 0 || c.type == '%' ? 0 : 1 + int(c.width_argument);
    if (c.text == "%%") {
      out.text += '%';
    } else if (takes == 0 || out.arguments + takes > kMostArguments) {
      out.text += c.text;
    } else {
      if (c.width_argument) {
        const int width = checked(int32_t(uint32_t(arguments.next(4))), c);
        if (width < 0 && c.flags.find('-') == std::string::npos) c.flags += '-';
        c.width = width < 0 ? -width : width;
      }
      out.text += convert(c, arguments);
      out.arguments += takes;
    }
  }
  return out;
}

}  // namespace sim
