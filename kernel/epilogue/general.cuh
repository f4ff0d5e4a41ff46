// general.cuh -- the arithmetic that a launch can ask for, step by step. All threads of a launch take the
// same steps and the same activation: a step that is not asked for costs a branch. The steps are
//
//   scale     g = (alpha1 a_row_scale[row]) acc1, u likewise
//   bias      g += bias1[column], u += bias2[column]
//   store     g and u to D1 and D2
//   activate  y = f(g) h(u)
//   weigh     y *= c_row_scale[row]
//   add       y += c_add[row, column]
//   largest   amax = max(amax, |y|)
//
// Each step rounds its results to fp32. It goes over all elements of the fragment before the next step
// begins, and leaves its results in the registers of its inputs: gate and then y where acc1 was, up where
// acc2 was.
//
// With one product there is neither u nor D2, and y = f(g). The step "add" exists only with one product.
#pragma once

#include "kernel/epilogue/activation.cuh"
#include "kernel/epilogue/exact.cuh"
#include "kernel/epilogue/output.cuh"
#include "kernel/epilogue/residual.cuh"
#include "kernel/epilogue/scaling.cuh"

namespace dualgemm {

template <class Traits, class Layout, class Math>
class GeneralArithmetic {
  static constexpr int kProducts = Traits::kPlan.mma.accumulators;
  static constexpr bool kBoth = kProducts == 2;

 public:
  DUALGEMM_DEVICE GeneralArithmetic(const Params& p, const Tile& tile, LanePlace at)
      : p_(p), tile_(tile), at_(at), alphas_(p, tile) {}

  // Hands the elements first .. first + kWidth - 1 of the lane to the writer of the output.
  template <int kWidth, class Writer, class Results>
  DUALGEMM_DEVICE void finish(const Fragment<kWidth, kProducts>& fragment, int first, const Writer& output,
                              Results& results) const {
    float g[kWidth], u[kBoth ? kWidth : 1];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      g[i] = __uint_as_float(fragment.acc1[i]);
      if constexpr (kBoth) u[i] = __uint_as_float(fragment.acc2[i]);
    }
    scale<kWidth>(g, u, first);
    add<kWidth>(g, p_.general.bias1, first);
    if constexpr (kBoth) add<kWidth>(u, p_.general.bias2, first);
    if (p_.general.d1.start) store_preactivations<kWidth>(g, u, first);
    if (p_.general.exact) activate_exactly<kWidth>(g, u);
    else activate<kWidth>(g, u);
    weigh<kWidth>(g, first);
    if constexpr (!kBoth)
      if (p_.general.c_add) add_residual<kWidth>(g, first);
    if (p_.general.amax) raise_amax<kWidth>(g, first);
#pragma unroll
    for (int i = 0; i < kWidth; i += 2) output.put(results, i, {g[i], g[i + 1]});
  }

 private:
  DUALGEMM_DEVICE Vector row_factors(const float* start, int64_t stride) const {
    return {start, CType::kFp32, tile_.a_problem * stride + tile_.row + at_.row, tile_.rows - at_.row};
  }

  template <int kWidth>
  DUALGEMM_DEVICE void scale(float* g, float* u, int first) const {
    const Vector factors = row_factors(p_.general.row_scale, p_.general.row_scale_stride);
    if (!factors.given()) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        g[i] *= alphas_.alpha1;
        if constexpr (kBoth) u[i] *= alphas_.alpha2;
      }
      return;
    }
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const float factor = factors[Layout::row(first + i)];
      g[i] *= alphas_.alpha1 * factor;
      if constexpr (kBoth) u[i] *= alphas_.alpha2 * factor;
    }
  }

  template <int kWidth>
  DUALGEMM_DEVICE void add(float* x, const void* start, int first) const {
    const Vector bias(start, static_cast<CType>(p_.general.bias_type),
                      tile_.problem * p_.general.bias_stride + at_.column, p_.n - at_.column);
    if (!bias.given()) return;
#pragma unroll
    for (int i = 0; i < kWidth; ++i)  // never fused with the product before it
      x[i] = __fadd_rn(x[i], bias[Layout::column(first + i)]);
  }

  template <int kWidth>
  DUALGEMM_DEVICE void store_preactivations(const float* g, const float* u, int first) const {
    switch (static_cast<CType>(p_.general.d_type)) {
      case CType::kFp32: return store_both<kWidth, Fp32>(g, u, first);
      case CType::kFp16: return store_both<kWidth, Fp16>(g, u, first);
      default: return store_both<kWidth, Bf16>(g, u, first);
    }
  }
  template <int kWidth, class Format>
  DUALGEMM_DEVICE void store_both(const float* g, const float* u, int first) const {
    store_floats<kWidth>(DirectWriter<Traits, Format, Layout, matrix_d1>(p_, tile_, at_), g, first);
    if constexpr (kBoth)
      store_floats<kWidth>(DirectWriter<Traits, Format, Layout, matrix_d2>(p_, tile_, at_), u, first);
  }

  template <int kWidth>
  DUALGEMM_DEVICE void activate(float* g, const float* u) const {
    if constexpr (!kBoth)
      return visit_linear_activation<Math>(static_cast<LinearActivation>(p_.general.activation), p_.general,
                                           [&](const auto& activation) {
#pragma unroll
                                             for (int i = 0; i < kWidth; ++i) g[i] = activation.gate(g[i]);
                                           });
    else
      visit_activation<Math>(static_cast<ActivationKind>(p_.general.activation), p_.general,
                             [&](const auto& activation) {
#pragma unroll
                               for (int i = 0; i < kWidth; ++i)
                                 g[i] = activation.gate(g[i]) * activation.up(u[i]);
                             });
  }
  // The code of the exact functions is long, so the kernel has it only once: it works on element 0, and each
  // round of the loop moves the other elements down by one.
  template <int kWidth>
  DUALGEMM_DEVICE void activate_exactly(float* g, float* u) const {
#pragma unroll 1
    for (int n = 0; n < kWidth; ++n) {
      const float y = exactly(g[0], u[0]);
#pragma unroll
      for (int i = 0; i + 1 < kWidth; ++i) {
        g[i] = g[i + 1];
        if constexpr (kBoth) u[i] = u[i + 1];
      }
      g[kWidth - 1] = y;
    }
  }

  DUALGEMM_DEVICE float exactly(float g, float u) const {
    if constexpr (kBoth) return exact_activation(p_.general, g, u);
    else return exact_linear_activation(static_cast<LinearActivation>(p_.general.activation), g);
  }

  template <int kWidth>
  DUALGEMM_DEVICE void weigh(float* y, int first) const {
    const Vector factors = row_factors(p_.general.c_row_scale, p_.general.c_row_scale_stride);
    if (!factors.given()) return;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) y[i] *= factors[Layout::row(first + i)];
  }

  template <int kWidth>
  DUALGEMM_DEVICE void add_residual(float* y, int first) const {
    switch (static_cast<CType>(p_.c_type)) {
      case CType::kFp32: return add_matrix<kWidth, Fp32>(y, first);
      case CType::kFp16: return add_matrix<kWidth, Fp16>(y, first);
      default: return add_matrix<kWidth, Bf16>(y, first);
    }
  }
  template <int kWidth, class Format>
  DUALGEMM_DEVICE void add_matrix(float* y, int first) const {
    const MatrixReader<Format, Layout> residual(p_, tile_, at_);
    float x[kWidth];
    residual.template load<kWidth>(x, first);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) y[i] = __fadd_rn(y[i], x[i]);
  }

  // Floats that are not negative have the order of their bits as int32, and NaN comes after all of them. An
  // *amax that is negative, or -0, counts as less than each of them.
  template <int kWidth>
  DUALGEMM_DEVICE void raise_amax(const float* y, int first) const {
    const int rows = tile_.rows - at_.row, columns = p_.n - at_.column;
    uint32_t largest = 0;
#pragma unroll
    for (int i = 0; i < kWidth; ++i)
      if (Layout::row(first + i) < rows && Layout::column(first + i) < columns)
        largest = max(largest, __float_as_uint(y[i]) & 0x7FFFFFFF);
    largest = __reduce_max_sync(0xffffffff, largest);
    if (threadIdx.x % 32 == 0) ptx::red_global_max_s32(p_.general.amax, static_cast<int32_t>(largest));
  }

  const Params& p_;
  Tile tile_;
  LanePlace at_;
  Alphas alphas_;
};

}  // namespace dualgemm
