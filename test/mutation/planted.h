// planted.h -- the bugs of support/known_bugs.h that kernels of this kind and this family can have, planted
// in the shipping PTX by hand where a kernel of the family has the mechanism: most in one of a CTA per tile,
// those of clusters in pairs and in split-K kernels. Bugs of mechanisms none has (TMA stores) are named with
// the reason; small kernels of test/sim/defects/ cover those.
#pragma once

#include <string>
#include <vector>

#include "mutation/diagnosis.h"
#include "mutation/mutate.h"

namespace mutation {

struct Planted {
  int number = 0;      // in known_bugs.h; several variants may share one
  std::string bug;     // what was planted
  std::string absent;  // why it does not apply to this kernel; then there is no mutant
  Mutant mutant;
  Expectation expected;
};

// Returns the bugs to plant in this kernel. The list is planted in instances of one CTA per tile with two
// accumulator pairs, of one product two accumulators, and in pairs.
std::vector<Planted> planted_bugs(const Bench& bench);

// Returns changes that a correct kernel survives: the simulator must find nothing.
std::vector<Mutant> controls(const Function& kernel, const Subject& subject);

}  // namespace mutation
