// instance.cuh -- a kernel as an entry of the table of instances.
#pragma once

#include "kernel/instance.h"
#include "kernel/instance_name.h"
#include "kernel/sm100/dual_gemm.cuh"
#include "kernel/sm100/traits.cuh"

namespace dualgemm::sm100 {

template <class Traits>
struct Entry {
  static constexpr Instance kInstance = {.name = kInstanceName<Traits>.text,
                                         .kernel = &dual_gemm_kernel<Traits>,
                                         .plan = Traits::kPlan,
                                         .epilogue = epilogue_kind<Traits, Layout<Traits>>(),
                                         .smem_bytes = sizeof(SharedStorage<Traits>)};
};

}  // namespace dualgemm::sm100
