// shadow.h -- for every byte of shared and global memory and every cell of tensor memory, who last wrote it
// and who has read it since. Bytes stand in lines of 128 with a mask per record, so that a tile copied or
// read by one operation is one record per line; a line of tensor memory is one column of 128 lanes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "sim/check/clock.h"

namespace sim {

constexpr uint32_t kLineBytes = 128;

// A mask selects among the 128 bytes of a line, or the 128 lanes of a column.
struct LineMask {
  uint64_t low = 0, high = 0;
  static LineMask range(uint32_t first, uint32_t count);  // [first, first + count) within [0, 128)
  bool any() const { return (low | high) != 0; }
  LineMask operator&(const LineMask& o) const { return {low & o.low, high & o.high}; }
  LineMask without(const LineMask& o) const { return {low & ~o.low, high & ~o.high}; }
  bool operator==(const LineMask&) const = default;
  uint32_t first() const;  // of a mask that is not empty
  uint32_t last() const;
};

struct AsyncOperation;  // race_state.h

// A touch is what one party does to a line. A synchronous access belongs to lanes of a warp: all of `lanes`
// touched all of the bytes or, with a stride, lane `lane0 + i` touched the i-th 2^stride bytes counted from
// `origin`.
struct Touch {
  static constexpr uint8_t kTogether = 0xFF;
  LineMask mask;
  Time time = 0;
  const Inst* inst = nullptr;
  const AsyncOperation* operation = nullptr;  // null: synchronous
  Component warp = 0;
  uint32_t lanes = 0;
  uint32_t work = 0;  // host work it belongs to
  uint8_t lane0 = 0, stride = kTogether;
  int16_t origin = 0;
  uint64_t digest = 0;  // of a store, as in Access
  bool write = false, strong = false, atomic = false, non_coherent = false;
  Proxy proxy = Proxy::kGeneric;
  Scope scope = Scope::kCta;
  bool host = false;  // work of the host, no thread
  LineMask bytes_of(uint32_t lane) const;
  // True for several lanes that stored the same bytes to the same place: it does not matter whose came last.
  bool same_stores() const {
    return write && digest != 0 && stride == kTogether && (lanes & (lanes - 1)) != 0;
  }
  bool same_pattern(const Touch& o) const {
    return lane0 == o.lane0 && stride == o.stride && lanes == o.lanes && origin == o.origin;
  }
};

// A line is the touches with which a later one has to be compared.
using Line = std::vector<Touch>;

// These are bytes of global memory read by asynchronous operations, or touched by the host: `count` runs of
// `bytes`, `stride` apart. They are kept aside, since a matrix is read by every tile and hardly ever written.
struct Runs {
  uint64_t address = 0, bytes = 0, stride = 0, count = 1;
  Touch touch;  // mask unused
  // Returns a byte range common with [from, to), which is empty when there is none.
  std::pair<uint64_t, uint64_t> overlap(uint64_t from, uint64_t to) const;
};

class Shadow {
 public:
  Line& shared(uint64_t cta, uint32_t line) { return of(cta).shared_line(line); }
  Line& tensor(uint64_t cta, uint32_t column) { return of(cta).tensor[column]; }
  Line& global(uint64_t line);
  Line* find_global(uint64_t line);  // null: nothing there yet
  void add_runs(const Runs& runs);
  // Returns the runs in the page, or null.
  const std::vector<Runs>* runs_of(uint64_t address) const;
  void for_each_line(uint64_t cta, const std::function<void(Memory, uint32_t, Line&)>& visit);
  void forget_cta(uint64_t cta) { ctas_.erase(cta), last_ = nullptr; }
  void forget_ctas() { ctas_.clear(), last_ = nullptr; }
  void forget_all();
  bool host_wrote() const { return host_wrote_; }               // some run is a write
  size_t global_size() const { return pages_.size() + runs_; }  // pages and runs that are kept

 private:
  struct Cta {
    std::vector<Line> shared;
    std::array<Line, 512> tensor;
    Line& shared_line(uint32_t line) {
      if (line >= shared.size()) shared.resize(line + 1);
      return shared[line];
    }
  };
  Cta& of(uint64_t cta);
  static constexpr uint32_t kPageLines = 64;
  static constexpr uint32_t kRunPageShift = 16;
  std::unordered_map<uint64_t, std::unique_ptr<Cta>> ctas_;
  std::unordered_map<uint64_t, std::unique_ptr<std::array<Line, kPageLines>>> pages_;
  std::unordered_map<uint64_t, std::vector<Runs>> page_runs_;  // by page of 64 KiB
  size_t runs_ = 0;
  bool host_wrote_ = false;
  uint64_t last_cta_ = 0, last_page_number_ = 0;
  Cta* last_ = nullptr;
  std::array<Line, kPageLines>* last_page_ = nullptr;
};

}  // namespace sim
