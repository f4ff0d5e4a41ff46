// modelled.h -- the time that the cost model expects of a launch, and how far that may be off.
#pragma once

#include "dualgemm.h"
#include "host/model/cost_model.h"
#include "shapes.h"

namespace bench {

struct Modelled {
  dualgemm::Cost cost;
  // The lowest and the highest time with one constant at either end of what its sources allow.
  double low_us, high_us;

  double us() const { return cost.total_us; }
};

// Throws std::runtime_error for an instance that cannot take the shape on this machine.
Modelled modelled(const dualgemm::Instance& instance, const dualgemm::Shape& shape,
                  const dualgemm::Machine& machine);

// The same for a problem of the benchmark, as the library's choice looks at it: of groups at their mean.
Modelled modelled(const dualgemm::Instance& instance, const Shape& shape, const Epilogue& epilogue,
                  const dualgemm_device_t& device);

}  // namespace bench
