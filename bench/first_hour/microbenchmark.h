// microbenchmark.h -- what a group of microbenchmarks is told, and what it hands back: numbers, each with its
// unit and the constant of the cost model that it stands for.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernel/architecture.h"

namespace bench {

// The GPU, and how much is done on it. A simulated one runs every kernel in its smallest form, and what its
// clocks say is thrown away.
struct Subject {
  dualgemm::Arch arch;
  int32_t sms;
  size_t l2_bytes;
  bool simulated;
  int repeats;
  double mhz = 1;  // cycles per us, once it is known

  int32_t ctas() const { return simulated ? 2 : sms; }  // that fill the GPU
  int32_t rounds(int32_t on_a_gpu) const { return simulated ? 2 : on_a_gpu; }
};

struct Measurement {
  std::string name, unit;
  std::vector<double> values;  // one for each repeat
  std::string constant;        // of the cost model; empty for what only explains the others
  double modelled = NAN;       // what the model says, where that is no constant of its table
};

class Findings {
 public:
  // Adds what `once` returns, after one call whose value does not count.
  template <class Once>
  void measure(const Subject& on, const std::string& name, const char* unit, const char* constant,
               const Once& once) {
    once();
    Measurement x{name, unit, {}, constant};
    for (int i = 0; i < on.repeats; ++i) x.values.push_back(once());
    all_.push_back(x);
  }
  // Says what the model expects of the last one.
  void modelled(double value) { all_.back().modelled = value; }
  // Adds what follows from others, number by number.
  void add(Measurement x) { all_.push_back(std::move(x)); }

  const std::vector<double>& values(const std::string& name) const {
    for (const Measurement& x : all_)
      if (x.name == name) return x.values;
    throw std::logic_error("no measurement is called " + name);
  }
  double median(const std::string& name) const;
  const std::vector<Measurement>& all() const { return all_; }

 private:
  std::vector<Measurement> all_;
};

// Throws where a kernel has not computed what it has to: its time would say nothing.
inline void require(bool right, const std::string& what) {
  if (!right) throw std::runtime_error(what + ": the result is wrong");
}

// The groups. Each is run by a process of its own, so that a kernel that fails or hangs costs one group.
void measure_clock(const Subject& on, Findings* out);
void measure_copies(const Subject& on, Findings* out);
void measure_threads(const Subject& on, Findings* out);
void measure_exchange(const Subject& on, Findings* out);
void measure_launches(const Subject& on, Findings* out);
void measure_wgmma(const Subject& on, Findings* out);
void measure_mma(const Subject& on, Findings* out);
void measure_tensor_memory(const Subject& on, Findings* out);

// Returns the cycles of the SM in a microsecond, while it does little else.
double cycles_per_us(const Subject& on);

// Returns what the cost model expects of one mma with so many columns, of one CTA or of a pair.
double modelled_mma_cycles(int32_t cta_group, int32_t n);

}  // namespace bench
