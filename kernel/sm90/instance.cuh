// instance.cuh -- a kernel that writes C in the types of Output, as an entry of the table of instances.
#pragma once

#include "kernel/instance.h"
#include "kernel/instance_name.h"
#include "kernel/sm90/dual_gemm.cuh"

namespace dualgemm::sm90 {

template <class Traits, class Output = typename Traits::Output>
struct Entry {
  static constexpr Instance kInstance = {
      .name = kInstanceName<Traits, Output>.text,
      .kernel = &dual_gemm_kernel<Traits>,
      .plan = Traits::kPlan,
      .epilogue = epilogue_kind<Traits, AlongRow>(typename Output::Types{}),
      .smem_bytes = sizeof(SharedStorage<Traits>)};
};

}  // namespace dualgemm::sm90
