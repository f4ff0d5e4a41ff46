// list.h -- lists of types, such as the types of C that an output can write (output.cuh), a way to join them,
// and an empty type for a member that an instance does not have.
#pragma once

namespace dualgemm {

template <class... Members>
struct List {};

// Joins lists of types in their order.
template <class... Lists>
struct Joined;
template <class... Members>
struct Joined<List<Members...>> {
  using Type = List<Members...>;
};
template <class... First, class... Second, class... Rest>
struct Joined<List<First...>, List<Second...>, Rest...> : Joined<List<First..., Second...>, Rest...> {};

struct Nothing {};

}  // namespace dualgemm
