// zeros.cu -- the list of instances of zeros.cuh, for sm_90a.
#include "test/sm90/zeros.cuh"

#include "kernel/instance.h"
#include "kernel/instance_name.h"

namespace dualgemm {
namespace {

template <bool kGrouped>
consteval Instance zeros() {
  using Traits = sm90_test::Zeros<kGrouped>;
  return {.name = kInstanceName<Traits>.text,
          .kernel = &sm90_test::zeros_kernel<Traits>,
          .plan = Traits::kPlan,
          .epilogue = epilogue_kind<Traits, sm90_test::WgmmaFragment>(),
          .smem_bytes = sizeof(sm90_test::SharedStorage<Traits>)};
}
constexpr Instance kZeros[] = {zeros<false>(), zeros<true>()};

}  // namespace

extern constinit const InstanceList sm90_zeros_plain = {kZeros, 2};
extern constinit const InstanceList sm90_zeros_general = {nullptr, 0};

}  // namespace dualgemm
