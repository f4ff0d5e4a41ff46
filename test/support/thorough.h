// thorough.h -- how much of its lists a test goes through. `make test` has minutes of a core for all
// kernels in the simulator, so a test of many instances, shapes or schedules takes some of them, so that
// each choice is met with each of those beside it that it could depend on. `make cube` and `make
// test-h100` take all, and so does a GPU, which is fast.
#pragma once

#include <vector>

#include "support/device_problem.h"

namespace dualgemm_test {

// Says whether the current device is simulated.
bool simulated();

// Says whether tests take all of their lists: on a GPU, and where the environment has DUALGEMM_TEST_ALL.
bool thorough();

template <class T>
std::vector<T> all_or(const std::vector<T>& all, const std::vector<T>& some) {
  return thorough() ? all : some;
}

// Returns all instances, or one of each tile with the types of C in turn: the others differ in the conversion
// of an element alone.
std::vector<NamedInstance> all_or_in_turn(const std::vector<NamedInstance>& all);

// Returns all, or of each `step` the one at `turn`: a caller that counts turns comes by all of them.
template <class T>
std::vector<T> all_or_every(size_t step, size_t turn, const std::vector<T>& all) {
  if (thorough()) return all;
  std::vector<T> out;
  for (size_t i = turn % step; i < all.size(); i += step) out.push_back(all[i]);
  return out;
}

}  // namespace dualgemm_test
