// traits.cuh -- the template parameter of the kernel and of its roles: the plan, the epilogue, and the parts
// of the pipeline. A kernel that does one thing differently (bench/ablation) has traits of its own with
// another part.
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

// These are the parts of the pipeline as they ship. Self names the traits that inherit them.
template <class Self, Options kOptions, class Output_, class Arithmetic_,
          Products kProducts = products_of(kOptions)>
struct Parts {
  static constexpr Plan kPlan = plan_of(kOptions, kProducts);
  static_assert(possible<kOptions, kPlan>());
  static constexpr const char* kVariant = "";  // the end of the kernel's name, where a part is replaced
  // wgmma multiplies A and the weights in one type. An A in NVFP4 is expanded to fp16.
  using Math = std::conditional_t<kPlan.a_type == CType::kFp8, Fp8Math,
                                  std::conditional_t<kPlan.a_type == CType::kBf16, BrainMath, HalfMath>>;
  static constexpr float kUnscale = unscale(kPlan.a_type);
  using Output = Output_;
  using Arithmetic = Arithmetic_;
  using KLoop = dualgemm::KLoop<Self>;
  using LoadWeights = dualgemm::LoadWeights<Self>;
  using LoadActivations =
      std::conditional_t<(kPlan.operands.a_bytes > 0), dualgemm::LoadActivations<Self>, LoadA<Self>>;
  // Lanes of a plain instance exchange results (staged.cuh), lanes of a general instance exchange sums
  // (exchange.cuh).
  static constexpr bool kStaged = !Arithmetic::kGeneral;
  using Finish = std::conditional_t<kStaged, FinishStaged<Self>, FinishExchanged<Self>>;
};

template <Options kOptions, class Output, class Arithmetic>
struct Traits : Parts<Traits<kOptions, Output, Arithmetic>, kOptions, Output, Arithmetic> {};

}  // namespace dualgemm::sm90
