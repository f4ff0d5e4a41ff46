// per_grid.h -- what an observer knows of one grid, once for every grid under way: several may run together.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace sim {

template <class State>
class PerGrid {
 public:
  explicit PerGrid(std::function<std::unique_ptr<State>()> make = [] { return std::make_unique<State>(); })
      : make_(std::move(make)) {
    entries_.push_back({make_(), 0, false});
    now_ = entries_.front().state.get();
  }
  // A grid starts, and its state becomes the current one. The state is new, or one that a grid which has
  // ended left behind.
  void start(uint64_t work) {
    size_t i = 0;
    while (i < entries_.size() && entries_[i].under_way) ++i;
    if (i == entries_.size()) entries_.push_back({make_(), 0, false});
    entries_[i].work = work;
    entries_[i].under_way = true;
    now_ = entries_[i].state.get();
  }
  void resume(uint64_t work) {
    for (const Entry& entry : entries_)
      if (entry.under_way && entry.work == work) now_ = entry.state.get();
  }
  // The current grid has ended. Its state stays until another grid starts or resumes.
  void finish() {
    for (Entry& entry : entries_)
      if (entry.state.get() == now_) entry.under_way = false;
  }
  bool any_under_way() const {
    for (const Entry& entry : entries_)
      if (entry.under_way) return true;
    return false;
  }
  State& operator*() const { return *now_; }
  State* operator->() const { return now_; }

 private:
  struct Entry {
    std::unique_ptr<State> state;
    uint64_t work;
    bool under_way;
  };
  std::function<std::unique_ptr<State>()> make_;
  std::vector<Entry> entries_;
  State* now_;
};

}  // namespace sim
