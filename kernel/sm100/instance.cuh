// instance.cuh -- a kernel as an entry of the table of instances.
#pragma once

#include "kernel/instance.h"
#include "kernel/instance_name.h"
#include "kernel/sm100/dual_gemm.cuh"
#include "kernel/sm100/traits.cuh"

namespace dualgemm::sm100 {

template <class Traits>
consteval Instance instance_of() {
  return {.name = kInstanceName<Traits>.text,
          .kernel = &dual_gemm_kernel<Traits>,
          .plan = Traits::kPlan,
          .epilogue = epilogue_kind<Traits, Layout<Traits>>(),
          .smem_bytes = sizeof(SharedStorage<Traits>)};
}

template <class... AllTraits>
inline constexpr Instance kTable[] = {instance_of<AllTraits>()...};
template <class... Member>
consteval InstanceList list_of(List<Member...>) {
  return {kTable<Member...>, sizeof...(Member)};
}

}  // namespace dualgemm::sm100
