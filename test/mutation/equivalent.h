// equivalent.h -- mutants that no run can tell from the kernel, each with the reason. An entry whose mutant
// is killed after all is an error of this table.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "mutation/mutate.h"

namespace mutation {

struct EquivalentEntry {
  bool (*holds)(const Subject&);  // whether it is about this kernel
  const char* id;                 // a pattern of the shell
  const char* reason;
  bool may_fail = false;  // some of the family hang or fault instead: such a kill is no error of the entry
};

// These are the kernels that entries are about.
inline bool any(const Subject&) { return true; }
inline bool split(const Subject& s) { return s.plan().tile.split_k > 1; }
inline bool grouped(const Subject& s) { return s.plan().tile.grouped; }
inline bool dense(const Subject& s) { return !grouped(s); }

// These reasons hold for kernels of any architecture.
inline constexpr const char* kBroadcast =
    "all lanes have this value already: the exchange tells it to the compiler alone";
inline constexpr const char* kPrefetch = "a prefetch is a hint: it orders and changes nothing";
inline constexpr const char* kInitFence =
    "the last barrier is one at which threads of its own CTA alone arrive: the CTA barrier publishes it";
inline constexpr const char* kDependents =
    "it says that the next grid may start, which the end of a CTA says, too: "
    "later, or by more lanes that have waited, lets it in no earlier";

// Returns the entries for instances of compute capability 9.0.
std::span<const EquivalentEntry> equivalent_in_sm90();

// Returns the reason; where it is empty the mutant must be killed.
std::string why_equivalent(const Mutant& mutant);
// Says whether its entry holds for every kernel.
bool equivalent_everywhere(const Mutant& mutant);
// Says whether its entry covers a family of which some members hang or fault: such a kill is no error of the
// table.
bool may_fail(const Mutant& mutant);
// Returns the entries for the compute capability of these mutants that none of them needs: their instruction
// is gone, or entries before them cover the same mutants. The whole sweep is to have none.
std::vector<std::string> idle_entries(const std::vector<Mutant>& mutants);

}  // namespace mutation
