// source_map.h -- where an instruction comes from: `.file`, `.loc` and the strings of `.debug_str` turned
// into one line of text, "sm100/mma.cuh:41 in mma_role <- sm100/dual_gemm.cuh:80". The chain of inlined
// calls is threaded through positions: `inlined_at F L C` names the call site, and what the latest
// `.loc F L C` said about itself is the next link.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sim::ptx {

struct SourcePosition {
  int64_t file = 0, line = 0, column = 0;
  auto operator<=>(const SourcePosition&) const = default;
};

class SourceMap {
 public:
  static constexpr uint32_t kNowhere = UINT32_MAX;

  void add_file(int64_t number, std::string_view path);
  void add_debug_strings(std::string_view section) { strings_ = section; }

  // Adds a `.loc`; text() takes the result. `function` is a label of .debug_str, and empty for code that is
  // not inlined.
  uint32_t add_location(SourcePosition at, std::string_view function = {}, int64_t function_offset = 0,
                        SourcePosition inlined_at = {});

  // The text is complete only after the whole module was read, because files and strings stand after the
  // code.
  std::string text(uint32_t location) const;

 private:
  struct Location {
    SourcePosition at;
    std::string_view function;
    int64_t function_offset;
    SourcePosition call_site;
    uint32_t caller;  // location of the call site, kNowhere when no .loc described it
  };
  uint32_t append(std::string& out, uint32_t location) const;
  const std::string& text_of_callers(uint32_t location) const;
  std::string place(SourcePosition at) const;
  const std::string& function_name(std::string_view label, int64_t offset) const;
  std::string read_name(std::string_view label, int64_t offset) const;
  void index_labels() const;

  std::map<int64_t, std::string> files_;
  std::map<SourcePosition, uint32_t> latest_;
  mutable std::map<std::pair<std::string_view, int64_t>, std::string> names_;  // what read_name found
  mutable std::unordered_map<std::string_view, size_t> labels_;  // of strings_: where the bytes begin
  // Many locations are called from the same place, so the texts of callers are kept.
  mutable std::unordered_map<uint32_t, std::string> callers_;
  std::vector<Location> locations_;
  std::string_view strings_;
};

}  // namespace sim::ptx
