// costs.h -- what the tests of the cost model ask of every architecture.
#pragma once

#include <string>

#include "host/model/cost_model.h"
#include "shapes.h"
#include "support/catch.hpp"

namespace dualgemm_test {

inline dualgemm::Machine machine_for(dualgemm::Arch arch) {
  return arch == dualgemm::Arch::kSm90 ? kH100 : kB200;
}

inline std::string text_of(const dualgemm::Instance& instance, const dualgemm::Shape& s) {
  return std::string(instance.name) + " for " + std::to_string(s.problems) + " x " + std::to_string(s.m) +
         " x " + std::to_string(s.n) + " x " + std::to_string(s.k);
}

// Calls check(instance, shape) for every instance of an architecture and every shape of its kind.
template <class Check>
void for_all(dualgemm::Arch arch, const Check& check) {
  for (const dualgemm::Instance& instance : dualgemm::instances(arch))
    for (const dualgemm::Shape& shape : kShapes) {
      if (shape.grouped != instance.plan.tile.grouped) continue;
      INFO(text_of(instance, shape));
      check(instance, shape);
    }
}

inline double us(const dualgemm::Instance& instance, const dualgemm::Shape& shape,
                 const dualgemm::Machine& machine) {
  dualgemm::Cost cost;
  REQUIRE(cost_of(instance, shape, machine, &cost));
  return cost.total_us;
}
inline double us(const dualgemm::Instance& instance, const dualgemm::Shape& shape) {
  return us(instance, shape, machine_for(instance.plan.arch));
}

// More SMs, from `least` to `most`, are never predicted to take longer, and more work never less. Some
// steps of K cost nothing: only whole k-tiles do, and only in the slice that has the most of them.
inline void check_more_costs_more(const dualgemm::Instance& instance, const dualgemm::Shape& shape,
                                  int32_t least, int32_t most) {
  using namespace dualgemm;
  // With stream-K a k-tile more may be the first that is shared: its exchange counts as k-tiles, whose time
  // depends on how many there are.
  const double rounding = instance.plan.tile.stream_k ? 1.02 : 1 + 1e-12;
  Cost cost;
  for (int32_t sms = least; sms < most; ++sms) {
    INFO(sms << " SMs");
    if (cost_of(instance, shape, {sms}, &cost))
      CHECK(us(instance, shape, {sms + 1}) <= cost.total_us * rounding);
  }
  const auto at_most = [&](Shape less, Shape more) {
    if (cost_of(instance, more, machine_for(instance.plan.arch), &cost))
      CHECK(us(instance, less) <= cost.total_us * rounding);
  };
  Shape more = shape;
  for (more.k = 32; more.k < 2048; more.k += 16) {
    Shape less = more;
    less.k -= 16;
    at_most(less, more);
  }
  more = shape;
  more.n *= 2;
  at_most(shape, more);
  more = shape;
  more.problems *= 2;
  at_most(shape, more);
}

}  // namespace dualgemm_test
