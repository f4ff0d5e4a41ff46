// list.h -- a list of types, such as the outputs of an arithmetic (epilogue.cuh), and an empty type for a
// member that an instance does not have.
#pragma once

namespace dualgemm {

template <class... Members>
struct List {};

struct Nothing {};

}  // namespace dualgemm
