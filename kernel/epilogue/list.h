// list.h -- a list of types: which activations and outputs the library builds.
#pragma once

namespace dualgemm {

template <class... Members>
struct List {};

}  // namespace dualgemm
