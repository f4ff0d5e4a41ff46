// tuner.h -- the instances that may run a shape, timed on the current device: cold, since each launch of a
// graph has operands that were not used for longer than L2 remembers, and interleaved, a round of all after
// the other.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/shapes.h"
#include "dualgemm.h"
#include "operands.h"

namespace bench {

struct TuneEffort {
  int most_rounds = 0;  // 0: as the ranking says (ranking.h)
  int launches = 0;     // of a graph; 0: as many as it takes
};

// An instance and what a launch of it took.
struct Timed {
  int32_t id;
  double us = 0;
  std::string wrong = {};  // why its time does not count
};

struct TunedShape {
  int32_t usual = 0, winner = 0;  // ids: what the library chooses now, what is fastest
  double usual_us = 0, winner_us = 0;
  bool general = false;  // the launch takes general instances
  int rounds = 0;
  std::vector<Timed> instances;  // all that were timed
};

class Tuner {
 public:
  // `go_on` is called before each round, with what is being done; it may throw.
  Tuner(const Epilogue& epilogue, dualgemm_dtype_t a_dtype, TuneEffort effort,
        std::function<void(const std::string&)> go_on);
  ~Tuner();

  // Times the instances until the ranking is firm. Throws std::runtime_error for what the library refuses.
  TunedShape tune(const Shape& shape) const;
  // Times those that are near the fastest and these, all in so many rounds, for a fair comparison.
  std::vector<Timed> compare(const Shape& shape, const std::vector<int32_t>& always, int rounds) const;

  // Returns the id that the library chooses, with a workspace if it wants one.
  int32_t chosen(const Shape& shape) const;
  // Returns whether launches of a shape take general instances.
  bool general(const Shape& shape) const;

 private:
  class Run;
  Epilogue epilogue_;
  dualgemm_dtype_t a_dtype_;
  TuneEffort effort_;
  std::function<void(const std::string&)> go_on_;
  dualgemm_device_t device_;
  size_t l2_bytes_ = 0;
  RandomNumbers numbers_;
};

// What the library says of an instance.
dualgemm_instance_info_t info_of_instance(int32_t id);

}  // namespace bench
