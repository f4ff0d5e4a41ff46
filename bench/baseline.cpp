// baseline.cpp -- see baseline.h.
#include "baseline.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "inputs.h"
#include "progress.h"
#include "unfused.h"

namespace bench {
namespace {

size_t count(int64_t elements) { return static_cast<size_t>(elements); }

// Returns the largest power of two, up to what cudaMalloc gives, that divides all distances between
// addresses: of B1 and B2, of gate and up in a row, of the problems of a batch.
uint32_t alignment_of(const Shape& s, const BaselineWay& way) {
  const int64_t weights = int64_t{s.n} * s.k * (way.format == OperandFormat::kNvfp4 ? 1 : 4) / 2;
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

class Computation {
 public:
  Computation(const lt::Library& library, const Workload& workload, const BaselineWay& way,
              std::shared_ptr<const OperandSets> operands)
      : shape_(workload.shape()),
        dtype_(workload.epilogue().dtype),
        way_(way),
        operands_(std::move(operands)),
        product_(library, product_shape(shape_, way)),
        products_(count(int64_t{shape_.batch} * shape_.m * 2 * shape_.n)),
        workspace_(Product::kWorkspaceBytes) {}

  Product& product() { return product_; }

  void launch(const dualgemm_args_t& args, cudaStream_t stream) const {
    const Operands& x = operands_->of(args.c);
    const int32_t n = args.n;
    uint16_t *const gates = products_.data(), *const ups = gates + n;
    const int64_t side =
        way_.format == OperandFormat::kNvfp4 ? int64_t{n} * args.k / 2 : 2 * int64_t{n} * args.k;
    const auto multiply = [&](int64_t b, size_t factors, uint16_t* d) {
      const uint8_t* const scales = x.b_scales.size() > 0 ? x.b_scales.data() + factors : nullptr;
      lt::check(product_.launch({x.a, x.b.data() + b, d, x.a_scales, scales}, workspace_.data(), stream),
                "cublasLtMatmul");
    };
    multiply(0, 0, gates);
    if (way_.gemms == 2) multiply(side, dualgemm_sf_size(n, args.k), ups);
    const Products products{gates,          ups, 2 * int64_t{n}, dtype_of(way_.format), args.alpha1_dev,
                            args.alpha2_dev};
    check_cuda(launch_activation(products, {args.m, n, shape_.batch}, args.c, dtype_, stream), "activation");
  }

 private:
  Shape shape_;
  dualgemm_dtype_t dtype_;
  BaselineWay way_;
  std::shared_ptr<const OperandSets> operands_;
  Product product_;
  DeviceArray<uint16_t> products_;  // gate and up of a row, side by side; every launch writes them
  DeviceArray<uint8_t> workspace_;
};

// Takes the fastest of the algorithms that cuBLASLt proposes.
void tune(Product* product, Workload* workload, const Launch& launch) {
  constexpr int kRepeats = 3;
  if (product->algorithms() == 1) return;
  double least = std::numeric_limits<double>::infinity();
  int best = -1;
  for (int i = 0; i < product->algorithms(); ++i) {
    product->use(i);
    try {
      const double us = workload->time_stream({launch}, kRepeats).front().median_us;
      if (us >= least) continue;
      least = us;
      best = i;
    } catch (const std::runtime_error&) {
      cudaGetLastError();  // an algorithm that does not run is none
    }
  }
  if (best < 0) throw std::runtime_error("no algorithm of cuBLASLt runs");
  product->use(best);
}

Launch prepare(const lt::Library& library, Workload* workload, const BaselineWay& way,
               const std::shared_ptr<const OperandSets>& operands, int samples) {
  const auto computation = std::make_shared<Computation>(library, *workload, way, operands);
  const Launch launch = [computation](const dualgemm_args_t& args, cudaStream_t stream) {
    computation->launch(args, stream);
  };
  tune(&computation->product(), workload, launch);
  const Rounding rounding = products_are_fp16(way.format) ? Rounding::kFp16Products : Rounding::kBf16Products;
  if (const std::string wrong = workload->verify(samples, launch, rounding); !wrong.empty())
    throw std::runtime_error("wrong: " + wrong);
  return launch;
}

}  // namespace

std::string BaselineWay::text() const {
  return std::string(format_name(format)) + (gemms == 1 ? ", 1 GEMM" : ", 2 GEMMs");
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
  std::vector<BaselineWay> ways;
  for (const OperandFormat format : {OperandFormat::kFp16, OperandFormat::kBf16})
    if (shape.packed_a() || dtype_of(format) == shape.a_dtype)
      for (const int gemms : {1, 2}) ways.push_back({format, gemms});
  if (shape.packed_a() && device.cc_major >= 10 && library->version() >= lt::kFirstWithNvfp4 &&
      shape.batch == 1 && shape.n % 128 == 0)
    for (const int gemms : {1, 2}) ways.push_back({OperandFormat::kNvfp4, gemms});
  return ways;
}

std::vector<Baseline> prepare_baselines(const lt::Library& library, Workload* workload,
                                        SharedOperands* operands, const std::vector<BaselineWay>& ways,
                                        int samples) {
  std::vector<Baseline> out;
  for (const BaselineWay& way : ways) {
    Baseline baseline{way};
    try {
      show_progress(shape_text(workload->shape()) + ": cuBLASLt, " + way.text());
      baseline.launch = prepare(library, workload, way, operands->in(way.format), samples);
    } catch (const std::exception& error) {
      baseline.error = error.what();
      cudaGetLastError();  // too little memory is no reason to give up what follows
    }
    out.push_back(std::move(baseline));
  }
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
