// text.cpp -- see the header.
#include "sim/text.h"

#include <cxxabi.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

namespace sim {

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string plural(int64_t n, const char* one) { return std::to_string(n) + " " + one + (n == 1 ? "" : "s"); }

std::string readable(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), std::free);
  return text ? text.get() : mangled;
}

static void erase_all(std::string& text, const std::string& what) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at))
    text.erase(at, what.size());
}

// Replaces by "..." what stands between brackets of that kind which lie in `depth` pairs of angle brackets.
static std::string without_insides(const std::string& name, char open, char close, int depth) {
  std::string out;
  int angles = 0, inside = 0;
  for (const char c : name) {
    if (inside > 0) {
      inside += (c == open) - (c == close);
      if (inside == 0) out += c;
      continue;
    }
    out += c;
    if (c == open && angles == depth) {
      out += "...";
      inside = 1;
    } else {
      angles += (c == '<') - (c == '>');
    }
  }
  return out;
}

std::string short_name(std::string name) {
  constexpr size_t kMost = 72;
  if (name.size() <= kMost) return name;
  erase_all(name, "(anonymous namespace)::");
  if (name.starts_with("void ")) name.erase(0, 5);
  if (name.size() > kMost) name = without_insides(name, '(', ')', 0);
  for (int depth = 2; depth >= 0 && name.size() > kMost; --depth)
    name = without_insides(name, '<', '>', depth);
  return name;
}

std::string kernel_in(const std::string& text) {
  const size_t at = text.find("in kernel ");
  if (at == std::string::npos) return "";
  return text.substr(at + 10, text.find_first_of(",: \n", at + 10) - at - 10);
}

std::string with_short_kernel(std::string text) {
  const std::string mangled = kernel_in(text);
  if (mangled.empty()) return text;
  return text.replace(text.find("in kernel ") + 10, mangled.size(), short_name(readable(mangled)));
}

}  // namespace sim
