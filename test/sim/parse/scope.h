// scope.h -- the names of one function while it is parsed. `{ }` blocks may redeclare registers, labels and
// variables (every inlined asm statement of one wrapper declares the same ones), so a name is looked up from
// the innermost open block outwards. Registers and variables are declared before use; labels are not, so they
// are looked up at the end, from the block of the use.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/parse/module.h"

namespace sim::ptx {

class Scopes {
 public:
  explicit Scopes(Function& function) : function_(function), scopes_(1) {}

  void open();
  void close() { current_ = scopes_[current_].parent; }
  uint32_t current() const { return current_; }
  bool at_outermost() const { return current_ == 0; }

  // Each returns false when the block already declares the name.
  bool declare_register(std::string_view name, Type type);
  bool declare_registers(std::string_view prefix, uint32_t count, Type type);  // %r<12>: %r0 ... %r11
  bool declare_variable(std::string_view name, std::string unique);
  bool declare_label(std::string_view name, uint32_t instruction);

  std::optional<uint32_t> find_register(std::string_view name) const;
  const std::string* find_variable(std::string_view name) const;  // the unique name
  std::optional<uint32_t> find_label(std::string_view name, uint32_t scope) const;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Range {
    std::string_view prefix;
    uint32_t first, count;
  };
  struct Scope {
    uint32_t parent = kNone;
    std::unordered_map<std::string_view, uint32_t> registers;
    std::vector<Range> ranges;
    std::unordered_map<std::string_view, std::string> variables;
    std::unordered_map<std::string_view, uint32_t> labels;
  };
  static std::optional<uint32_t> find_register(const Scope& scope, std::string_view name);

  Function& function_;
  std::vector<Scope> scopes_;
  uint32_t current_ = 0;
};

}  // namespace sim::ptx
