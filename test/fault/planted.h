// planted.h -- the list of 48 bugs that kernels of this kind are known to have had, planted in the shipping
// PTX by hand where this kernel has the mechanism. Bugs of mechanisms it does not have (TMA stores, clusters,
// grid dependencies) are named with the reason; small kernels of test/defects/ cover those.
#pragma once

#include <string>
#include <vector>

#include "fault/diagnosis.h"
#include "fault/mutate.h"

namespace fault {

struct Planted {
  int number = 0;      // in the list; several variants may share one
  std::string bug;     // what was planted
  std::string absent;  // why it does not apply to this kernel; then there is no mutant
  Mutant mutant;
  Expectation expected;
};

// For an instance with two mma per step and two accumulator pairs.
std::vector<Planted> planted_bugs(const Function& kernel, const std::string& instance);

// Changes that a correct kernel survives: the simulator must find nothing.
std::vector<Mutant> controls(const Function& kernel, const std::string& instance);

}  // namespace fault
