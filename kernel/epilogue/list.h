// list.h -- a list of types, such as the outputs of an arithmetic (epilogue.cuh), and an empty type for what
// is not there.
#pragma once

namespace dualgemm {

template <class... Members>
struct List {};

struct Nothing {};

}  // namespace dualgemm
