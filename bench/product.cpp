// product.cpp -- see product.h. cuBLASLt's matrices are column-major, so that it is asked for D^T = B A^T:
// its first operand is our B, transposed, its second our A.
#include "product.h"

#include <stdexcept>

namespace bench {
namespace {

using lt::check;

constexpr int kMostAlgorithms = 8;

lt::Layout layout(const lt::Library& library, int type, int64_t rows, int64_t columns, int64_t pitch,
                  int32_t batch, int64_t stride) {
  lt::Layout out = nullptr;
  check(library.layout_create(&out, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), pitch),
        "cublasLtMatrixLayoutCreate");
  if (batch == 1) return out;
  check(library.layout_set(out, lt::kBatchCount, &batch, sizeof batch), "batch count");
  check(library.layout_set(out, lt::kStridedBatchOffset, &stride, sizeof stride), "batch stride");
  return out;
}

}  // namespace

Product::Product(const lt::Library& library, const ProductShape& shape)
    : library_(library), scaled_(shape.format == OperandFormat::kNvfp4) {
  try {
    describe(shape);
  } catch (...) {
    destroy();
    throw;
  }
}
Product::~Product() { destroy(); }

void Product::describe(const ProductShape& s) {
  const int of_products = s.to_fp16 ? lt::kReal16F : lt::kReal16BF;
  const int type = scaled_                           ? lt::kReal4FE2M1
                   : s.format == OperandFormat::kFp8 ? lt::kReal8FE4M3
                                                     : of_products;
  check(library_.desc_create(&desc_, lt::kCompute32F, lt::kReal32F), "cublasLtMatmulDescCreate");
  const auto set = [this](lt::DescAttribute which, int32_t value) {
    check(library_.desc_set(desc_, which, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
  };
  set(lt::kTransA, lt::kOpTransposed);
  if (scaled_) {
    set(lt::kAScaleMode, lt::kScaleVec16Ue4m3);
    set(lt::kBScaleMode, lt::kScaleVec16Ue4m3);
  }
  if (s.format == OperandFormat::kFp8) {
    const auto fast = static_cast<int8_t>(s.fast_accumulation);
    check(library_.desc_set(desc_, lt::kFastAccumulation, &fast, sizeof fast), "fast accumulation");
  }
  b_ = layout(library_, type, s.k, s.n, s.k, s.batch, s.b_stride);
  a_ = layout(library_, type, s.k, s.m, s.k, s.batch, s.a_stride);
  d_ = layout(library_, of_products, s.n, s.m, s.d_pitch, s.batch, s.d_stride);
  check(library_.preference_create(&preference_), "cublasLtMatmulPreferenceCreate");
  const size_t bytes = kWorkspaceBytes;
  check(library_.preference_set(preference_, lt::kMaxWorkspaceBytes, &bytes, sizeof bytes), "workspace");
  // Partial sums are added up in float, as the verification expects.
  const uint32_t schemes = lt::kReduceInPlace | lt::kReduceComputeType;
  check(library_.preference_set(preference_, lt::kReductionSchemeMask, &schemes, sizeof schemes),
        "reduction");
  for (const lt::PreferenceAttribute which :
       {lt::kAlignmentA, lt::kAlignmentB, lt::kAlignmentC, lt::kAlignmentD})
    check(library_.preference_set(preference_, which, &s.alignment, sizeof s.alignment), "alignment");
  heuristics_.resize(kMostAlgorithms);
  int found = 0;
  check(library_.heuristic(library_.handle, desc_, b_, a_, d_, d_, preference_, kMostAlgorithms,
                           heuristics_.data(), &found),
        "cublasLtMatmulAlgoGetHeuristic");
  heuristics_.resize(static_cast<size_t>(found));
  std::erase_if(heuristics_, [](const lt::Heuristic& h) { return h.status != lt::kStatusSuccess; });
  if (heuristics_.empty()) throw std::runtime_error("cuBLASLt has no algorithm for this product");
}

void Product::destroy() {
  if (preference_) library_.preference_destroy(preference_);
  for (const lt::Layout layout : {a_, b_, d_})
    if (layout) library_.layout_destroy(layout);
  if (desc_) library_.desc_destroy(desc_);
}

int Product::launch(const ProductOperands& x, void* workspace, cudaStream_t stream) const {
  if (scaled_) {
    library_.desc_set(desc_, lt::kAScalePointer, &x.b_scales, sizeof x.b_scales);
    library_.desc_set(desc_, lt::kBScalePointer, &x.a_scales, sizeof x.a_scales);
  }
  const float zero = 0;
  return library_.matmul(library_.handle, desc_, &x.alpha, x.b, b_, x.a, a_, &zero, x.d, d_, x.d, d_,
                         &heuristics_[algorithm_].algorithm, workspace, kWorkspaceBytes, stream);
}

}  // namespace bench
