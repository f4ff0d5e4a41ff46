// ranking.cpp -- see ranking.h.
#include "ranking.h"

#include <algorithm>
#include <numeric>

#include "bench/timing.h"

namespace bench {
namespace {

constexpr double kFarBehind = 1.25, kSame = 1.003;
constexpr int kRoundsForLeader = 8, kRoundsForSame = 12, kOneIn = 8;

}  // namespace

Ranking::Ranking(size_t instances, size_t usual, int most_rounds)
    : us_(instances), left_(instances), usual_(usual), most_rounds_(most_rounds) {
  std::iota(left_.begin(), left_.end(), size_t{0});
}

double Ranking::median_us(size_t instance) const { return summarise(us_[instance]).median_us; }

size_t Ranking::leader() const {
  return *std::min_element(left_.begin(), left_.end(),
                           [this](size_t x, size_t y) { return median_us(x) < median_us(y); });
}

bool Ranking::same(size_t instance, size_t leader) const {
  return median_us(instance) <= median_us(leader) * kSame;
}

// Both are left, so both have a time of every round.
bool Ranking::has_lost(size_t instance, size_t leader) const {
  int not_slower = 0;
  for (int round = 0; round < rounds_; ++round) not_slower += us_[instance][round] <= us_[leader][round];
  return not_slower <= rounds_ / kOneIn && !same(instance, leader);
}

void Ranking::add_round(const std::vector<double>& us) {
  for (size_t i = 0; i < left_.size(); ++i) us_[left_[i]].push_back(us[i]);
  ++rounds_;
  const auto least = [this](size_t x) { return *std::min_element(us_[x].begin(), us_[x].end()); };
  double fastest = least(left_.front());
  for (const size_t x : left_) fastest = std::min(fastest, least(x));
  std::erase_if(left_, [&](size_t x) { return least(x) > kFarBehind * fastest; });
  if (rounds_ < kRoundsForLeader) return;
  const size_t first = leader();
  std::erase_if(left_, [&](size_t x) { return x != first && has_lost(x, first); });
}

bool Ranking::firm() const {
  if (rounds_ >= most_rounds_) return true;
  if (rounds_ < kRoundsForLeader) return false;
  if (left_.size() == 1) return true;
  const size_t first = leader();
  return rounds_ >= kRoundsForSame &&
         std::all_of(left_.begin(), left_.end(), [&](size_t x) { return same(x, first); });
}

size_t Ranking::winner() const {
  const size_t first = leader();
  const bool there = std::find(left_.begin(), left_.end(), usual_) != left_.end();
  return there && same(usual_, first) ? usual_ : first;
}

}  // namespace bench
