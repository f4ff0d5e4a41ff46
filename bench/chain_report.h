// chain_report.h -- what --chain finds out about each layer, and its table and its rows of a report.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "chain.h"
#include "machine.h"
#include "table.h"
#include "tables.h"

namespace bench {

struct ChainEffort {
  int repeats, input_sets, samples;
  bool timed;  // else it is verified alone
};

// Times are those of a whole layer, in a CUDA graph that has all input sets.
struct ChainResult {
  Layer layer;
  std::string error = {};                            // why what follows is not all there
  std::string up_instance = {}, down_instance = {};  // what computes the launches
  int input_sets = 0;
  bool verified = false;
  std::optional<Timing> ordinary = {}, pdl = {}, baseline = {};
  std::string no_baseline = {};         // why there is none
  std::optional<unsigned> sm_mhz = {};  // just after the timing
  std::optional<double> power_limited =
      {};  // the share of the timing that the power limit held the clocks down
};

// Fills in the instances; throws std::runtime_error for what the library or the benchmark refuses.
void describe(ChainResult* result, const dualgemm_device_t& device);

// Verifies and times on the current device, which is `device`.
void measure(ChainResult* result, const dualgemm_device_t& device, const ChainEffort& effort);

class ChainReport {
 public:
  ChainReport(Times times, const Machine& machine, size_t layers);

  std::string heading() const;
  std::string row(const ChainResult& result) const;
  // Explains the columns, and says why there are no baselines.
  std::string legend(const std::vector<ChainResult>& results) const;

 private:
  Times times_;
  Machine machine_;
  size_t layers_;
  Table table_;
};

nlohmann::json to_json(const ChainResult& result);

}  // namespace bench
