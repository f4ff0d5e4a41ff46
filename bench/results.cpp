// results.cpp -- see results.h.
#include "results.h"

#include <algorithm>
#include <exception>
#include <stdexcept>

#include "inputs.h"
#include "nvml.h"
#include "progress.h"

namespace bench {

std::optional<double> Result::us() const {
  if (stream) return stream->median_us;
  if (modelled) return modelled->us();
  return {};
}

std::vector<Result> run_all(const std::vector<Shape>& shapes, const std::function<void(Result*)>& fill,
                            const std::function<void(const Result&)>& show) {
  std::vector<Result> results;
  for (const Shape& shape : shapes) {
    Result result{shape};
    try {
      fill(&result);
    } catch (const std::exception& error) {
      result.error = error.what();
      cudaGetLastError();  // the next shape starts without it
    }
    clear_progress();
    show(result);
    results.push_back(std::move(result));
  }
  return results;
}

void describe(Result* result, const Epilogue& epilogue, const dualgemm_device_t& device) {
  check_compact(result->shape);
  result->budget = budget_of(result->shape, epilogue, device);
  result->modelled = modelled(*result->budget->instance, result->shape, epilogue, device);
}

void measure(Result* result, const Epilogue& epilogue, const dualgemm_device_t& device,
             const Effort& effort) {
  check_compact(result->shape);
  const std::string name = shape_text(result->shape);
  if (effort.library) describe(result, epilogue, device);
  result->input_sets = input_sets_of(
      result->shape, effort.verify_only ? std::min(2, effort.input_sets) : effort.input_sets, epilogue);
  show_progress(name + ": preparing " + std::to_string(result->input_sets) + " input sets");
  Workload workload(result->shape, epilogue, result->input_sets, 1);
  if (effort.library) {
    show_progress(name + ": verifying");
    if (const std::string wrong = workload.verify(effort.samples); !wrong.empty())
      throw std::runtime_error("wrong: " + wrong);
    result->verified = true;
    if (effort.verify_only) return;
    show_progress(name + ": timing");
    result->stream = workload.time_stream(effort.repeats);
    result->sm_mhz = gpu_state(device.ordinal).sm_mhz;
    result->graph = workload.time_graph(effort.repeats);
  }
  if (!effort.baseline) return;
  const lt::Library* const library = lt::library();
  const std::vector<BaselineWay> ways =
      baseline_ways(library, result->shape, epilogue, device, &result->no_baseline);
  if (!ways.empty())
    result->baselines = time_baselines(*library, &workload, ways, effort.samples, effort.repeats);
  if (effort.library) return;
  result->sm_mhz = gpu_state(device.ordinal).sm_mhz;
  if (ways.empty()) throw std::runtime_error(result->no_baseline);
  if (fastest(result->baselines) == nullptr) throw std::runtime_error(result->baselines.front().error);
}

}  // namespace bench
