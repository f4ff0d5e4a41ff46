// fault_of.hpp -- the fault an action ends in.
#pragma once

#include <stdexcept>
#include <string>

#include "sim/fault.h"

namespace sim_test {

template <class Action>
sim::Fault fault_of(Action&& action) {
  try {
    action();
  } catch (const sim::Fault& fault) {
    return fault;
  }
  throw std::logic_error("the action ended without a fault");
}

inline bool says(const sim::Fault& fault, const std::string& text) {
  return std::string(fault.what()).find(text) != std::string::npos;
}

}  // namespace sim_test
