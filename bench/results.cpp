// results.cpp -- see results.h.
#include "results.h"

#include <algorithm>
#include <stdexcept>

#include "budget.h"
#include "inputs.h"
#include "nvml.h"
#include "progress.h"

namespace bench {

std::optional<double> Result::us() const {
  if (stream) return stream->median_us;
  if (modelled) return modelled->us();
  return {};
}

void describe(Result* result, const Epilogue& epilogue, const dualgemm_device_t& device) {
  check_compact(result->shape);
  result->budget = budget_of(result->shape, epilogue, device);
  result->modelled = modelled(*result->budget->instance, result->shape, epilogue, device);
}

namespace {

Launch launch_instance(int32_t id) {
  return [id](const dualgemm_args_t& args, cudaStream_t stream) {
    dualgemm_args_t with_id = args;
    with_id.instance_id = id;
    launch_library(with_id, stream);
  };
}

// Each launch may start when the one before it has issued its loads. All of them only read weights.
void launch_dependent(const dualgemm_args_t& args, cudaStream_t stream) {
  dualgemm_args_t with_flags = args;
  with_flags.flags |= DUALGEMM_FLAG_PDL | DUALGEMM_FLAG_STATIC_WEIGHTS;
  launch_library(with_flags, stream);
}

std::optional<double> modelled_us(int32_t id, const Shape& shape, const Epilogue& epilogue,
                                  const dualgemm_device_t& device) {
  try {
    return modelled(dualgemm::instance(id - 1), shape, epilogue, device).us();
  } catch (const std::runtime_error&) {
    return {};
  }
}

// Returns every instance that takes the shape, not timed yet.
std::vector<InstanceTime> instances_for(const Shape& shape, const Epilogue& epilogue,
                                        const dualgemm_device_t& device) {
  dualgemm_args_t args = described_args(shape, epilogue);
  std::vector<InstanceTime> out;
  for (int32_t id = 1; id <= dualgemm_instance_count(); ++id) {
    args.instance_id = id;
    if (dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_SUCCESS)
      out.push_back({id, modelled_us(id, shape, epilogue, device)});
  }
  return out;
}

// Verifies every instance that takes the shape and is worth its time, and returns them.
std::vector<InstanceTime> every_instance(Workload* workload, const Epilogue& epilogue,
                                         const dualgemm_device_t& device, int samples) {
  const Shape& shape = workload->shape();
  std::vector<InstanceTime> out = instances_for(shape, epilogue, device);
  // Every tile of a problem's rows brings in all weights again. With more than 16 of them an instance takes
  // so long that its time is not worth the wait.
  const int32_t usual_rows = sizes_of(shape, epilogue).expected_rows;
  const int32_t rows = usual_rows > 0 ? usual_rows : shape.m;
  std::erase_if(
      out, [&](const InstanceTime& time) { return rows > 16 * dualgemm::instance(time.id - 1).plan.tile.m; });
  for (InstanceTime& time : out) {
    show_progress(shape_text(shape) + ": verifying " + time.name());
    time.error = workload->verify(samples, launch_instance(time.id));
  }
  return out;
}

// Times the library, if it is to be, and all else that runs, each in its turn.
void time_in_turns(Result* result, Workload* workload, const std::vector<Baseline>& baselines,
                   const std::vector<Contender>& contenders, const Effort& effort) {
  std::vector<Launch> ways;
  if (effort.library) ways.insert(ways.end(), {launch_library, launch_dependent});
  for (const Baseline& baseline : baselines)
    if (baseline.launch) ways.push_back(baseline.launch);
  for (const Contender& contender : contenders)
    if (contender.launch) ways.push_back(contender.launch);
  for (const InstanceTime& time : result->instances)
    if (time.error.empty()) ways.push_back(launch_instance(time.id));
  const std::vector<Timing> stream = workload->time_stream(ways, effort.repeats),
                            graph = workload->time_graph(ways, effort.repeats);
  size_t next = 0;
  const auto take = [&](auto* time) {
    time->stream = stream[next];
    time->graph = graph[next++];
  };
  if (effort.library) {
    take(result);
    result->pdl_stream = stream[next];
    result->pdl_graph = graph[next++];
  }
  for (const Baseline& baseline : baselines) {
    BaselineTime& time = result->baselines.emplace_back(BaselineTime{baseline.way});
    time.error = baseline.error;
    if (baseline.launch) take(&time);
  }
  for (const Contender& contender : contenders) {
    ContenderTime& time = result->contenders.emplace_back(ContenderTime{contender.name, contender.exact});
    time.error = contender.error;
    if (contender.launch) take(&time);
  }
  for (InstanceTime& time : result->instances)
    if (time.error.empty()) take(&time);
}

}  // namespace

void describe_instances(Result* result, const Epilogue& epilogue, const dualgemm_device_t& device) {
  result->instances = instances_for(result->shape, epilogue, device);
  std::erase_if(result->instances, [](const InstanceTime& time) { return !time.modelled_us; });
  std::stable_sort(
      result->instances.begin(), result->instances.end(),
      [](const InstanceTime& x, const InstanceTime& y) { return *x.modelled_us < *y.modelled_us; });
}

void measure(Result* result, const Epilogue& epilogue, const dualgemm_device_t& device,
             const Effort& effort) {
  check_compact(result->shape);
  const std::string name = shape_text(result->shape);
  if (effort.library) describe(result, epilogue, device);
  // Where the library takes no A of 16 bits the baseline alone is not timed with one either.
  else if (!result->shape.packed_a()) budget_of(result->shape, epilogue, device);
  result->input_sets = input_sets_of(
      result->shape, effort.verify_only ? std::min(2, effort.input_sets) : effort.input_sets, epilogue);
  show_progress(name + ": preparing " + std::to_string(result->input_sets) + " input sets");
  Workload workload(result->shape, epilogue, result->input_sets, 1);
  if (effort.library) {
    show_progress(name + ": verifying");
    if (const std::string wrong = workload.verify(effort.samples); !wrong.empty())
      throw std::runtime_error("wrong: " + wrong);
    if (const std::string wrong = workload.verify(effort.samples, launch_dependent); !wrong.empty())
      throw std::runtime_error("wrong with PDL: " + wrong);
    result->verified = true;
    if (effort.verify_only) return;
  }
  SharedOperands operands(workload);
  std::vector<Baseline> baselines;
  if (effort.baseline) {
    const lt::Library* const library = lt::library();
    const std::vector<BaselineWay> ways =
        baseline_ways(library, result->shape, epilogue, device, &result->no_baseline);
    if (ways.empty() && !effort.library) throw std::runtime_error(result->no_baseline);
    if (!ways.empty()) baselines = prepare_baselines(*library, &workload, &operands, ways, effort.samples);
  }
  const std::vector<Contender> contenders =
      prepare_contenders(effort.contenders, &workload, &operands, effort.samples);
  if (effort.every_instance) result->instances = every_instance(&workload, epilogue, device, effort.samples);
  show_progress(name + ": timing");
  const std::optional<PowerReading> before = power_reading(device.ordinal);
  time_in_turns(result, &workload, baselines, contenders, effort);
  result->sm_mhz = gpu_state(device.ordinal).sm_mhz;
  result->power_limited = power_limited_share(before, power_reading(device.ordinal));
  if (!effort.library && fastest(result->baselines) == nullptr)
    throw std::runtime_error(result->baselines.front().error);
}

}  // namespace bench
