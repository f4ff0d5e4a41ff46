// measure.cpp -- see measure.h.
#include "measure.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "budget.h"
#include "inputs.h"

namespace bench {
namespace {

constexpr size_t kFlushBytes = size_t{512} << 20;  // four times the L2 of a B200
constexpr int kFlushPasses = 16;  // 8 GiB written: over a millisecond, in which the launches queue up

constexpr int64_t kSamplesPerProblem = 8;  // at least: the corners, and as many anywhere

class Event {
 public:
  Event() { cuda(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(cudaStream_t stream) { cuda(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  double us_since(const Event& start) const {
    float ms;
    cuda(cudaEventElapsedTime(&ms, start.event_, event_), "cudaEventElapsedTime");
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

double half_value(uint16_t bits, dualgemm_dtype_t dtype) {
  if (dtype == DUALGEMM_DTYPE_BF16) {
    const uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
  }
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double magnitude;
  if (exponent == 31) {
    magnitude = mantissa ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else {
    magnitude = exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24);
  }
  return bits >> 15 ? -magnitude : magnitude;
}

// The first element of C that belongs to no problem and was written, or an empty string.
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
    cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    check(dualgemm_init(), "dualgemm_init");
    for (int i = 0; i < count; ++i) {
      sets.push_back(std::make_unique<InputSet>(shape, dtype, random));
      if (i >= kVerifiedSets) sets.back()->forget_host_copy();
    }
    cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  ~Impl() { cudaStreamDestroy(stream); }

  void launch(const InputSet& x) const { launch_one(x.args(), stream); }
  void launch_all() const {
    for (const auto& set : sets) launch(*set);
  }
  void synchronize() const { cuda(cudaStreamSynchronize(stream), "the kernel"); }

  // The first and the last input set would do; more only cost host memory.
  static constexpr int kVerifiedSets = 2;

  Shape shape;
  dualgemm_dtype_t dtype;
  Random random;
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

// Bound: the tensor core cuts its sum to 24 bits once per 64 elements, each time by at most 2^-23 of the sum
// of magnitudes; silu moves by at most 1.1 times its argument; the float epilogue adds 2^-20 of the result
// per unit of gate; the conversion to the output type half an ulp. Intermediates in the output type move gate
// and up by half an ulp each; what they overflow to is not accounted for, and does not occur with these data.
std::string Workload::verify(int samples, Rounding rounding) {
  const Shape& s = impl_->shape;
  const double half_ulp = impl_->dtype == DUALGEMM_DTYPE_FP16 ? 0x1p-11 : 0x1p-8;
  const double tiny = impl_->dtype == DUALGEMM_DTYPE_FP16 ? 0x1p-25 : 0x1p-126;
  const double overflow = impl_->dtype == DUALGEMM_DTYPE_FP16 ? 65520 : 0x1.FFp127;
  const double steps = std::ceil(s.k / 64.0);
  std::vector<int32_t> with_rows;
  for (int32_t problem = 0; problem < s.problems(); ++problem)
    if (s.rows(problem) > 0) with_rows.push_back(problem);
  const int64_t count = std::max<int64_t>(samples, kSamplesPerProblem * with_rows.size());
  for (int set = 0; set < std::min<int>(impl_->sets.size(), Impl::kVerifiedSets); ++set) {
    const InputSet& x = *impl_->sets[set];
    std::vector<uint16_t> c(x.rows() * s.n);
    cuda(cudaMemsetAsync(x.args().c, 0xFF, c.size() * 2, impl_->stream), "cudaMemsetAsync");
    impl_->launch(x);
    impl_->synchronize();
    cuda(cudaMemcpy(c.data(), x.args().c, c.size() * 2, cudaMemcpyDeviceToHost), "cudaMemcpy");
    if (const std::string text = outside(s, x, c); !text.empty())
      return "input set " + std::to_string(set) + ": " + text;

    for (int64_t sample = 0; sample < count; ++sample) {
      // In turns from every problem that has rows: its corners first, then anywhere.
      const int32_t problem = with_rows[sample % with_rows.size()];
      const auto turn = static_cast<int32_t>(sample / with_rows.size());
      const int32_t last_row = s.rows(problem) - 1, last_column = s.n - 1;
      const auto below = [this](int32_t end) { return static_cast<int32_t>(impl_->random.bits() % end); };
      const int32_t row = turn < 4 ? (turn / 2) * last_row : below(last_row + 1);
      const int32_t column = turn < 4 ? (turn % 2) * last_column : below(last_column + 1);
      const Place& place = x.place(problem);
      const std::vector<float> a = x.row_of_a(problem, row);
      const std::vector<float> b[2] = {x.row_of_b(0, problem, column), x.row_of_b(1, problem, column)};
      double sums[2] = {}, magnitudes[2] = {};
      for (int i = 0; i < s.k; ++i) {
        for (int side = 0; side < 2; ++side) {
          const double term = static_cast<double>(a[i]) * b[side][i];
          sums[side] += term;
          magnitudes[side] += std::fabs(term);
        }
      }
      const double g = place.alpha1 * sums[0], u = place.alpha2 * sums[1], silu = g / (1 + std::exp(-g));
      const double expected = silu * u;
      double dg = steps * 0x1p-23 * place.alpha1 * magnitudes[0];
      double du = steps * 0x1p-23 * place.alpha2 * magnitudes[1];
      if (rounding == Rounding::kIntermediates) {
        dg += std::max(tiny, half_ulp * (std::fabs(g) + dg));
        du += std::max(tiny, half_ulp * (std::fabs(u) + du));
      }
      const double before = 1.1 * dg * (std::fabs(u) + du) + std::fabs(silu) * du +
                            0x1p-20 * std::fabs(expected) * (1 + std::fabs(g));
      const double bound = before + std::max(tiny, half_ulp * (std::fabs(expected) + before));
      const double got = half_value(c[(place.row + row) * s.n + column], impl_->dtype);
      const bool right = std::isinf(got) ? std::signbit(got) == std::signbit(expected) &&
                                               std::fabs(expected) + before >= overflow
                                         : std::fabs(got - expected) <= bound;
      if (!right) {
        char text[160];
        std::snprintf(text, sizeof text,
                      "input set %d, problem %d: C[%d][%d] = %.9g, expected %.9g, allowed error %.3g", set,
                      problem, row, column, got, expected, bound);
        return text;
      }
    }
  }
  return {};
}

Timing Workload::time_stream(int repeats) {
  const Buffer flush(kFlushBytes);
  Event start, stop;
  std::vector<double> us;
  impl_->launch_all();
  for (int repeat = 0; repeat < repeats; ++repeat) {
    impl_->synchronize();
    for (int pass = 0; pass < kFlushPasses; ++pass) {
      cuda(cudaMemsetAsync(flush.get(), pass, kFlushBytes, impl_->stream), "cudaMemsetAsync");
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
  cuda(cudaStreamBeginCapture(impl_->stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  impl_->launch_all();
  cuda(cudaStreamEndCapture(impl_->stream, &graph), "cudaStreamEndCapture");
  cuda(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  const int warm_up = 3;
  Event start, stop;
  std::vector<double> us;
  for (int repeat = -warm_up; repeat < repeats; ++repeat) {
    start.record(impl_->stream);
    cuda(cudaGraphLaunch(executable, impl_->stream), "cudaGraphLaunch");
    stop.record(impl_->stream);
    impl_->synchronize();
    if (repeat >= 0) us.push_back(stop.us_since(start) / static_cast<double>(impl_->sets.size()));
  }
  cuda(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
  cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
  return summarise(us);
}

Machine describe_machine(const dualgemm_device_t& device) {
  const auto attribute = [&](cudaDeviceAttr which) {
    int value = 0;
    cuda(cudaDeviceGetAttribute(&value, which, device.ordinal), "cudaDeviceGetAttribute");
    return value;
  };
  Machine m;
  m.name = device.name;
  m.sms = device.sm_count;
  m.driver = device.driver_version;
  cuda(cudaRuntimeGetVersion(&m.runtime), "cudaRuntimeGetVersion");
  m.clock_ghz = attribute(cudaDevAttrClockRate) * 1e-6;
  // kHz, two transfers per clock, bits to bytes.
  m.dram_tb_s = attribute(cudaDevAttrMemoryClockRate) * 1e3 * 2 * attribute(cudaDevAttrGlobalMemoryBusWidth) /
                8 * 1e-12;
  m.tensor_pflops = kFlopsPerClock * m.clock_ghz * 1e9 * m.sms * 1e-15;
  return m;
}

}  // namespace bench
