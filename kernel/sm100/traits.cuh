// traits.cuh -- the template parameter of the kernel and of its roles: the plan, the epilogue, and the parts
// of the pipeline. A kernel that does one thing differently (bench/ablation) has traits of its own with
// another part.
#pragma once

#include "kernel/common/k_loop.cuh"
#include "kernel/common/load.cuh"
#include "kernel/sm100/mma.cuh"
#include "kernel/sm100/plan.h"

namespace dualgemm::sm100 {

// These are the parts of the pipeline as they ship. Self names the traits that inherit them.
template <class Self>
struct Parts {
  using KLoop = dualgemm::KLoop<Self>;
  using LoadWeights = dualgemm::LoadWeights<Self>;
  using LoadActivations = dualgemm::LoadActivations<Self>;
  using ScaleCopies = CopyPerStep;
  using Multiply = AllProducts<Self>;
  static constexpr const char* kVariant = "";  // the end of the kernel's name, where a part is replaced
};

template <Options kOptions, class Output_, class Arithmetic_>
struct Traits : Parts<Traits<kOptions, Output_, Arithmetic_>> {
  static constexpr Plan kPlan = plan_of(kOptions);
  static_assert(possible<kOptions, kPlan>());
  using Output = Output_;
  using Arithmetic = Arithmetic_;
};

}  // namespace dualgemm::sm100
