// modelled.cpp -- see modelled.h.
#include "modelled.h"

#include <algorithm>
#include <stdexcept>

#include "budget.h"
#include "host/launch/choice.h"
#include "host/launch/validate.h"

namespace bench {

Modelled modelled(const dualgemm::Instance& instance, const dualgemm::Shape& shape,
                  const dualgemm::Machine& machine) {
  const dualgemm::Arch arch = instance.plan.arch;
  const dualgemm::CostConstants& usual = dualgemm::cost_constants(arch, machine.memory_gb_s);
  const auto cost_with = [&](const dualgemm::CostConstants& constants) {
    dualgemm::Cost cost;
    if (!cost_of(instance, shape, machine, &cost, constants))
      throw std::runtime_error(std::string(instance.name) + " cannot take this shape");
    return cost;
  };
  Modelled out{cost_with(usual), 0, 0};
  out.low_us = out.high_us = out.us();
  for (const dualgemm::CostRange& range : dualgemm::cost_table(arch).ranges)
    for (const double value : {range.low, range.high}) {
      dualgemm::CostConstants constants = usual;
      constants.*range.constant = value;
      const double us = cost_with(constants).total_us;
      out.low_us = std::min(out.low_us, us);
      out.high_us = std::max(out.high_us, us);
    }
  return out;
}

Modelled modelled(const dualgemm::Instance& instance, const Shape& shape, const Epilogue& epilogue,
                  const dualgemm_device_t& device) {
  const dualgemm_args_t args = described_args(shape, epilogue);
  dualgemm::Problem problem;
  check(dualgemm::validate(&args, &problem), "validate");
  return modelled(instance, dualgemm::shape_of(problem), dualgemm::machine_of(args, device));
}

}  // namespace bench
