// traits.cuh -- the template parameter of the kernel and of its roles: the plan, the epilogue, and the parts
// of the pipeline.
#pragma once

#include <type_traits>

#include "kernel/common/k_loop.cuh"
#include "kernel/common/load.cuh"
#include "kernel/sm90/exchange.cuh"
#include "kernel/sm90/half_math.cuh"
#include "kernel/sm90/load_a.cuh"
#include "kernel/sm90/plan.h"
#include "kernel/sm90/staged.cuh"

namespace dualgemm::sm90 {

template <Options kOptions, class Output_, class Arithmetic_>
struct Traits {
  static constexpr Plan kPlan = plan_of(kOptions);
  static_assert(possible<kOptions, kPlan>());
  static constexpr const char* kVariant = "";
  // wgmma multiplies A and the weights in one type. An A in NVFP4 is expanded to fp16.
  using Math = std::conditional_t<kPlan.a_type == CType::kBf16, BrainMath, HalfMath>;
  static constexpr float kUnscale = unscale(kPlan.a_type);
  using Output = Output_;
  using Arithmetic = Arithmetic_;
  using KLoop = dualgemm::KLoop<Traits>;
  using LoadWeights = dualgemm::LoadWeights<Traits>;
  using LoadActivations =
      std::conditional_t<(kPlan.operands.a_bytes > 0), dualgemm::LoadActivations<Traits>, LoadA<Traits>>;
  // A plain instance whose sums are complete in a warpgroup needs no exchange of them.
  static constexpr bool kStaged =
      !Arithmetic::kGeneral && kPlan.tile.split_k == 1 && kPlan.consumers.k_groups == 1;
  // With split-K a CTA has one tile: when it has been multiplied, its sums may lie where the rings were.
  static constexpr bool kSumsInRings = kPlan.tile.split_k > 1;
  using Finish = std::conditional_t<kStaged, FinishStaged<Traits>, FinishExchanged<Traits>>;
};

}  // namespace dualgemm::sm90
