// zeros.cu -- the list of instances of zeros.cuh, for sm_90a.
#include "test/unit/architecture/zeros.cuh"

#include "kernel/instance.h"
#include "kernel/instance_name.h"

namespace dualgemm {

template <bool kGrouped>
static consteval Instance zeros() {
  using Traits = zeros::Zeros<kGrouped>;
  return {.name = kInstanceName<Traits, typename Traits::Output>.text,
          .kernel = &zeros::zeros_kernel<Traits>,
          .plan = Traits::kPlan,
          .epilogue = epilogue_kind<Traits, zeros::WgmmaFragment>(typename Traits::Output::Types{}),
          .smem_bytes = sizeof(zeros::SharedStorage<Traits>)};
}
constexpr Instance kZeros[] = {zeros<false>(), zeros<true>()};

extern constinit const InstanceList sm90_zeros_plain = {kZeros, 2};
extern constinit const InstanceList sm90_zeros_general = {nullptr, 0};

}  // namespace dualgemm
