// shadow.h -- for every byte of shared and global memory and every cell of tensor memory, who last wrote it
// and who has read it since. Bytes stand in lines of 128 with a mask per record, so that a tile copied or
// read by one operation is one record per line; a line of tensor memory is one column of 128 lanes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/check/clock.h"

namespace sim {

constexpr uint32_t kLineBytes = 128;

// A mask selects among the 128 bytes of a line, or the 128 lanes of a column.
struct LineMask {
  uint64_t low = 0, high = 0;
  // [first, first + count) within [0, 128)
  static LineMask range(uint32_t first, uint32_t count) {
    const auto below = [](uint32_t n) { return n >= 64 ? ~uint64_t(0) : (uint64_t(1) << n) - 1; };
    const uint32_t end = first + count;
    LineMask m;
    if (first < 64) m.low = below(end) & ~below(first);
    if (end > 64) m.high = below(end - 64) & ~below(first > 64 ? first - 64 : 0);
    return m;
  }
  bool any() const { return (low | high) != 0; }
  LineMask operator&(const LineMask& o) const { return {low & o.low, high & o.high}; }
  LineMask operator|(const LineMask& o) const { return {low | o.low, high | o.high}; }
  LineMask without(const LineMask& o) const { return {low & ~o.low, high & ~o.high}; }
  bool operator==(const LineMask&) const = default;
  // Those of a mask that is not empty.
  uint32_t first() const {
    return low != 0 ? uint32_t(__builtin_ctzll(low)) : 64 + uint32_t(__builtin_ctzll(high));
  }
  uint32_t last() const {
    return high != 0 ? 127 - uint32_t(__builtin_clzll(high)) : 63 - uint32_t(__builtin_clzll(low));
  }
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
  bool collective = false;  // as in Access
  bool host = false;        // work of the host, no thread
  LineMask bytes_of(uint32_t lane) const;
  // True for several lanes that stored the same bytes to the same place: it does not matter whose came last.
  bool same_stores() const {
    return write && digest != 0 && stride == kTogether && (lanes & (lanes - 1)) != 0;
  }
  bool same_pattern(const Touch& o) const {
    return lane0 == o.lane0 && stride == o.stride && lanes == o.lanes && origin == o.origin;
  }
};

// The latest writes of the bytes of one line: each of them has bytes that no other has.
class Writes {
 public:
  bool empty() const { return touches_.empty(); }
  // `touch` comes after a cut of its bytes.
  Touch& add(const Touch& touch);
  // Visits each write that has a byte of `mask`.
  template <class Visit>
  void for_each(const LineMask& mask, Visit&& visit) const {
    for (LineMask rest = all_ & mask; rest.any();) {
      const Touch& touch = touches_[of_byte_[rest.first()]];
      visit(touch);
      rest = rest.without(touch.mask);
    }
  }
  // Visits each such write and takes these bytes away from it; a write that has none left is removed.
  template <class Visit>
  void cut(const LineMask& mask, Visit&& visit) {
    for (LineMask rest = all_ & mask; rest.any();) {
      const size_t i = of_byte_[rest.first()];
      Touch& touch = touches_[i];
      visit(std::as_const(touch));
      rest = rest.without(touch.mask);
      touch.mask = touch.mask.without(mask);
      if (!touch.mask.any()) erase(i);
    }
    all_ = all_.without(mask);
  }

 private:
  void erase(size_t i);                      // the last one takes its place
  void enter(size_t i);                      // the bytes of a touch into of_byte_
  LineMask all_;                             // bytes that some touch has
  std::array<uint8_t, kLineBytes> of_byte_;  // which touch has it
  std::vector<Touch> touches_;
};

// Reads of one line, which may have bytes in common. Their masks are also kept in a separate list, and so is
// the union of all masks: most comparisons end there, and a line that was read byte by byte has a hundred
// touches.
class Reads {
 public:
  bool empty() const { return masks_.empty(); }
  size_t size() const { return masks_.size(); }
  void add(const Touch& touch);
  // As for writes.
  template <class Visit>
  void for_each(const LineMask& mask, Visit&& visit) const {
    for (size_t i = next(0, mask); i < size(); i = next(i + 1, mask)) visit(touches_[i]);
  }
  template <class Visit>
  void cut(const LineMask& mask, Visit&& visit) {
    for (size_t i = next(0, mask); i < size(); i = next(i, mask)) {
      visit(std::as_const(touches_[i]));
      touches_[i].mask = masks_[i] = masks_[i].without(mask);
      if (!masks_[i].any()) erase(i);
    }
    all_ = all_.without(mask);
  }
  // Removes the reads within these bytes for which the condition is true, before a read is added that has all
  // of these bytes.
  template <class Condition>
  void replace_within(const LineMask& mask, Condition&& condition) {
    for (size_t i = next(0, mask); i < size();)
      if (!masks_[i].without(mask).any() && condition(touches_[i])) erase(i), i = next(i, mask);
      else i = next(i + 1, mask);
  }

 private:
  size_t next(size_t i, const LineMask& mask) const;  // from i on, one with some of these bytes
  void erase(size_t i);                               // the last one takes its place
  LineMask all_;
  std::vector<LineMask> masks_;
  std::vector<Touch> touches_;
};

// Strong stores of one line that nothing orders before later strong stores of the same bytes: an access that
// follows the latest write of the bytes need not follow these. There are usually few of them; if there are
// many, only the latest are kept.
class Overtaken {
 public:
  bool empty() const { return touches_ == nullptr; }
  void add(const Touch& touch);
  template <class Visit>
  void for_each(const LineMask& mask, Visit&& visit) const {
    if (empty()) return;
    for (const Touch& touch : *touches_)
      if ((touch.mask & mask).any()) visit(touch);
  }
  void cut(const LineMask& mask);

 private:
  std::unique_ptr<std::vector<Touch>> touches_;  // hardly any line has one
};

// A line is the touches with which a later one has to be compared.
struct Line {
  Writes writes;
  Overtaken overtaken;
  Reads reads;
  bool empty() const { return writes.empty() && reads.empty(); }
  template <class Visit>
  void for_each(const LineMask& mask, Visit&& visit) const {
    writes.for_each(mask, visit);
    overtaken.for_each(mask, visit);
    reads.for_each(mask, visit);
  }
};

// Bytes of global memory read by asynchronous operations, or touched by the host: `count` runs of `bytes`,
// `stride` apart. They are kept in a separate list, since a matrix is read by every tile and hardly ever
// written.
struct Runs {
  uint64_t address = 0, bytes = 0, stride = 0, count = 1;
  Touch touch;  // mask unused
  // Returns a byte range common with [from, to), which is empty when there is none.
  std::pair<uint64_t, uint64_t> overlap(uint64_t from, uint64_t to) const;
};

// Shared and tensor memory of the CTAs of one grid.
class CtaShadow {
 public:
  Line& shared(uint64_t cta, uint32_t line) { return of(cta).shared_line(line); }
  Line& tensor(uint64_t cta, uint32_t column) { return of(cta).tensor[column]; }
  void for_each_line(uint64_t cta, const std::function<void(Memory, uint32_t, Line&)>& visit);
  void forget(uint64_t cta) { ctas_.erase(cta), last_ = nullptr; }
  void forget_all() { ctas_.clear(), last_ = nullptr; }

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
  std::unordered_map<uint64_t, std::unique_ptr<Cta>> ctas_;
  uint64_t last_cta_ = 0;
  Cta* last_ = nullptr;
};

// Global memory, across grids.
class GlobalShadow {
 public:
  Line& line(uint64_t line);
  Line* find(uint64_t line);  // null: nothing there yet
  void add_runs(const Runs& runs);
  // Returns the runs in the page, or null.
  const std::vector<Runs>* runs_of(uint64_t address) const;
  void forget_all();
  bool host_wrote() const { return host_wrote_; }        // some run is a write
  size_t size() const { return pages_.size() + runs_; }  // pages and runs that are kept

 private:
  static constexpr uint32_t kPageLines = 64;
  static constexpr uint32_t kRunPageShift = 16;
  std::unordered_map<uint64_t, std::unique_ptr<std::array<Line, kPageLines>>> pages_;
  std::unordered_map<uint64_t, std::vector<Runs>> page_runs_;  // by page of 64 KiB
  size_t runs_ = 0;
  bool host_wrote_ = false;
  uint64_t last_page_number_ = 0;
  std::array<Line, kPageLines>* last_page_ = nullptr;
};

}  // namespace sim
