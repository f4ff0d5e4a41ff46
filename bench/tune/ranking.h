// ranking.h -- when instances have been timed often enough. They are timed in rounds, each once in its turn,
// so that what clocks and temperature do meanwhile happens to all of them.
//
//   - One whose least time is a quarter more than that of the fastest is not timed any more.
//   - From the eighth round on the leader is the one of the least median. One that was slower than the leader
//     in all rounds but one in eight, and whose median is 0.3 % more, has lost.
//   - The ranking is firm when only the leader is left; or after twelve rounds, when the medians of all that
//     are left are within 0.3 %: then it does not matter. After 40 rounds it ends in any case.
//
// The winner is the leader, unless the instance that the model chooses is within 0.3 %: then it stays.
#pragma once

#include <cstddef>
#include <vector>

namespace bench {

class Ranking {
 public:
  // `usual` is the one that stays where it does not matter. `most_rounds` is for tests and hurried people.
  Ranking(size_t instances, size_t usual, int most_rounds = 40);

  // Those that are timed in the next round.
  const std::vector<size_t>& left() const { return left_; }
  // Adds the times of a round, in the order of left().
  void add_round(const std::vector<double>& us);
  bool firm() const;
  int rounds() const { return rounds_; }
  size_t winner() const;
  double median_us(size_t instance) const;

 private:
  size_t leader() const;
  bool has_lost(size_t instance, size_t leader) const;
  bool same(size_t instance, size_t leader) const;

  std::vector<std::vector<double>> us_;  // of each, by rounds
  std::vector<size_t> left_;
  size_t usual_;
  int most_rounds_, rounds_ = 0;
};

}  // namespace bench
