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

namespace bench {
namespace {

constexpr size_t kFlushBytes = size_t{512} << 20;  // four times the L2 of a B200
constexpr int kFlushPasses = 16;  // 8 GiB written: over a millisecond, in which the launches queue up

void cuda(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}
  uint64_t bits() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = state_;
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    return x ^ (x >> 32);
  }

 private:
  uint64_t state_;
};

// Codes of 0, 0.5, 1, 1.5 and their negatives.
std::vector<uint8_t> random_codes(int64_t rows, int64_t k, Random& random) {
  std::vector<uint8_t> out(rows * k / 2);
  for (size_t i = 0; i < out.size(); i += 8) {
    const uint64_t word = random.bits() & 0xBBBBBBBBBBBBBBBBu;
    std::memcpy(&out[i], &word, std::min<size_t>(8, out.size() - i));
  }
  return out;
}

// ue4m3 of a uniform number in [0, 1), rounded down: the top bits of the number's exponent and mantissa.
uint8_t uniform_scale(uint64_t bits) {
  const double x = static_cast<double>(bits >> 11) * 0x1p-53;
  if (x < 0x1p-6) return static_cast<uint8_t>(x * 512);
  int exponent;
  const double fraction = std::frexp(x, &exponent);  // x = fraction * 2^exponent, fraction in [0.5, 1)
  return static_cast<uint8_t>((exponent - 1 + 7) << 3 | static_cast<int>((fraction * 2 - 1) * 8));
}

std::vector<uint8_t> random_scales(int32_t rows, int32_t k, Random& random) {
  std::vector<uint8_t> out(dualgemm_sf_size(rows, k, DUALGEMM_SF_LAYOUT_128X4));  // padding stays zero
  for (int32_t row = 0; row < rows; ++row) {
    for (int32_t block = 0; block < k / 16; ++block) {
      out[dualgemm_sf_offset(rows, k, DUALGEMM_SF_LAYOUT_128X4, row, block)] = uniform_scale(random.bits());
    }
  }
  return out;
}

class Buffer {
 public:
  explicit Buffer(size_t bytes) { cuda(cudaMalloc(&data_, bytes), "cudaMalloc"); }
  explicit Buffer(const std::vector<uint8_t>& from) : Buffer(from.size()) {
    cuda(cudaMemcpy(data_, from.data(), from.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  ~Buffer() { cudaFree(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  void* get() const { return data_; }

 private:
  void* data_ = nullptr;
};

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

// One set of operands on the device. The host copies of the codes stay for the verification.
struct InputSet {
  InputSet(const Shape& s, Random& random)
      : codes{random_codes(s.m, s.k, random), random_codes(s.n, s.k, random), random_codes(s.n, s.k, random)},
        scales{random_scales(s.m, s.k, random), random_scales(s.n, s.k, random),
               random_scales(s.n, s.k, random)},
        a(codes[0]),
        b1(codes[1]),
        b2(codes[2]),
        sfa(scales[0]),
        sfb1(scales[1]),
        sfb2(scales[2]),
        c(static_cast<size_t>(s.m) * s.n * 2) {}

  void forget_host_copy() {
    for (auto& x : codes) std::vector<uint8_t>().swap(x);
    for (auto& x : scales) std::vector<uint8_t>().swap(x);
  }

  std::vector<uint8_t> codes[3], scales[3];
  Buffer a, b1, b2, sfa, sfb1, sfb2, c;
};

}  // namespace

struct Workload::Impl {
  Impl(const Shape& s, dualgemm_dtype_t t, int count, uint64_t seed) : shape(s), dtype(t), random(seed) {
    cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    check(dualgemm_init(), "dualgemm_init");
    for (int i = 0; i < count; ++i) {
      sets.push_back(std::make_unique<InputSet>(shape, random));
      if (i >= kVerifiedSets) sets.back()->forget_host_copy();
    }
    cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  ~Impl() { cudaStreamDestroy(stream); }

  void launch(const InputSet& x) const {
    dualgemm_args_t args;
    dualgemm_args_init(&args);
    args.a = x.a.get();
    args.b1 = x.b1.get();
    args.b2 = x.b2.get();
    args.sfa = x.sfa.get();
    args.sfb1 = x.sfb1.get();
    args.sfb2 = x.sfb2.get();
    args.c = x.c.get();
    args.m = shape.m;
    args.n = args.ldc = shape.n;
    args.k = args.lda = args.ldb1 = args.ldb2 = shape.k;
    args.c_dtype = dtype;
    launch_one(args, stream);
  }
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
  for (int set = 0; set < std::min<int>(impl_->sets.size(), Impl::kVerifiedSets); ++set) {
    const InputSet& x = *impl_->sets[set];
    cuda(cudaMemsetAsync(x.c.get(), 0xFF, static_cast<size_t>(s.m) * s.n * 2, impl_->stream),
         "cudaMemsetAsync");
    impl_->launch(x);
    impl_->synchronize();
    std::vector<uint16_t> c(static_cast<size_t>(s.m) * s.n);
    cuda(cudaMemcpy(c.data(), x.c.get(), c.size() * 2, cudaMemcpyDeviceToHost), "cudaMemcpy");

    std::vector<float> values[3];
    for (int i = 0; i < 3; ++i) {
      const int32_t rows = i == 0 ? s.m : s.n;
      values[i].resize(static_cast<size_t>(rows) * s.k);
      check(dualgemm_dequantize_host(x.codes[i].data(), 0, x.scales[i].data(), rows, s.k, 1.0f,
                                     values[i].data(), 0),
            "dualgemm_dequantize_host");
    }
    for (int sample = 0; sample < samples; ++sample) {
      // The corners first, then anywhere.
      const int64_t row = sample < 4 ? (sample / 2) * (s.m - 1) : impl_->random.bits() % s.m;
      const int64_t column = sample < 4 ? (sample % 2) * (s.n - 1) : impl_->random.bits() % s.n;
      double sums[2] = {}, magnitudes[2] = {};
      for (int i = 0; i < s.k; ++i) {
        for (int side = 0; side < 2; ++side) {
          const double term =
              static_cast<double>(values[0][row * s.k + i]) * values[1 + side][column * s.k + i];
          sums[side] += term;
          magnitudes[side] += std::fabs(term);
        }
      }
      const double g = sums[0], u = sums[1], silu = g / (1 + std::exp(-g)), expected = silu * u;
      double dg = steps * 0x1p-23 * magnitudes[0], du = steps * 0x1p-23 * magnitudes[1];
      if (rounding == Rounding::kIntermediates) {
        dg += std::max(tiny, half_ulp * (std::fabs(g) + dg));
        du += std::max(tiny, half_ulp * (std::fabs(u) + du));
      }
      const double before = 1.1 * dg * (std::fabs(u) + du) + std::fabs(silu) * du +
                            0x1p-20 * std::fabs(expected) * (1 + std::fabs(g));
      const double bound = before + std::max(tiny, half_ulp * (std::fabs(expected) + before));
      const double got = half_value(c[row * s.n + column], impl_->dtype);
      const bool right = std::isinf(got) ? std::signbit(got) == std::signbit(expected) &&
                                               std::fabs(expected) + before >= overflow
                                         : std::fabs(got - expected) <= bound;
      if (!right) {
        char text[160];
        std::snprintf(text, sizeof text,
                      "input set %d: C[%lld][%lld] = %.9g, expected %.9g, allowed error %.3g", set,
                      static_cast<long long>(row), static_cast<long long>(column), got, expected, bound);
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
