// equivalent.h -- mutants that no run can tell from the kernel, each with the reason. An entry whose mutant
// is killed after all is an error of this table.
#pragma once

#include <string>
#include <vector>

#include "mutation/mutate.h"

namespace mutation {

// Empty: the mutant must be killed.
std::string why_equivalent(const Mutant& mutant);
// Its entry holds for every instance.
bool equivalent_everywhere(const Mutant& mutant);
// Its entry covers a family of which some members hang or fault: such a kill is no error of the table.
bool may_fail(const Mutant& mutant);
// The entries that none of these mutants needs: their instruction is gone, or entries before them cover the
// same mutants. Of the whole sweep there are to be none.
std::vector<std::string> idle_entries(const std::vector<Mutant>& mutants);

}  // namespace mutation
