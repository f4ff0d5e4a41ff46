// baseline.cpp -- see baseline.h.
#include "baseline.h"

#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "grouped_product.h"
#include "inputs.h"
#include "progress.h"
#include "unfused.h"

namespace bench {
namespace {

// Returns the largest power of two, up to what cudaMalloc gives, that divides all distances between
// addresses: of B1 and B2, of gate and up in a row, of the problems of a batch.
uint32_t alignment_of(const Shape& s, const BaselineWay& way) {
  const int64_t bits = bits_of(way.format), weights = int64_t{s.n} * s.k * bits / 8;
  int64_t alignment = 256;
  if (way.gemms == 2) alignment = std::gcd(std::gcd(alignment, weights), 2 * int64_t{s.n});
  const int64_t rows = s.grouped() ? 1 : s.m;  // a group begins at any row
  if (s.problems() > 1)
    for (const int64_t distance : {rows * s.k * bits / 8, s.products * weights, 2 * rows * s.columns()})
      alignment = std::gcd(alignment, distance);
  return static_cast<uint32_t>(alignment);
}

// Whether the way's products are fp16, else bf16: those of NVFP4 and FP8 operands are, if they are no C
// themselves, bf16, others are what their operands are.
bool to_fp16(const BaselineWay& way, dualgemm_dtype_t c_dtype) {
  return way.into_c ? c_dtype == DUALGEMM_DTYPE_FP16 : way.format == OperandFormat::kFp16;
}

// A single problem, the problems of a batch, or one group with `rows` rows.
ProductShape product_shape(const Shape& s, const BaselineWay& way, dualgemm_dtype_t c_dtype, int32_t rows) {
  const int64_t pitch = s.columns();
  const auto columns = static_cast<int32_t>(way.gemms == 1 ? pitch : s.n);
  ProductShape out{way.format, to_fp16(way, c_dtype), rows, columns, s.k, pitch, alignment_of(s, way)};
  out.batch = s.batch;
  out.a_stride = int64_t{rows} * s.k;
  out.b_stride = pitch * s.k;
  out.d_stride = rows * pitch;
  out.fast_accumulation = way.fast_accumulation;
  return out;
}

// One call of cuBLASLt: its product, where its operands begin, in bytes, and what it multiplies the product
// by: the factors of its operands, and the alpha of a C.
struct Multiplication {
  Product* product;
  int64_t a, b, b_scales, d;
  float alpha;
};

// Streams that begin where a stream is and that it waits for.
class SideStreams {
 public:
  explicit SideStreams(int count) : streams_(count > 1 ? static_cast<size_t>(count) : 0) {
    check_cuda(cudaEventCreateWithFlags(&begin_, cudaEventDisableTiming), "cudaEventCreate");
    for (Side& side : streams_) {
      check_cuda(cudaStreamCreateWithFlags(&side.stream, cudaStreamNonBlocking), "cudaStreamCreate");
      check_cuda(cudaEventCreateWithFlags(&side.end, cudaEventDisableTiming), "cudaEventCreate");
    }
  }
  ~SideStreams() {
    for (const Side& side : streams_) {
      cudaStreamDestroy(side.stream);
      cudaEventDestroy(side.end);
    }
    cudaEventDestroy(begin_);
  }
  SideStreams(const SideStreams&) = delete;
  SideStreams& operator=(const SideStreams&) = delete;

  void begin(cudaStream_t main) const {
    if (streams_.empty()) return;
    check_cuda(cudaEventRecord(begin_, main), "cudaEventRecord");
    for (const Side& side : streams_)
      check_cuda(cudaStreamWaitEvent(side.stream, begin_, 0), "cudaStreamWaitEvent");
  }
  void end(cudaStream_t main) const {
    for (const Side& side : streams_) {
      check_cuda(cudaEventRecord(side.end, side.stream), "cudaEventRecord");
      check_cuda(cudaStreamWaitEvent(main, side.end, 0), "cudaStreamWaitEvent");
    }
  }
  // Returns stream i, in turns; `main` where there are no others.
  cudaStream_t of(size_t i, cudaStream_t main) const {
    return streams_.empty() ? main : streams_[i % streams_.size()].stream;
  }

 private:
  struct Side {
    cudaStream_t stream = nullptr;
    cudaEvent_t end = nullptr;
  };
  std::vector<Side> streams_;
  cudaEvent_t begin_ = nullptr;
};

class Computation {
 public:
  Computation(const lt::Library& library, const Workload& workload, const BaselineWay& way,
              std::shared_ptr<const OperandSets> operands)
      : shape_(workload.shape()),
        dtype_(workload.epilogue().dtype),
        way_(way),
        operands_(std::move(operands)),
        streams_(way.streams),
        products_(way.into_c ? 0 : count(workload.input_set(0).rows() * shape_.columns())),
        workspace_(count(way.streams) * Product::kWorkspaceBytes) {
    if (way.grouped) {
      grouped_.emplace(library, workload, way.format, *operands_, products_.data());
      return;
    }
    const int64_t bits = bits_of(way.format), weights = int64_t{shape_.n} * shape_.k * bits / 8;
    const float factor = factor_of_products(way.format);
    const auto product = [&](int32_t rows) {
      return &of_rows_.try_emplace(rows, library, product_shape(shape_, way, dtype_, rows)).first->second;
    };
    if (!shape_.grouped()) {
      calls_.push_back({product(shape_.m), 0, 0, 0, 0, factor});
      if (way.gemms == 2)
        calls_.push_back({product(shape_.m), 0, weights,
                          static_cast<int64_t>(dualgemm_sf_size(shape_.n, shape_.k)), 2 * int64_t{shape_.n},
                          factor});
    }
    for (int32_t group = 0; shape_.grouped() && group < shape_.problems(); ++group) {
      if (shape_.rows(group) == 0) continue;
      const Place& place = workload.input_set(0).place(group);
      calls_.push_back({product(shape_.rows(group)), place.row * shape_.k * bits / 8,
                        shape_.products * weights * group, 0, 2 * place.row * shape_.columns(),
                        way.into_c ? factor * place.alpha1 : factor});
    }
  }

  std::map<int32_t, Product>& of_rows() { return of_rows_; }

  // Computes the products of all calls, or of those whose product `only` is.
  void multiply(const dualgemm_args_t& args, cudaStream_t stream, const Product* only = nullptr) const {
    const Operands& x = operands_->of(args.c);
    void* const to = way_.into_c ? args.c : products_.data();
    streams_.begin(stream);
    for (size_t i = 0; i < calls_.size(); ++i) {
      const Multiplication& call = calls_[i];
      if (only != nullptr && call.product != only) continue;
      const uint8_t* const scales = x.b_scales.size() > 0 ? x.b_scales.data() + call.b_scales : nullptr;
      lt::check(call.product->launch({static_cast<const uint8_t*>(x.a) + call.a, x.b.data() + call.b,
                                      static_cast<uint8_t*>(to) + call.d, x.a_scales, scales, call.alpha},
                                     workspace_.data() + i % count(way_.streams) * Product::kWorkspaceBytes,
                                     streams_.of(i, stream)),
                "cublasLtMatmul");
    }
    streams_.end(stream);
  }

  void launch(const dualgemm_args_t& args, cudaStream_t stream) const {
    if (grouped_)
      lt::check(grouped_->launch(args.c, workspace_.data(), stream), "cublasGemmGroupedBatchedEx");
    else multiply(args, stream);
    if (way_.into_c) return;
    check_cuda(launch_activation(products_of(args, products_.data(), dtype_of(way_.format)),
                                 {args.m, args.n, shape_.problems(), shape_.mode, args.group_rows}, args.c,
                                 dtype_, stream),
               "activation");
  }

 private:
  Shape shape_;
  dualgemm_dtype_t dtype_;
  BaselineWay way_;
  std::shared_ptr<const OperandSets> operands_;
  SideStreams streams_;
  std::map<int32_t, Product> of_rows_;
  std::vector<Multiplication> calls_;
  DeviceArray<uint16_t> products_;         // those of a row side by side; every launch writes them
  DeviceArray<uint8_t> workspace_;         // of each stream
  std::optional<GroupedProduct> grouped_;  // in place of the calls
};

Launch prepare(const lt::Library& library, Workload* workload, const BaselineWay& way,
               const std::shared_ptr<const OperandSets>& operands, int samples) {
  const auto computation = std::make_shared<Computation>(library, *workload, way, operands);
  for (auto& [rows, product] : computation->of_rows())
    tune(&product, [&](int repeats) {
      const Launch multiply = [&](const dualgemm_args_t& args, cudaStream_t stream) {
        computation->multiply(args, stream, &product);
      };
      return workload->time_stream({multiply}, repeats).front().median_us;
    });
  const Launch launch = [computation](const dualgemm_args_t& args, cudaStream_t stream) {
    computation->launch(args, stream);
  };
  const Rounding rounding = way.into_c                                 ? Rounding::kAnyOrder
                            : to_fp16(way, workload->epilogue().dtype) ? Rounding::kFp16Products
                                                                       : Rounding::kBf16Products;
  if (const std::string wrong = workload->verify(samples, launch, rounding); !wrong.empty())
    throw std::runtime_error("wrong: " + wrong);
  if (way.grouped) workload->time_graph({launch}, 1);  // throws where it cannot lie in a CUDA graph
  return launch;
}

}  // namespace

std::string BaselineWay::text() const {
  if (grouped) return std::string(format_name(format)) + ", grouped GEMM";
  return std::string(format_name(format)) + (gemms == 1 ? ", 1 GEMM" : ", 2 GEMMs") +
         (streams > 1 ? ", " + std::to_string(streams) + " streams" : "") +
         (fast_accumulation ? ", fast accumulation" : "");
}

std::vector<BaselineWay> baseline_ways(const lt::Library* library, const Shape& shape,
                                       const Epilogue& epilogue, const dualgemm_device_t& device,
                                       std::string* why_none) {
  const auto none = [why_none](const char* why) {
    *why_none = why;
    return std::vector<BaselineWay>{};
  };
  if ((shape.products == 2 && epilogue.activation != DUALGEMM_ACTIVATION_SWIGLU) ||
      (epilogue.dtype != DUALGEMM_DTYPE_FP16 && epilogue.dtype != DUALGEMM_DTYPE_BF16))
    return none("the baseline computes SWIGLU, or one product, to fp16 or bf16");
  if (shape.n % 8 != 0) return none("the baseline takes N in multiples of 8");
  if (device.cc_major < 9) return none("the baseline runs on compute capability 9.0 and newer");
  if (library == nullptr) return none("no cuBLASLt (libcublasLt.so.13 or .12 on the library path)");
  std::vector<BaselineWay> ways;
  // One call for the problems of a batch has one alpha, and a kernel gives each its own.
  const bool plain = shape.products == 1 && epilogue.linear_activation == DUALGEMM_LINEAR_ACTIVATION_NONE &&
                     shape.batch == 1;
  // In FP8 a GEMM adds in the tensor cores, or now and then takes the sums out of them.
  const auto add_fp8 = [&](int gemms, int streams) {
    for (const bool fast : {false, true})
      ways.push_back({OperandFormat::kFp8, gemms, streams, false, plain, fast});
  };
  if (shape.grouped()) {
    // The weights of all groups in 16 bits fill much of the memory: there is room for one type.
    const dualgemm_dtype_t type = shape.sixteen_bit_a() ? shape.a_dtype : epilogue.dtype;
    const OperandFormat format = type == DUALGEMM_DTYPE_FP16 ? OperandFormat::kFp16 : OperandFormat::kBf16;
    const bool into_c = plain && type == epilogue.dtype;
    for (const int streams : {1, 4}) ways.push_back({format, 1, streams, false, into_c});
    if (library->blas != nullptr) ways.push_back({format, 1, 1, true, into_c});
    if (shape.fp8_a())
      for (const int streams : {1, 4}) add_fp8(1, streams);
    return ways;
  }
  for (const OperandFormat format : {OperandFormat::kFp16, OperandFormat::kBf16}) {
    const bool into_c = plain && dtype_of(format) == epilogue.dtype;
    if (shape.sixteen_bit_a() ? dtype_of(format) != shape.a_dtype : plain && !into_c) continue;
    for (int gemms = 1; gemms <= shape.products; ++gemms) ways.push_back({format, gemms, 1, false, into_c});
  }
  if (shape.packed_a() && device.cc_major >= 10 && library->version() >= lt::kFirstWithNvfp4 &&
      shape.batch == 1 && shape.n % 128 == 0)
    for (int gemms = 1; gemms <= shape.products; ++gemms)
      ways.push_back({OperandFormat::kNvfp4, gemms, 1, false, plain});
  if (shape.fp8_a())
    for (int gemms = 1; gemms <= shape.products; ++gemms) add_fp8(gemms, 1);
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

void tune(Product* product, const std::function<double(int repeats)>& time) {
  constexpr int kRepeats = 3;
  if (product->algorithms() == 1) return;
  double least = std::numeric_limits<double>::infinity();
  int best = -1;
  for (int i = 0; i < product->algorithms(); ++i) {
    product->use(i);
    try {
      const double us = time(kRepeats);
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

const BaselineTime* fastest(const std::vector<BaselineTime>& times) {
  const BaselineTime* best = nullptr;
  for (const BaselineTime& time : times)
    if (time.error.empty() && (best == nullptr || time.stream.median_us < best->stream.median_us))
      best = &time;
  return best;
}

}  // namespace bench
