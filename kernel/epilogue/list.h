// list.h -- a list of types: which activations and outputs the library builds; and the type of what is not
// there.
#pragma once

namespace dualgemm {

template <class... Members>
struct List {};

struct Nothing {};

}  // namespace dualgemm
