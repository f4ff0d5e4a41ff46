// instance_list.cuh -- what the sources of all architectures make their lists of instances with: every set of
// options of a tile with every output. The source of a tile is compiled twice, for each arithmetic of the
// epilogue once, so that each defines one list and is loaded by itself:
//
//   extern constinit const InstanceList LIST(sm100_m64n128) = sm100::kInstances<kDecode, kSplit>;
#pragma once

#include <type_traits>

#include "kernel/epilogue/epilogue.cuh"
#include "kernel/epilogue/list.h"
#include "kernel/instance.h"

#if DUALGEMM_GENERAL
#define LIST(name) name##_general
#else
#define LIST(name) name##_plain
#endif

namespace dualgemm {

using InstanceArithmetic = std::conditional_t<DUALGEMM_GENERAL, General, PlainSwiglu>;

// This joins lists of types in their order.
template <class... Lists>
struct Joined;
template <class... Members>
struct Joined<List<Members...>> {
  using Type = List<Members...>;
};
template <class... First, class... Second, class... Rest>
struct Joined<List<First...>, List<Second...>, Rest...> : Joined<List<First..., Second...>, Rest...> {};

}  // namespace dualgemm
