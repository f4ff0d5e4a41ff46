// instance_list.cuh -- helpers with which a source lists its instances: every set of options with every
// output. Each source is compiled twice, once for each arithmetic of the epilogue. CUDA loads the kernels of
// one compilation without those of another. Each defines one list:
//
//   extern constinit const InstanceList LIST(name) = kInstances<kDecode, kSplit, kGrouped>;
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

inline constexpr bool kGeneralInstances = DUALGEMM_GENERAL;
template <int32_t kProducts>
using InstanceArithmetic = std::conditional_t<kGeneralInstances, General,
                                              std::conditional_t<kProducts == 1, PlainLinear, PlainSwiglu>>;

}  // namespace dualgemm
