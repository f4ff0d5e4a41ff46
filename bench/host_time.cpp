// host_time.cpp -- what one call that launches costs the CPU: checks, the choice of an instance, the
// tensor maps and the parameters of the launch. It runs on a CUDA runtime that does nothing
// (test/support/stub/cuda.h), and what the calls into that cost is taken away, so that the numbers are the
// library's own.
//
//   host_time           prints a table of medians for each GPU
//   host_time --check   times nothing and fails when a call asks for heap memory

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fmt/core.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/heap_calls.h"
#include "host/common/tuning_file.h"
#include "host/include/dualgemm.h"
#include "support/stub/cuda.h"
#include "support/stub/problem.h"

namespace {

constexpr int kCallsPerSample = 32, kSamples = 4000;

dualgemm_args_t batch(int32_t problems, dualgemm_args_t args) {
  args.batch = problems;
  return args;
}

dualgemm_args_t grouped(dualgemm_group_mode_t mode, int32_t groups, dualgemm_args_t args) {
  args.group_mode = mode;
  args.groups = groups;
  args.group_rows = static_cast<const int32_t*>(address(512));
  return args;
}

dualgemm_args_t with_instance(dualgemm_args_t args) {
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  dualgemm_current_device(&device);
  dualgemm_select_instance(&args, &device, &args.instance_id);
  return args;
}

dualgemm_args_t with_flags(uint32_t flags, dualgemm_args_t args) {
  args.flags = flags;
  return args;
}

// Returns the same problem with everything that the general epilogue can take, and an NVFP4 output.
dualgemm_args_t general(dualgemm_args_t args) {
  args.c_dtype = DUALGEMM_DTYPE_NVFP4;
  args.sfc = address(576);
  args.bias1 = address(640), args.bias2 = address(641);
  args.a_row_scale = static_cast<const float*>(address(642));
  args.c_row_scale = static_cast<const float*>(address(643));
  args.c_global_scale_dev = args.alpha1_dev = args.alpha2_dev = static_cast<const float*>(address(644));
  args.d1 = address(704), args.d2 = address(768);
  args.amax_out = static_cast<float*>(address(832));
  return args;
}

dualgemm_status_t launch(const dualgemm_args_t& args) { return dualgemm_launch_ex(&args, nullptr); }

dualgemm_status_t ask_and_launch(const dualgemm_args_t& args) {
  size_t bytes = 0;
  if (const dualgemm_status_t status = dualgemm_workspace_size(&args, &bytes)) return status;
  return launch(args);
}

dualgemm_status_t try_launch(const dualgemm_args_t& args) {
  size_t bytes = 0;
  return dualgemm_try_launch(&args, &bytes, nullptr);
}

struct Case {
  const char* name;
  dualgemm_args_t args;
  bool changes = false;  // M is another with every call: a thread remembers the choices of its last problems
  dualgemm_status_t (*function)(const dualgemm_args_t&) = launch;

  dualgemm_status_t call() const { return function(args); }
};

std::vector<Case> cases() {
  const dualgemm_args_t few = problem(8, 14336, 4096), dense = problem(128, 14336, 4096);
  const dualgemm_args_t many = problem(2048, 2048, 7168);
  const dualgemm_args_t of_batch = batch(8, problem(512, 2048, 7168));
  const dualgemm_args_t offsets = grouped(DUALGEMM_GROUP_OFFSETS, 256, many);
  const dualgemm_args_t masked = grouped(DUALGEMM_GROUP_MASKED, 8, problem(512, 4096, 7168));
  return {{"dense", dense},
          {"dense, another M each time", dense, true},
          {"8 rows, asked for its workspace before", few, false, ask_and_launch},
          {"8 rows, dualgemm_try_launch", few, false, try_launch},
          {"dense, CHECK_POINTERS", with_flags(DUALGEMM_FLAG_CHECK_POINTERS, dense)},
          {"dense, general epilogue", general(dense)},
          {"batch", of_batch},
          {"batch, general epilogue", general(of_batch)},
          {"OFFSETS", offsets},
          {"OFFSETS, general epilogue", general(offsets)},
          {"MASKED", masked},
          {"MASKED, general epilogue", general(masked)},
          {"dense, instance_id", with_instance(dense)},
          {"dense, general epilogue, instance_id", with_instance(general(dense))},
          {"MASKED, instance_id", with_instance(masked)}};
}

// Makes so many calls into the runtime: those that every launch makes, and for the rest those that encode a
// tensor map.
class RuntimeCalls {
 public:
  explicit RuntimeCalls(uint64_t calls) : encoded_(calls - kOthers) {
    void* symbol = nullptr;
    cudaDriverEntryPointQueryResult result;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &symbol, 12000, cudaEnableDefault, &result);
    encode_ = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(symbol);
  }
  void operator()() {
    int device;
    cudaPeekAtLastError();
    cudaGetDevice(&device);
    for (uint64_t i = 0; i < encoded_; ++i)
      encode_(&map_, CU_TENSOR_MAP_DATA_TYPE_UINT8, 3, nullptr, nullptr, nullptr, nullptr, nullptr,
              CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
              CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    const cudaLaunchConfig_t config{};
    cudaLaunchKernelExC(&config, nullptr, nullptr);
    cudaGetLastError();
  }

 private:
  static constexpr uint64_t kOthers = 4;
  uint64_t encoded_;
  decltype(&cuTensorMapEncodeTiled) encode_;
  CUtensorMap map_;
};

struct Times {
  double median, low, high;  // nanoseconds of a call; the 10th and the 90th percentile
};

template <class Call>
Times measure(Call call) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> samples;
  for (int i = 0; i < kSamples; ++i) {
    const auto start = Clock::now();
    for (int j = 0; j < kCallsPerSample; ++j) call();
    const std::chrono::duration<double, std::nano> taken = Clock::now() - start;
    samples.push_back(taken.count() / kCallsPerSample);
  }
  std::sort(samples.begin(), samples.end());
  return {samples[kSamples / 2], samples[kSamples / 10], samples[kSamples - kSamples / 10]};
}

// The first call on a device asks about it and loads the kernel; the second is as all others.
bool works(const Case& c) {
  c.call();
  if (c.call() == DUALGEMM_STATUS_SUCCESS) return true;
  fmt::print(stderr, "{}: {}\n", c.name, dualgemm_last_error());
  return false;
}

uint64_t heap_calls_of(const Case& c) {
  const uint64_t before = bench::heap_calls();
  c.call();
  return bench::heap_calls() - before;
}

bool stay_off_the_heap(const std::vector<Case>& all) {
  // A counter that counts nothing would show 0 as well.
  const uint64_t before = bench::heap_calls();
  const std::vector<int> something(100);
  bool good = bench::heap_calls() > before && something.size() == 100;
  for (const Case& c : all) {
    const uint64_t calls = heap_calls_of(c);
    if (calls != 0) fmt::print(stderr, "{}: {} heap calls\n", c.name, calls);
    good = good && calls == 0;
  }
  return good;
}

// On another core each time a thread would find cold caches. Where it may not be pinned, it is not.
void stay_on_this_core() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(static_cast<size_t>(sched_getcpu()), &cores);
  sched_setaffinity(0, sizeof cores, &cores);
}

uint64_t runtime_calls_of(const Case& c) {
  const uint64_t before = dualgemm_test::stub_calls();
  c.call();
  return dualgemm_test::stub_calls() - before;
}

void print_table(const char* gpu, const std::vector<Case>& all) {
  fmt::print("{}, {} instances; what is spent in the stub of the runtime is taken away\n\n", gpu,
             dualgemm_instance_count());
  fmt::print("| call | median ns | 10 % to 90 % | heap calls |\n| --- | --- | --- | --- |\n");
  for (const Case& c : all) {
    const double runtime = measure(RuntimeCalls(runtime_calls_of(c))).median;
    Case timed = c;
    const Times t = measure([&] {
      if (c.changes) timed.args.m = timed.args.m % 4096 + 1;
      timed.call();
    });
    fmt::print("| {} | {:.0f} | {:.0f} to {:.0f} | {} |\n", c.name, t.median - runtime, t.low - runtime,
               t.high - runtime, heap_calls_of(c));
  }
  fmt::print("\n");
}

// A tuning file with an entry of the dense case, for the device that is current.
std::string tuning_file() {
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  dualgemm_current_device(&device);
  dualgemm_tuning_info_t info;
  dualgemm_tuning_info_init(&info);
  dualgemm_tuning_info(&info);
  dualgemm_instance_info_t instance;
  dualgemm_instance_info_init(&instance);
  dualgemm_instance_info(with_instance(problem(128, 14336, 4096)).instance_id, &instance);
  const std::string text = std::string(dualgemm::tuning_heading({device.name, info.library, device.sm_count,
                                                                 device.driver_version})
                                           .get()) +
                           dualgemm::tuning_entry({2, DUALGEMM_DTYPE_NVFP4, DUALGEMM_DTYPE_BF16, false, false,
                                                   1, 14336, 4096, 128, instance.name})
                               .get();
  dualgemm::TuningSum sum;
  sum.add(text);
  return text + dualgemm::tuning_end(1, sum).get();
}

// Returns whether the file is in force.
bool load_tuning() {
  const std::string path =
      std::filesystem::temp_directory_path() / fmt::format("host_time.{}.tuning", getpid());
  if (std::FILE* file = std::fopen(path.c_str(), "w")) {
    std::fputs(tuning_file().c_str(), file);
    std::fclose(file);
  }
  const bool loaded = dualgemm_load_tuning(path.c_str()) == DUALGEMM_STATUS_SUCCESS;
  std::remove(path.c_str());
  if (!loaded) fmt::print(stderr, "{}\n", dualgemm_last_error());
  return loaded;
}

// `tuned`: under a tuning file, by which the dense case goes.
bool measure_or_check(const char* gpu, bool check, bool tuned) {
  if (tuned && !load_tuning()) return false;
  const std::vector<Case> all = cases();
  for (const Case& c : all)
    if (!works(c)) return false;
  if (!check) {
    print_table(gpu, all);
    return true;
  }
  if (!stay_off_the_heap(all)) return false;
  fmt::print("{}: {} kinds of calls, no heap call\n", gpu, all.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const bool check = argc > 1 && std::strcmp(argv[1], "--check") == 0;
  if (!check) stay_on_this_core();
  const auto both = [&](const char* gpu, const char* gpu_tuned) {
    return measure_or_check(gpu, check, false) && measure_or_check(gpu_tuned, check, true);
  };
  if (!both("B200", "B200 with a tuning file")) return 1;
  dualgemm_load_tuning(nullptr);
  dualgemm_test::stub_h100();
  cudaSetDevice(1);  // what is known of device 0 stays known
  return both("H100", "H100 with a tuning file") ? 0 : 1;
}
