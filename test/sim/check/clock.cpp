// clock.cpp -- vector clocks: look up, raise, join.
#include "sim/check/clock.h"

#include <algorithm>

namespace sim {

const VectorClock::Entry* VectorClock::find(Component c) const {
  if (!data_) return nullptr;
  const auto at = std::lower_bound(data_->begin(), data_->end(), c,
                                   [](const Entry& e, Component key) { return e.key < key; });
  return at != data_->end() && at->key == c ? &*at : nullptr;
}

Time VectorClock::of(Component c) const {
  const Entry* e = find(c);
  return e == nullptr ? 0 : e->time;
}

bool VectorClock::knows(Component c, uint32_t lanes, Time time) const {
  const Entry* e = find(c);
  if (e == nullptr) return time == 0;
  if (e->time >= time) return true;
  if (!e->lanes) return false;
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1)
    if ((*e->lanes)[size_t(__builtin_ctz(rest))] < time) return false;
  return true;
}

VectorClock::Entry& VectorClock::own(Component c) {
  if (!data_) data_ = std::make_shared<Entries>();
  else if (data_.use_count() > 1) data_ = std::make_shared<Entries>(*data_);
  auto at = std::lower_bound(data_->begin(), data_->end(), c,
                             [](const Entry& e, Component key) { return e.key < key; });
  if (at == data_->end() || at->key != c) at = data_->insert(at, Entry{c, 0, nullptr});
  return *at;
}

bool VectorClock::mentions(Component first, Component last) const {
  if (!data_) return false;
  const auto at = std::lower_bound(data_->begin(), data_->end(), first,
                                   [](const Entry& e, Component key) { return e.key < key; });
  return at != data_->end() && at->key <= last;
}

void VectorClock::raise(Component c, Time time) {
  if (of(c) >= time) return;
  Entry& e = own(c);
  e.time = time;
  e.lanes.reset();
}

void VectorClock::raise(Component c, uint32_t lanes, Time time) {
  if (lanes == kAllLanes) return raise(c, time);
  if (lanes == 0 || knows(c, lanes, time)) return;
  Entry& e = own(c);
  if (!e.lanes) {
    e.lanes = std::make_shared<Lanes>();
    e.lanes->fill(e.time);
  } else if (e.lanes.use_count() > 1) {
    e.lanes = std::make_shared<Lanes>(*e.lanes);
  }
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    Time& lane = (*e.lanes)[size_t(__builtin_ctz(rest))];
    lane = std::max(lane, time);
  }
  e.time = least(*e.lanes);
  const auto alike = [&](Time lane) { return lane == e.time; };
  if (std::all_of(e.lanes->begin(), e.lanes->end(), alike)) e.lanes.reset();
}

// Four chains of comparisons, which a CPU follows side by side.
Time VectorClock::least(const Lanes& lanes) {
  std::array<Time, 4> out{lanes[0], lanes[1], lanes[2], lanes[3]};
  for (size_t i = 4; i < lanes.size(); i += 4)
    for (size_t j = 0; j < 4; ++j) out[j] = std::min(out[j], lanes[i + j]);
  return std::min(std::min(out[0], out[1]), std::min(out[2], out[3]));
}

bool VectorClock::covers(const Entry& a, const Entry& b) {
  if (a.lanes == b.lanes) return a.time >= b.time;
  for (size_t i = 0; i < 32; ++i)
    if ((a.lanes ? (*a.lanes)[i] : a.time) < (b.lanes ? (*b.lanes)[i] : b.time)) return false;
  return true;
}

void VectorClock::lift(Entry& a, const Entry& b) {
  if (covers(a, b)) return;
  if (covers(b, a)) {
    a = b;
    return;
  }
  auto all = std::make_shared<Lanes>();
  for (size_t i = 0; i < 32; ++i)
    (*all)[i] = std::max(a.lanes ? (*a.lanes)[i] : a.time, b.lanes ? (*b.lanes)[i] : b.time);
  a.time = *std::min_element(all->begin(), all->end());
  a.lanes = std::move(all);
}

VectorClock::Coverage VectorClock::compare(const Entries& a, const Entries& b) {
  Coverage out;
  auto x = a.begin();
  auto y = b.begin();
  while ((out.covers || out.covered) && x != a.end() && y != b.end()) {
    if (x->key == y->key) {
      out.covers = out.covers && covers(*x, *y);
      out.covered = out.covered && covers(*y, *x);
      ++x, ++y;
    } else if (x->key < y->key) {
      out.covered = false;
      ++x;
    } else {
      out.covers = false;
      ++y;
    }
  }
  out.covered = out.covered && x == a.end();
  out.covers = out.covers && y == b.end();
  return out;
}

void VectorClock::join(const VectorClock& other) {
  if (!other.data_ || data_ == other.data_) return;
  const Coverage which = data_ ? compare(*data_, *other.data_) : Coverage{false, true};
  if (which.covered) data_ = other.data_;
  if (which.covered || which.covers) return;
  auto out = std::make_shared<Entries>();
  out->reserve(data_->size() + other.data_->size());
  auto a = data_->begin();
  auto b = other.data_->begin();
  while (a != data_->end() || b != other.data_->end()) {
    if (b == other.data_->end() || (a != data_->end() && a->key < b->key)) {
      out->push_back(*a++);
    } else if (a == data_->end() || b->key < a->key) {
      out->push_back(*b++);
    } else {
      out->push_back(*a++);
      lift(out->back(), *b++);
    }
  }
  data_ = std::move(out);
}

VectorClock VectorClock::completions() const {
  VectorClock out;
  if (!data_) return out;
  const auto first = std::lower_bound(data_->begin(), data_->end(), component(Part(1), 0),
                                      [](const Entry& e, Component key) { return e.key < key; });
  if (first != data_->end()) out.data_ = std::make_shared<Entries>(first, data_->end());
  return out;
}

}  // namespace sim
