// shadow.cpp -- lines of touches, found by address.
#include "sim/check/shadow.h"

#include <algorithm>
#include <cstring>

namespace sim {

LineMask Touch::bytes_of(uint32_t lane) const {
  if ((lanes >> lane & 1) == 0) return {};
  if (stride == kTogether) return mask;
  const int first = origin + (int(lane) - int(lane0)) * (1 << stride);
  const int from = std::max(first, 0), to = std::min(first + (1 << stride), int(kLineBytes));
  return from < to ? mask & LineMask::range(uint32_t(from), uint32_t(to - from)) : LineMask{};
}

Touch& Writes::add(const Touch& touch) {
  all_ = all_ | touch.mask;
  touches_.push_back(touch);
  enter(touches_.size() - 1);
  return touches_.back();
}

void Writes::enter(size_t i) {
  const LineMask& mask = touches_[i].mask;
  const uint32_t first = mask.first(), count = mask.last() + 1 - first;
  if (mask == LineMask::range(first, count)) std::memset(&of_byte_[first], int(i), count);
  else
    for (LineMask rest = mask; rest.any(); rest = rest.without(LineMask::range(rest.first(), 1)))
      of_byte_[rest.first()] = uint8_t(i);
}

void Writes::erase(size_t i) {
  touches_[i] = touches_.back();
  touches_.pop_back();
  if (i < touches_.size()) enter(i);
}

// Lanes of one instruction are one touch. What a lane stored earlier comes before what it stores now.
void Overtaken::add(const Touch& touch) {
  constexpr size_t kMost = 16;
  if (!touches_) touches_ = std::make_unique<std::vector<Touch>>();
  bool known = false;
  for (Touch& other : *touches_) {
    if (other.warp != touch.warp || other.work != touch.work || !(other.mask == touch.mask)) continue;
    known = known || other.time == touch.time;
    if (other.time == touch.time) other.lanes |= touch.lanes;
    else other.lanes &= ~touch.lanes;
  }
  std::erase_if(*touches_, [](const Touch& other) { return other.lanes == 0; });
  if (known) return;
  if (touches_->size() == kMost) touches_->erase(touches_->begin());
  touches_->push_back(touch);
}

void Overtaken::cut(const LineMask& mask) {
  for (Touch& touch : *touches_) touch.mask = touch.mask.without(mask);
  std::erase_if(*touches_, [](const Touch& touch) { return !touch.mask.any(); });
  if (touches_->empty()) touches_.reset();
}

void Reads::add(const Touch& touch) {
  constexpr size_t kFew = 8;
  if (size() == 1 || size() == kFew) {  // many may come: threads that read bytes one by one
    masks_.reserve(size() * kFew);
    touches_.reserve(size() * kFew);
  }
  all_ = all_ | touch.mask;
  masks_.push_back(touch.mask);
  touches_.push_back(touch);
}

size_t Reads::next(size_t i, const LineMask& mask) const {
  constexpr size_t kAtOnce = 8;
  if (!(all_ & mask).any()) return size();
  for (; i + kAtOnce <= size(); i += kAtOnce) {
    LineMask some;
    for (size_t j = 0; j < kAtOnce; ++j) some = some | (masks_[i + j] & mask);
    if (some.any()) break;
  }
  while (i < size() && !(masks_[i] & mask).any()) ++i;
  return i;
}

void Reads::erase(size_t i) {
  masks_[i] = masks_.back();
  touches_[i] = touches_.back();
  masks_.pop_back();
  touches_.pop_back();
}

std::pair<uint64_t, uint64_t> Runs::overlap(uint64_t from, uint64_t to) const {
  uint64_t i = 0;
  if (from >= address + bytes && stride != 0) i = (from - address - bytes) / stride + 1;
  if (i >= count) return {0, 0};
  const uint64_t start = address + i * stride;
  const uint64_t lo = std::max(from, start), hi = std::min(to, start + bytes);
  return lo < hi ? std::pair{lo, hi} : std::pair<uint64_t, uint64_t>{0, 0};
}

CtaShadow::Cta& CtaShadow::of(uint64_t cta) {
  if (last_ != nullptr && last_cta_ == cta) return *last_;
  std::unique_ptr<Cta>& slot = ctas_[cta];
  if (!slot) slot = std::make_unique<Cta>();
  last_cta_ = cta;
  last_ = slot.get();
  return *last_;
}

void CtaShadow::for_each_line(uint64_t cta, const std::function<void(Memory, uint32_t, Line&)>& visit) {
  const auto at = ctas_.find(cta);
  if (at == ctas_.end()) return;
  Cta& c = *at->second;
  for (size_t i = 0; i < c.shared.size(); ++i)
    if (!c.shared[i].empty()) visit(Memory::kShared, uint32_t(i), c.shared[i]);
  for (size_t i = 0; i < c.tensor.size(); ++i)
    if (!c.tensor[i].empty()) visit(Memory::kTensor, uint32_t(i), c.tensor[i]);
}

Line& GlobalShadow::line(uint64_t line) {
  const uint64_t page = line / kPageLines;
  if (last_page_ == nullptr || last_page_number_ != page) {
    auto& slot = pages_[page];
    if (!slot) slot = std::make_unique<std::array<Line, kPageLines>>();
    last_page_ = slot.get();
    last_page_number_ = page;
  }
  return (*last_page_)[line % kPageLines];
}

Line* GlobalShadow::find(uint64_t line) {
  const uint64_t page = line / kPageLines;
  if (last_page_ == nullptr || last_page_number_ != page) {
    const auto at = pages_.find(page);
    if (at == pages_.end()) return nullptr;
    last_page_ = at->second.get();
    last_page_number_ = page;
  }
  return &(*last_page_)[line % kPageLines];
}

void GlobalShadow::add_runs(const Runs& runs) {
  host_wrote_ = host_wrote_ || runs.touch.write;
  uint64_t previous = ~uint64_t(0);
  for (uint64_t i = 0; i < runs.count; ++i) {
    const uint64_t start = runs.address + i * runs.stride;
    for (uint64_t page = start >> kRunPageShift; page <= (start + runs.bytes - 1) >> kRunPageShift; ++page) {
      if (page == previous) continue;
      page_runs_[page].push_back(runs);
      ++runs_;
      previous = page;
    }
  }
}

const std::vector<Runs>* GlobalShadow::runs_of(uint64_t address) const {
  if (page_runs_.empty()) return nullptr;
  const auto at = page_runs_.find(address >> kRunPageShift);
  return at == page_runs_.end() ? nullptr : &at->second;
}

void GlobalShadow::forget_all() {
  pages_.clear();
  page_runs_.clear();
  runs_ = 0;
  host_wrote_ = false;
  last_page_ = nullptr;
}

}  // namespace sim
