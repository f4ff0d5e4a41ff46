// place.cpp -- see place.h.
#include "sim/check/place.h"

namespace sim {

// Returns the opcode with its qualifiers: "st.shared.b32" of "@!%p1 st.shared.b32 [%r1], %r2".
static std::string spelling(std::string text) {
  if (text.starts_with('@')) text.erase(0, text.find(' ') + 1);
  return text.substr(0, text.find(' '));
}

std::string place_key(const std::string& source, uint32_t ptx_line, const std::string& text) {
  return source.empty() ? std::to_string(ptx_line) + ":" + text : source + ":" + spelling(text);
}

bool at_one_place(const Inst* a, const Inst* b) {
  if (a == nullptr || b == nullptr || a->statement == nullptr || b->statement == nullptr) return false;
  const auto key = [](const ptx::Statement& s) { return place_key(s.site.source, s.site.ptx_line, s.text); };
  return key(*a->statement) == key(*b->statement);
}

}  // namespace sim
