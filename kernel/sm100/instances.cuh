// instances.cuh -- from options to the entries of the table of instances: every set of options of a tile
// with every output. The source of a tile is compiled twice, for each arithmetic of the epilogue once, so
// that each defines one list and is loaded by itself:
//
//   extern constinit const InstanceList LIST(sm100_m64n128) = sm100::kInstances<kDecode, kSplit>;
#pragma once

#include <type_traits>

#include "kernel/sm100/instance.cuh"

#if DUALGEMM_GENERAL
#define LIST(name) name##_general
#else
#define LIST(name) name##_plain
#endif

namespace dualgemm::sm100 {

using Arithmetic = std::conditional_t<DUALGEMM_GENERAL, General, PlainSwiglu>;

// This is the list of the traits of each options with each output, as types: options outermost.
template <class... Lists>
struct Joined;
template <class... Members>
struct Joined<List<Members...>> {
  using Type = List<Members...>;
};
template <class... First, class... Second, class... Rest>
struct Joined<List<First...>, List<Second...>, Rest...> : Joined<List<First..., Second...>, Rest...> {};

template <Options kOptions, class... Output>
auto with_outputs(List<Output...>) -> List<Traits<kOptions, Output, Arithmetic>...>;
template <Options... kOptions>
using AllTraits = typename Joined<decltype(with_outputs<kOptions>(Arithmetic::Outputs{}))...>::Type;

template <Options... kOptions>
inline constexpr InstanceList kInstances = list_of(AllTraits<kOptions...>{});

}  // namespace dualgemm::sm100
