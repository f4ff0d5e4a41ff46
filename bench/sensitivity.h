// sensitivity.h -- what the choice of an instance would cost if a constant
// of the cost model had another value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "host/model/cost_model.h"
#include "host/model/select_instance.h"

namespace bench {

// Calls look_at for shapes of models in use, decoding to prefill, dense and in groups.
template <class LookAt>
void for_each_shape(const LookAt& look_at) {
  for (const int32_t k : {2048, 2880, 4096, 5120, 7168, 8192})
    for (const int32_t n : {192, 768, 1536, 2048, 2880, 3584, 4096, 7168, 14336, 28672}) {
      for (const int32_t m : {1, 16, 64, 128, 192, 256, 384, 512, 513, 1024, 2000, 8192})
        look_at(dualgemm::Shape{m, n, k});
      for (const int32_t groups : {8, 128})
        for (const int32_t m : {4, 64, 128, 248}) look_at(dualgemm::Shape{m, n, k, groups, true});
    }
}

struct Regret {
  int32_t shapes, close;  // looked at; with a choice within 2 % of the fastest instance
  double worst;           // the largest excess, as a part of the time of the fastest
};

// The choices in these comparisons are made for fp16 on a B200.
inline constexpr dualgemm::InstanceKind kCompared{dualgemm::Arch::kSm100, dualgemm::CType::kFp16};

// Chooses as the library does, and times the choice and its alternatives with `constants`.
inline Regret regret_of(const dualgemm::Machine& machine, const dualgemm::CostConstants& constants) {
  using namespace dualgemm;
  Regret regret{};
  for_each_shape([&](const dualgemm::Shape& shape) {
    const int32_t index = select_instance(kCompared, shape, machine);
    if (index < 0) return;
    double chosen = 0, fastest = std::numeric_limits<double>::infinity();
    for (int32_t i = 0; i < instance_count(); ++i) {
      Cost cost;
      if (!is_kind(instance(i), kCompared)) continue;
      if (!cost_of(instance(i), shape, machine, &cost, constants)) continue;
      fastest = std::min(fastest, cost.total_us);
      if (i == index) chosen = cost.total_us;
    }
    const double excess = chosen / fastest - 1;
    ++regret.shapes;
    regret.close += excess <= 0.02 + 1e-12;
    regret.worst = std::max(regret.worst, excess);
  });
  return regret;
}

}  // namespace bench
