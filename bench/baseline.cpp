// baseline.cpp -- see baseline.h.
#include "baseline.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <unordered_map>

#include "inputs.h"
#include "progress.h"
#include "unfused.h"

namespace bench {
namespace {

constexpr double kMostBytes = 16e9;  // of operands, as of the library's own (inputs.h)

size_t count(int64_t elements) { return static_cast<size_t>(elements); }

// The operands of one input set, all problems one after the other: B1 above B2 for each.
struct Operands {
  Operands(size_t a_bytes, size_t b_bytes, size_t scale_bytes)
      : a_copy(a_bytes), b(b_bytes), b_scales(scale_bytes), a(a_copy.data()) {}
  DeviceArray<uint8_t> a_copy, b, b_scales;
  const void *a, *a_scales = nullptr;
};
using OperandsPtr = std::unique_ptr<Operands>;

OperandsPtr dequantised(const Shape& s, const InputSet& set) {
  const int64_t rows = set.rows(), weights = int64_t{s.n} * s.k, problems = s.problems();
  auto x = std::make_unique<Operands>(count(2 * rows * s.k), count(4 * weights * problems), 0);
  const auto at = [](const void* from, int64_t bytes) { return static_cast<const uint8_t*>(from) + bytes; };
  const auto factors_of_b = static_cast<int64_t>(dualgemm_sf_size(s.n, s.k));
  const auto convert = [&](const void* codes, const void* scales, int32_t of, uint8_t* to) {
    check_cuda(launch_dequantise(codes, scales, of, s.k, to, nullptr), "dequantise");
  };
  for (int32_t p = 0; p < problems; ++p) {
    const Place& place = set.place(p);
    convert(at(set.args().a, place.row * s.k / 2), at(set.args().sfa, static_cast<int64_t>(place.sfa)),
            set.room(p), x->a_copy.data() + 2 * place.row * s.k);
    uint8_t* const b = x->b.data() + 4 * weights * p;
    convert(at(set.args().b1, weights / 2 * p), at(set.args().sfb1, factors_of_b * p), s.n, b);
    convert(at(set.args().b2, weights / 2 * p), at(set.args().sfb2, factors_of_b * p), s.n, b + 2 * weights);
  }
  return x;
}

// The codes and factors of B1 and B2 in one tensor; those of A stay where they are. N is a multiple of 128,
// so that no atom of factors has rows of both.
OperandsPtr joined(const Shape& s, const InputSet& set) {
  const size_t codes = count(int64_t{s.n} * s.k / 2), factors = dualgemm_sf_size(s.n, s.k);
  auto x = std::make_unique<Operands>(0, 2 * codes, 2 * factors);
  x->a = set.args().a;
  x->a_scales = set.args().sfa;
  const auto copy = [](uint8_t* to, const void* from, size_t bytes) {
    check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice), "cudaMemcpy");
  };
  copy(x->b.data(), set.args().b1, codes);
  copy(x->b.data() + codes, set.args().b2, codes);
  copy(x->b_scales.data(), set.args().sfb1, factors);
  copy(x->b_scales.data() + factors, set.args().sfb2, factors);
  return x;
}

double bytes_of(const Shape& s, OperandFormat format) {
  const double elements = (static_cast<double>(s.rows()) + 2.0 * s.n * s.problems()) * s.k;
  return elements * (format == OperandFormat::kBf16 ? 2 : 9.0 / 16);
}

// Returns the largest power of two, up to what cudaMalloc gives, that divides all distances between
// addresses: of B1 and B2, of gate and up in a row, of the problems of a batch.
uint32_t alignment_of(const Shape& s, const BaselineWay& way) {
  const int64_t weights = int64_t{s.n} * s.k * (way.format == OperandFormat::kBf16 ? 4 : 1) / 2;
  int64_t alignment = 256;
  if (way.gemms == 2) alignment = std::gcd(std::gcd(alignment, weights), 2 * int64_t{s.n});
  if (s.batch > 1)
    for (const int64_t distance : {2 * int64_t{s.m} * s.k, 2 * weights, 4 * int64_t{s.m} * s.n})
      alignment = std::gcd(alignment, distance);
  return static_cast<uint32_t>(alignment);
}

ProductShape product_shape(const Shape& s, const BaselineWay& way) {
  const int64_t pitch = 2 * int64_t{s.n};
  ProductShape out{way.format, s.m, way.gemms == 1 ? 2 * s.n : s.n, s.k, pitch, alignment_of(s, way)};
  out.batch = s.batch;
  out.a_stride = int64_t{s.m} * s.k;
  out.b_stride = pitch * s.k;
  out.d_stride = s.m * pitch;
  return out;
}

class Baseline {
 public:
  Baseline(const lt::Library& library, const Workload& workload, const BaselineWay& way)
      : shape_(workload.shape()),
        dtype_(workload.epilogue().dtype),
        way_(way),
        product_(library, product_shape(shape_, way)),
        products_(count(int64_t{shape_.batch} * shape_.m * 2 * shape_.n)),
        workspace_(Product::kWorkspaceBytes) {
    const int sets = workload.input_sets();
    const int fit = std::max(2, static_cast<int>(kMostBytes / bytes_of(shape_, way.format)));
    for (int i = 0; i < std::min(sets, fit); ++i)
      operands_.push_back(way.format == OperandFormat::kBf16 ? dequantised(shape_, workload.input_set(i))
                                                             : joined(shape_, workload.input_set(i)));
    for (int i = 0; i < sets; ++i)
      place_[workload.input_set(i).args().c] = static_cast<size_t>(i) % operands_.size();
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  // Takes the fastest of the algorithms that cuBLASLt proposes.
  void tune(Workload* workload) {
    double least = std::numeric_limits<double>::infinity();
    int best = -1;
    for (int i = 0; i < product_.algorithms(); ++i) {
      product_.use(i);
      try {
        const double us = workload->time_stream(kTuningRepeats).median_us;
        if (us >= least) continue;
        least = us;
        best = i;
      } catch (const std::runtime_error&) {
        cudaGetLastError();  // an algorithm that does not run is none
      }
    }
    if (best < 0) throw std::runtime_error("no algorithm of cuBLASLt runs");
    product_.use(best);
  }

  void launch(const dualgemm_args_t& args, cudaStream_t stream) {
    const Operands& x = *operands_[place_.at(args.c)];
    const int32_t n = args.n;
    uint16_t *const gates = products_.data(), *const ups = gates + n;
    const int64_t side =
        way_.format == OperandFormat::kBf16 ? 2 * int64_t{n} * args.k : int64_t{n} * args.k / 2;
    const auto multiply = [&](int64_t b, size_t factors, uint16_t* d) {
      const uint8_t* const scales = x.b_scales.size() > 0 ? x.b_scales.data() + factors : nullptr;
      lt::check(product_.launch({x.a, x.b.data() + b, d, x.a_scales, scales}, workspace_.data(), stream),
                "cublasLtMatmul");
    };
    multiply(0, 0, gates);
    if (way_.gemms == 2) multiply(side, dualgemm_sf_size(n, args.k), ups);
    const Products products{gates,          ups, 2 * int64_t{n}, DUALGEMM_DTYPE_BF16, args.alpha1_dev,
                            args.alpha2_dev};
    check_cuda(launch_activation(products, {args.m, n, shape_.batch}, args.c, dtype_, stream), "activation");
  }

 private:
  static constexpr int kTuningRepeats = 3;

  Shape shape_;
  dualgemm_dtype_t dtype_;
  BaselineWay way_;
  Product product_;
  DeviceArray<uint16_t> products_;  // gate and up of a row, side by side; every launch writes them
  DeviceArray<uint8_t> workspace_;
  std::vector<OperandsPtr> operands_;
  std::unordered_map<const void*, size_t> place_;  // of an input set, by its C
};

Launch launch_of(const std::shared_ptr<Baseline>& baseline) {
  return [baseline](const dualgemm_args_t& args, cudaStream_t stream) { baseline->launch(args, stream); };
}

BaselineTime time_one(const lt::Library& library, Workload* workload, const BaselineWay& way, int samples,
                      int repeats) {
  BaselineTime out{way};
  try {
    show_progress(shape_text(workload->shape()) + ": cuBLASLt, " + way.text());
    const auto baseline = std::make_shared<Baseline>(library, *workload, way);
    workload->use(launch_of(baseline));
    baseline->tune(workload);
    if (const std::string wrong = workload->verify(samples, Rounding::kBf16Products); !wrong.empty())
      throw std::runtime_error("wrong: " + wrong);
    out.stream = workload->time_stream(repeats);
    out.graph = workload->time_graph(repeats);
  } catch (const std::exception& error) {
    out.error = error.what();
    cudaGetLastError();  // too little memory is no reason to give up what follows
  }
  return out;
}

}  // namespace

std::string BaselineWay::text() const {
  return std::string(format == OperandFormat::kBf16 ? "bf16" : "nvfp4") +
         (gemms == 1 ? ", 1 GEMM" : ", 2 GEMMs");
}

std::vector<BaselineWay> baseline_ways(const lt::Library* library, const Shape& shape,
                                       const Epilogue& epilogue, const dualgemm_device_t& device,
                                       std::string* why_none) {
  const auto none = [why_none](const char* why) {
    *why_none = why;
    return std::vector<BaselineWay>{};
  };
  if (shape.grouped()) return none("cuBLASLt has no groups");
  if (epilogue.activation != DUALGEMM_ACTIVATION_SWIGLU ||
      (epilogue.dtype != DUALGEMM_DTYPE_FP16 && epilogue.dtype != DUALGEMM_DTYPE_BF16))
    return none("the baseline computes SWIGLU to fp16 or bf16");
  if (shape.n % 8 != 0) return none("the baseline takes N in multiples of 8");
  if (device.cc_major < 9) return none("the baseline runs on compute capability 9.0 and newer");
  if (library == nullptr) return none("no cuBLASLt (libcublasLt.so.13 or .12 on the library path)");
  std::vector<BaselineWay> ways = {{OperandFormat::kBf16, 1}, {OperandFormat::kBf16, 2}};
  if (device.cc_major >= 10 && library->version() >= lt::kFirstWithNvfp4 && shape.batch == 1 &&
      shape.n % 128 == 0)
    for (const int gemms : {1, 2}) ways.push_back({OperandFormat::kNvfp4, gemms});
  return ways;
}

Launch baseline_launch(const lt::Library& library, const Workload& workload, const BaselineWay& way) {
  return launch_of(std::make_shared<Baseline>(library, workload, way));
}

std::vector<BaselineTime> time_baselines(const lt::Library& library, Workload* workload,
                                         const std::vector<BaselineWay>& ways, int samples, int repeats) {
  std::vector<BaselineTime> out;
  for (const BaselineWay& way : ways) out.push_back(time_one(library, workload, way, samples, repeats));
  return out;
}

const BaselineTime* fastest(const std::vector<BaselineTime>& times) {
  const BaselineTime* best = nullptr;
  for (const BaselineTime& time : times)
    if (time.error.empty() && (best == nullptr || time.stream.median_us < best->stream.median_us))
      best = &time;
  return best;
}

}  // namespace bench
