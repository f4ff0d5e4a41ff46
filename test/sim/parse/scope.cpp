// scope.cpp -- see scope.h.
#include "sim/parse/scope.h"

#include <charconv>

namespace sim::ptx {

void Scopes::open() {
  Scope scope;
  scope.parent = current_;
  scopes_.push_back(std::move(scope));
  current_ = static_cast<uint32_t>(scopes_.size() - 1);
}

bool Scopes::declare_register(std::string_view name, Type type) {
  Scope& scope = scopes_[current_];
  if (find_register(scope, name)) return false;
  scope.registers.emplace(name, static_cast<uint32_t>(function_.registers.size()));
  function_.registers.push_back({std::string(name), type});
  return true;
}

bool Scopes::declare_registers(std::string_view prefix, uint32_t count, Type type) {
  Scope& scope = scopes_[current_];
  for (const Range& range : scope.ranges) {
    if (range.prefix == prefix) return false;
  }
  scope.ranges.push_back({prefix, static_cast<uint32_t>(function_.registers.size()), count});
  for (uint32_t i = 0; i < count; ++i) {
    function_.registers.push_back({std::string(prefix) + std::to_string(i), type});
  }
  return true;
}

bool Scopes::declare_variable(std::string_view name, std::string unique) {
  return scopes_[current_].variables.emplace(name, std::move(unique)).second;
}

bool Scopes::declare_label(std::string_view name, uint32_t instruction) {
  return scopes_[current_].labels.emplace(name, instruction).second;
}

std::optional<uint32_t> Scopes::find_register(const Scope& scope, std::string_view name) {
  const auto found = scope.registers.find(name);
  if (found != scope.registers.end()) return found->second;
  for (const Range& range : scope.ranges) {
    if (name.size() <= range.prefix.size() || name.compare(0, range.prefix.size(), range.prefix) != 0)
      continue;
    const std::string_view digits = name.substr(range.prefix.size());
    if (digits.size() > 1 && digits[0] == '0') continue;
    uint32_t index = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (result.ec == std::errc() && result.ptr == digits.data() + digits.size() && index < range.count) {
      return range.first + index;
    }
  }
  return std::nullopt;
}

std::optional<uint32_t> Scopes::find_register(std::string_view name) const {
  for (uint32_t s = current_; s != kNone; s = scopes_[s].parent) {
    if (const auto found = find_register(scopes_[s], name)) return found;
  }
  return std::nullopt;
}

const std::string* Scopes::find_variable(std::string_view name) const {
  for (uint32_t s = current_; s != kNone; s = scopes_[s].parent) {
    const auto found = scopes_[s].variables.find(name);
    if (found != scopes_[s].variables.end()) return &found->second;
  }
  return nullptr;
}

std::optional<uint32_t> Scopes::find_label(std::string_view name, uint32_t scope) const {
  for (uint32_t s = scope; s != kNone; s = scopes_[s].parent) {
    const auto found = scopes_[s].labels.find(name);
    if (found != scopes_[s].labels.end()) return found->second;
  }
  return std::nullopt;
}

}  // namespace sim::ptx
