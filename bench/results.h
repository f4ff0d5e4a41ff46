// results.h -- what the benchmark finds out about each problem. One problem that goes wrong says so in its
// row, and the others follow.
#pragma once

#include <cuda_runtime_api.h>

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "baseline.h"
#include "budget.h"
#include "contenders.h"
#include "measure.h"
#include "modelled.h"
#include "progress.h"
#include "shapes.h"

namespace bench {

// What one instance takes for a shape, chosen or not.
struct InstanceTime {
  int32_t id;
  std::optional<double> modelled_us;  // the model has no split-K in several waves
  std::optional<Timing> stream{}, graph{};
  std::string error = {};  // what was wrong with its result

  const char* name() const { return dualgemm::instance(id - 1).name; }
};

struct Result {
  Shape shape;
  std::string error = {};  // why what follows is not all there
  std::optional<Budget> budget = {};
  std::optional<Modelled> modelled = {};
  int input_sets = 0;
  bool verified = false;
  std::optional<Timing> stream = {}, graph = {};
  std::optional<Timing> pdl_stream = {}, pdl_graph = {};  // launched with PDL and STATIC_WEIGHTS
  std::optional<unsigned> sm_mhz = {};                    // just after these
  std::optional<double> power_limited =
      {};  // the share of the time that the power limit held the clocks down
  std::vector<BaselineTime> baselines = {};
  std::string no_baseline = {};  // why there are none
  std::vector<ContenderTime> contenders = {};
  std::vector<InstanceTime> instances = {};

  // Returns the time from launch to launch: measured, else modelled, else none.
  std::optional<double> us() const;
};

// Fills in a row for each shape, or each layer of a chain; what `fill` throws becomes the row's error. `show`
// gets every row when it is done.
template <class Row, class What>
std::vector<Row> run_all(const std::vector<What>& all, const std::function<void(Row*)>& fill,
                         const std::function<void(const Row&)>& show) {
  std::vector<Row> rows;
  for (const What& what : all) {
    Row row{what};
    try {
      fill(&row);
    } catch (const std::exception& error) {
      row.error = error.what();
      cudaGetLastError();  // the next one starts without it
    }
    clear_progress();
    show(row);
    rows.push_back(std::move(row));
  }
  return rows;
}

// What a run on a GPU does with each problem.
struct Effort {
  int repeats, input_sets, samples;
  bool verify_only;
  bool library;                                     // the library itself is verified and timed
  bool baseline;                                    // so is what it is compared with
  std::vector<ContenderFunctions> contenders = {};  // and these
  bool every_instance = false;  // of those that take the shape, each is verified and timed
};

// Fills in what is known without running anything; throws std::runtime_error for what the library or the
// benchmark refuses.
void describe(Result* result, const Epilogue& epilogue, const dualgemm_device_t& device);

// Adds the instances that take the shape, each with the time that the cost model expects, the fastest first.
// Those of which it expects none are no candidates.
void describe_instances(Result* result, const Epilogue& epilogue, const dualgemm_device_t& device);

// Verifies and times on the current device, which is `device`. A row keeps what is known when something
// throws.
void measure(Result* result, const Epilogue& epilogue, const dualgemm_device_t& device, const Effort& effort);

}  // namespace bench
