// measure.cpp -- see measure.h.
#include "measure.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <utility>

#include "budget.h"
#include "inputs.h"
#include "test/ref/dual_gemm.h"
#include "test/ref/formats.h"

namespace bench {
namespace {

constexpr size_t kFlushBytes = size_t{512} << 20;  // four times the L2 of a B200
constexpr int kFlushPasses = 16;  // 8 GiB written: over a millisecond, in which the launches queue up

constexpr int64_t kSamplesPerProblem = 8;  // at least: the corners, and as many anywhere

class Event {
 public:
  Event() { check_cuda(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(cudaStream_t stream) { check_cuda(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  double us_since(const Event& start) const {
    float ms;
    check_cuda(cudaEventElapsedTime(&ms, start.event_, event_), "cudaEventElapsedTime");
    return ms * 1e3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

Timing summarise(std::vector<double> us) {
  std::sort(us.begin(), us.end());
  const auto at = [&](double share) { return us[static_cast<size_t>(share * (us.size() - 1) + 0.5)]; };
  return {at(0.5), at(0.1), at(0.9)};
}

// This is the gate or up of one output, and how far the kernel's may be from it.
struct Factor {
  double value, error;
};

// The bound holds however the launch splits K. A factor that is rounded to the type of C on its way moves by
// that, too; what it overflows to is not accounted for, and does not occur with these data.
Factor factor_of(const Row& a, const Row& b, const Shape& s, double alpha, ref::Format type,
                 Rounding rounding) {
  const ref::Sum sum = ref::product(a.operand(), b.operand(), s.k).sums[0];
  const double lost = *std::max_element(std::begin(sum.lost), std::end(sum.lost));
  Factor out{alpha * sum.exact, std::fabs(alpha) * lost};
  if (rounding == Rounding::kIntermediates)
    out.error += ref::conversion_error(type, std::fabs(out.value) + out.error);
  return out;
}

// Names the first element of C that belongs to no problem and was written, or returns an empty string.
std::string outside(const Shape& s, const InputSet& x, const std::vector<uint16_t>& c) {
  for (int32_t problem = 0; problem < s.problems(); ++problem) {
    const auto begin = c.begin() + (x.place(problem).row + s.rows(problem)) * s.n;
    const auto end = c.begin() + x.place(problem + 1).row * s.n;
    const auto found = std::find_if(begin, end, [](uint16_t bits) { return bits != 0xFFFF; });
    if (found == end) continue;
    const int64_t element = found - (c.begin() + x.place(problem).row * s.n);
    return "problem " + std::to_string(problem) + ": C[" + std::to_string(element / s.n) + "][" +
           std::to_string(element % s.n) + "] belongs to no group and was written";
  }
  return {};
}

}  // namespace

struct Workload::Impl {
  Impl(const Shape& s, dualgemm_dtype_t t, int count, uint64_t seed) : shape(s), dtype(t), random(seed) {
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    for (int i = 0; i < count; ++i) {
      sets.push_back(std::make_unique<InputSet>(shape, dtype, random));
      if (i >= kVerifiedSets) sets.back()->forget_host_copy();
    }
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  ~Impl() { cudaStreamDestroy(stream); }

  void launch(const InputSet& x) const { launch_one(x.args(), stream); }
  void launch_all() const {
    for (const auto& set : sets) launch(*set);
  }
  void synchronize() const { check_cuda(cudaStreamSynchronize(stream), "the kernel"); }

  // The first two sets are verified. More would only cost host memory.
  static constexpr int kVerifiedSets = 2;

  Shape shape;
  dualgemm_dtype_t dtype;
  Rng random;
  cudaStream_t stream = nullptr;
  Launch launch_one = [](const dualgemm_args_t& args, cudaStream_t on) {
    check(dualgemm_launch_ex(&args, on), "dualgemm_launch_ex");
  };
  std::vector<std::unique_ptr<InputSet>> sets;
};

Workload::Workload(const Shape& shape, dualgemm_dtype_t dtype, int input_sets, uint64_t seed)
    : impl_(std::make_unique<Impl>(shape, dtype, input_sets, seed)) {}
Workload::~Workload() = default;

void Workload::use(Launch launch) { impl_->launch_one = std::move(launch); }

std::string Workload::verify(int samples, Rounding rounding) {
  const Shape& s = impl_->shape;
  const ref::Format type = impl_->dtype == DUALGEMM_DTYPE_FP16 ? ref::Format::kFp16 : ref::Format::kBf16;
  std::vector<int32_t> with_rows;
  for (int32_t problem = 0; problem < s.problems(); ++problem)
    if (s.rows(problem) > 0) with_rows.push_back(problem);
  const int64_t count = std::max<int64_t>(samples, kSamplesPerProblem * with_rows.size());
  for (int set = 0; set < std::min<int>(impl_->sets.size(), Impl::kVerifiedSets); ++set) {
    const InputSet& x = *impl_->sets[set];
    std::vector<uint16_t> c(x.rows() * s.n);
    check_cuda(cudaMemsetAsync(x.args().c, 0xFF, c.size() * 2, impl_->stream), "cudaMemsetAsync");
    impl_->launch(x);
    impl_->synchronize();
    check_cuda(cudaMemcpy(c.data(), x.args().c, c.size() * 2, cudaMemcpyDeviceToHost), "cudaMemcpy");
    if (const std::string text = outside(s, x, c); !text.empty())
      return "input set " + std::to_string(set) + ": " + text;

    for (int64_t sample = 0; sample < count; ++sample) {
      // Samples are taken in turns from every problem that has rows: its corners first, then anywhere.
      const int32_t problem = with_rows[sample % with_rows.size()];
      const auto turn = static_cast<int32_t>(sample / with_rows.size());
      const int32_t last_row = s.rows(problem) - 1, last_column = s.n - 1;
      const auto below = [this](int32_t end) { return static_cast<int32_t>(impl_->random.bits() % end); };
      const int32_t row = turn < 4 ? (turn / 2) * last_row : below(last_row + 1);
      const int32_t column = turn < 4 ? (turn % 2) * last_column : below(last_column + 1);
      const Place& place = x.place(problem);
      const Row a = x.row_of_a(problem, row);
      const Factor g = factor_of(a, x.row_of_b(0, problem, column), s, place.alpha1, type, rounding);
      const Factor u = factor_of(a, x.row_of_b(1, problem, column), s, place.alpha2, type, rounding);
      const ref::Activation activation = ref::activation(x.args().activation);
      const double expected = activation.f(g.value) * u.value;
      const double error = ref::error_bound(activation, g.value, u.value, g.error, u.error);
      const double got = ref::decode(type, c[(place.row + row) * s.n + column]);
      if (!ref::may_become(type, expected, error, got)) {
        char text[160];
        std::snprintf(text, sizeof text,
                      "input set %d, problem %d: C[%d][%d] = %.9g, expected %.9g, allowed error %.3g", set,
                      problem, row, column, got, expected,
                      error + ref::conversion_error(type, std::fabs(expected) + error));
        return text;
      }
    }
  }
  return {};
}

Timing Workload::time_stream(int repeats) {
  const DeviceArray<uint8_t> flush(kFlushBytes);
  Event start, stop;
  std::vector<double> us;
  impl_->launch_all();
  for (int repeat = 0; repeat < repeats; ++repeat) {
    impl_->synchronize();
    for (int pass = 0; pass < kFlushPasses; ++pass) {
      check_cuda(cudaMemsetAsync(flush.data(), pass, kFlushBytes, impl_->stream), "cudaMemsetAsync");
    }
    start.record(impl_->stream);
    impl_->launch_all();
    stop.record(impl_->stream);
    impl_->synchronize();
    us.push_back(stop.us_since(start) / static_cast<double>(impl_->sets.size()));
  }
  return summarise(us);
}

Timing Workload::time_graph(int repeats) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  check_cuda(cudaStreamBeginCapture(impl_->stream, cudaStreamCaptureModeThreadLocal),
             "cudaStreamBeginCapture");
  impl_->launch_all();
  check_cuda(cudaStreamEndCapture(impl_->stream, &graph), "cudaStreamEndCapture");
  check_cuda(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  const int warm_up = 3;
  Event start, stop;
  std::vector<double> us;
  for (int repeat = -warm_up; repeat < repeats; ++repeat) {
    start.record(impl_->stream);
    check_cuda(cudaGraphLaunch(executable, impl_->stream), "cudaGraphLaunch");
    stop.record(impl_->stream);
    impl_->synchronize();
    if (repeat >= 0) us.push_back(stop.us_since(start) / static_cast<double>(impl_->sets.size()));
  }
  check_cuda(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
  check_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
  return summarise(us);
}

Machine describe_machine(const dualgemm_device_t& device) {
  const auto attribute = [&](cudaDeviceAttr which) {
    int value = 0;
    check_cuda(cudaDeviceGetAttribute(&value, which, device.ordinal), "cudaDeviceGetAttribute");
    return value;
  };
  Machine m;
  m.name = device.name;
  m.sms = device.sm_count;
  m.driver = device.driver_version;
  check_cuda(cudaRuntimeGetVersion(&m.runtime), "cudaRuntimeGetVersion");
  m.clock_ghz = attribute(cudaDevAttrClockRate) * 1e-6;
  // The clock is in kHz, there are two transfers per clock, and the width is in bits.
  m.dram_tb_s = attribute(cudaDevAttrMemoryClockRate) * 1e3 * 2 * attribute(cudaDevAttrGlobalMemoryBusWidth) /
                8 * 1e-12;
  m.tensor_pflops = kFlopsPerClock * m.clock_ghz * 1e9 * m.sms * 1e-15;
  return m;
}

}  // namespace bench
