// tables.h -- the benchmark's own tables: times that were measured, times that are modelled, the baseline
// alone. The heading says which, and of what device.
#pragma once

#include <string>
#include <vector>

#include "machine.h"
#include "results.h"
#include "table.h"

namespace bench {

enum class Times { kModelled, kMeasured, kBaseline, kVerified };

// Returns "modelled", "measured", ...
const char* times_name(Times times);

class Report {
 public:
  Report(Times times, const Machine& machine, const std::vector<Shape>& shapes);

  std::string heading() const;
  std::string row(const Result& result) const;
  // Explains the columns, and says once why there are no baselines.
  std::string legend(const std::vector<Result>& results) const;

 private:
  std::string modelled_row(const Result& result) const;
  std::string measured_row(const Result& result) const;
  std::string baseline_rows(const Result& result) const;
  std::string line(const Result& result, std::vector<std::string> cells) const;
  // Returns the cells that say what computes it.
  std::vector<std::string> computed_by(const Result& result) const;

  Times times_;
  Machine machine_;
  bool labels_ = false;  // there is room for them
  dualgemm_dtype_t a_dtype_;
  int32_t products_;
  size_t problems_;
  Table table_;
};

// Returns who puts an A of 16 bits in the order that the weights have: "kernel", or a "pass" before it.
const char* a_order_text(const Budget& budget);

// Returns the name of an instance up to its type and epilogue, which the heading of a run has.
std::string short_name(const char* instance);

}  // namespace bench
