// instance_name.h -- the name of an instance, composed of its plan and its epilogue: "m128n64k256s2_fp16".
// kernel/README.md, "Instances", says what each part means. Kernels of bench/ablation have one more part
// before the output, which says in what they differ.
#pragma once

#include <cstdint>

#include "kernel/epilogue/kinds.h"
#include "kernel/plan.h"

namespace dualgemm {

struct InstanceName {
  char text[64] = {};
  int32_t length = 0;

  constexpr InstanceName& add(const char* more) {
    while (*more) text[length++] = *more++;
    return *this;
  }
  constexpr InstanceName& add(int32_t number) {
    if (number >= 10) add(number / 10);
    text[length++] = static_cast<char>('0' + number % 10);
    return *this;
  }
};

constexpr InstanceName name_of_plan(const Plan& plan) {
  InstanceName name;
  name.add(limits_of(plan.arch).name_prefix);
  name.add("m").add(plan.tile.m).add("n").add(plan.tile.n).add("k").add(plan.tile.k);
  if (plan.tile.split_k > 1) name.add("s").add(plan.tile.split_k);
  if (plan.tile.stream_k) name.add("sk");
  if (plan.tmem.overlapped()) name.add("o");
  if (plan.prepared_a()) name.add("x");
  if (plan.tile.grouped) name.add("g");
  if (plan.mma.accumulators == 1) name.add("_one");
  if (plan.mxfp4_b()) name.add("_mxfp4_afp8");
  else if (!plan.packed_a()) name.add(plan.a_type == CType::kBf16 ? "_abf16" : "_afp16");
  return name;
}

// Output is what the instance writes: one type, or AnyOutput.
template <class Traits, class Output>
consteval InstanceName instance_name() {
  InstanceName name = name_of_plan(Traits::kPlan);
  if (*Traits::kVariant) name.add("_").add(Traits::kVariant);
  return name.add("_").add(Output::kName);
}
template <class Traits, class Output>
inline constexpr InstanceName kInstanceName = instance_name<Traits, Output>();

}  // namespace dualgemm
