// epilogue.cuh -- what happens to a fragment of accumulators: scaling, activation, output. Each is a part of
// its own; this is the one place that puts them together.
#pragma once

#include "kernel/epilogue/activation.cuh"
#include "kernel/epilogue/fragment.cuh"
#include "kernel/epilogue/output_16bit.cuh"
#include "kernel/epilogue/scaling.cuh"
#include "ptx/math.cuh"

namespace dualgemm {

struct ApproximateMath {
  DUALGEMM_DEVICE static float ex2(float x) { return ptx::ex2_approx_ftz(x); }
  DUALGEMM_DEVICE static float rcp(float x) { return ptx::rcp_approx_ftz(x); }
};

// The library builds these outputs. Instances that differ in the output alone have ids that follow each
// other, in this order. kernel/README.md says how to add one.
using Outputs = List<Fp16, Bf16>;

// This is the epilogue of one tile of C, as one lane of a warp sees it.
template <class Traits, class Layout>
struct Epilogue {
  using Writer = typename Traits::Output::template Writer<Traits, Layout>;

  Scaling scaling;
  typename Traits::Activation activation;
  Writer output;

  DUALGEMM_DEVICE Epilogue(const Params& p, const Tile& tile, LanePlace at,
                           typename Traits::Output::Shared& shared)
      : scaling(p, tile), activation(p), output(p, tile, at, shared) {}

  // Finishes the elements first .. first + kWidth - 1 of the lane. Each pair goes to the output as soon as it
  // is computed, so that what the output keeps of it may be smaller than two floats.
  template <int kWidth>
  DUALGEMM_DEVICE void finish(const Fragment<kWidth>& fragment, int first) const {
    typename Writer::template Results<kWidth> results;
#pragma unroll
    for (int i = 0; i < kWidth; i += 2) {
      const auto floats = [i](const uint32_t* acc) {
        return TwoFloats{__uint_as_float(acc[i]), __uint_as_float(acc[i + 1])};
      };
      const TwoFloats f = activation.gate(scaling.gate(floats(fragment.acc1)));
      const TwoFloats h = activation.up(scaling.up(floats(fragment.acc2)));
      results.put(i, {f.first * h.first, f.second * h.second});
    }
    output.store(results, first);
  }
};

}  // namespace dualgemm
