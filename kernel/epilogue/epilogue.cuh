// epilogue.cuh -- what happens to a fragment of accumulators: scaling, activation, output. Each is a part of
// its own; this is the one place that puts them together.
#pragma once

#include "kernel/epilogue/activation.cuh"
#include "kernel/epilogue/fragment.cuh"
#include "kernel/epilogue/general.cuh"
#include "kernel/epilogue/output.cuh"
#include "kernel/epilogue/output_any.cuh"
#include "kernel/epilogue/scaling.cuh"
#include "ptx/math.cuh"

namespace dualgemm {

struct ApproximateMath {
  DUALGEMM_DEVICE static float ex2(float x) { return ptx::ex2_approx_ftz(x); }
  DUALGEMM_DEVICE static float rcp(float x) { return ptx::rcp_approx_ftz(x); }
  DUALGEMM_DEVICE static float min(float x, float y) { return ptx::min_nan(x, y); }
  DUALGEMM_DEVICE static float max(float x, float y) { return ptx::max_nan(x, y); }
};

DUALGEMM_DEVICE TwoFloats floats_at(const uint32_t* acc, int i) {
  return {__uint_as_float(acc[i]), __uint_as_float(acc[i + 1])};
}

// The arithmetic of a plain instance: C = f(alpha1 acc1) * h(alpha2 acc2), with an activation that was fixed
// when the instance was compiled.
template <class Activation>
class PlainArithmetic {
 public:
  DUALGEMM_DEVICE PlainArithmetic(const Params& p, const Tile& tile, LanePlace)
      : alphas_(p, tile), activation_(p) {}

  // Hands all elements to the writer of the output. Each two neighbours go there as soon as they are
  // computed, so that the writer may keep less than two floats for them.
  template <int kWidth, class Writer, class Results>
  DUALGEMM_DEVICE void finish(const Fragment<kWidth>& fragment, int, const Writer& output,
                              Results& results) const {
#pragma unroll
    for (int i = 0; i < kWidth; i += 2) {
      const TwoFloats f = activation_.gate(alphas_.gate(floats_at(fragment.acc1, i)));
      const TwoFloats h = activation_.up(alphas_.up(floats_at(fragment.acc2, i)));
      output.put(results, i, {f.first * h.first, f.second * h.second});
    }
  }

 private:
  Alphas alphas_;
  Activation activation_;
};

// The arithmetic of a plain instance of one product: C = alpha1 acc1.
class PlainProduct {
 public:
  DUALGEMM_DEVICE PlainProduct(const Params& p, const Tile& tile, LanePlace) : alphas_(p, tile) {}

  template <int kWidth, class Writer, class Results>
  DUALGEMM_DEVICE void finish(const Fragment<kWidth, 1>& fragment, int, const Writer& output,
                              Results& results) const {
#pragma unroll
    for (int i = 0; i < kWidth; i += 2) output.put(results, i, alphas_.gate(floats_at(fragment.acc1, i)));
  }

 private:
  Alphas alphas_;
};

// What an instance computes from its accumulators is fixed when it is compiled (Plain, or PlainLinear for one
// product), or the launch says it (General). The same is true of the type of C. For an A in NVFP4 each set of
// options gives two plain instances, for fp16 and for bf16, which have neighbouring ids and mostly share a
// kernel, and a general one for all types. For an A of 16 bits sixteen_bit.cuh and one_product.cuh list which
// there are. kernel/README.md says how to add an activation or an output.
template <class Activation>
struct Plain {
  static constexpr bool kGeneral = false;
  using Output = Fp16OrBf16;
  template <class, class>
  using Of = PlainArithmetic<Activation>;
};
struct PlainLinear {
  static constexpr bool kGeneral = false;
  using Output = Fp16OrBf16;
  template <class, class>
  using Of = PlainProduct;
};
struct General {
  static constexpr bool kGeneral = true;
  using Output = AnyOutput;
  template <class Traits, class Layout>
  using Of = GeneralArithmetic<Traits, Layout, ApproximateMath>;
};
using PlainSwiglu = Plain<Swiglu<ApproximateMath>>;

// The epilogue of one tile of C, as one lane of a warp sees it.
template <class Traits, class Layout>
struct Epilogue {
  using Writer = typename Traits::Output::template Writer<Traits, Layout>;

  typename Traits::Arithmetic::template Of<Traits, Layout> arithmetic;
  Writer output;

  DUALGEMM_DEVICE Epilogue(const Params& p, const Tile& tile, LanePlace at,
                           typename Traits::Output::Shared& shared)
      : arithmetic(p, tile, at), output(p, tile, at, shared) {}

  // Finishes the elements first .. first + kWidth - 1 of the lane.
  template <int kWidth, int kProducts>
  DUALGEMM_DEVICE void finish(const Fragment<kWidth, kProducts>& fragment, int first) const {
    typename Writer::template Results<kWidth> results;
    arithmetic.finish(fragment, first, output, results);
    output.store(results, first);
  }
};

}  // namespace dualgemm
