// instances.cuh -- from options to the entries of the table of instances: every set of options of a tile with
// every epilogue of the library. A translation unit defines one list:
//
//   constinit const InstanceList sm100_m64n128 = sm100::kInstances<kDecode, kSplit>;
#pragma once

#include <array>

#include "kernel/instance.h"
#include "kernel/instance_name.h"
#include "kernel/sm100/dual_gemm.cuh"
#include "kernel/sm100/traits.cuh"

namespace dualgemm::sm100 {

template <class Traits>
consteval Instance instance_of() {
  return {.name = kInstanceName<Traits>.text,
          .kernel = &dual_gemm_kernel<Traits>,
          .plan = Traits::kPlan,
          .epilogue = epilogue_kind<Traits, Layout<Traits>>(),
          .smem_bytes = sizeof(SharedStorage<Traits>)};
}

template <class... AllTraits>
inline constexpr Instance kTable[] = {instance_of<AllTraits>()...};

// This is the list of the traits of each options with each epilogue, as types: options outermost, outputs
// innermost.
template <class... Lists>
struct Joined;
template <class... Members>
struct Joined<List<Members...>> {
  using Type = List<Members...>;
};
template <class... First, class... Second, class... Rest>
struct Joined<List<First...>, List<Second...>, Rest...> : Joined<List<First..., Second...>, Rest...> {};

template <Options kOptions, class Activation, class... Output>
auto with_outputs(List<Output...>) -> List<Traits<kOptions, Output, Activation>...>;
template <Options kOptions, class... Activation>
auto with_epilogues(List<Activation...>) ->
    typename Joined<decltype(with_outputs<kOptions, Activation>(Outputs{}))...>::Type;
template <Options... kOptions>
using AllTraits =
    typename Joined<decltype(with_epilogues<kOptions>(Activations<ApproximateMath>{}))...>::Type;

template <class... Member>
consteval InstanceList list_of(List<Member...>) {
  return {kTable<Member...>, sizeof...(Member)};
}
template <Options... kOptions>
inline constexpr InstanceList kInstances = list_of(AllTraits<kOptions...>{});

}  // namespace dualgemm::sm100
