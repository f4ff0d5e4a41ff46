// finding.h -- what a checker says: a rule that was broken, where, by what, and what would have prevented
// that. Every rule stands once, in rules.cpp, with its class, its evidence and the section it follows.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/exec/observer.h"

namespace sim {

// kError (class E) breaks a rule that hardware is known to enforce, or produced a wrong value or a hang here.
// kStrict (S) breaks the letter of the ISA, but kernels that run on a B200 do it. kAdvice (A) is advice.
// kUnknown (U) says that the simulator does not know, and that nothing is proven.
enum class Severity : uint8_t { kError, kStrict, kAdvice, kUnknown };

// What a rule rests on: seen on an H200, needed or contradicted by kernels that run on a B200, the ISA's
// text, or only our reading of it.
enum class Evidence : uint8_t { kSeenOnH200, kProvenKernel, kDoc, kAssumed };

// The source of a rule that only this tool has.
constexpr const char* kNoSection = "tool: no rule of the ISA, but seldom meant";

struct Rule {
  const char* id;  // "race-async", stable: tests, allow-lists and JSON name it
  Severity severity;
  Evidence evidence;
  // Where the rule stands: "PTX ISA 8.6 Proxies", by its number in PTX ISA 9.0, or "CUDA C++ Programming
  // Guide, Distributed shared memory". Where neither has such a rule, the text begins with "tool: ". Several
  // places are separated by "; ".
  const char* section;
  const char* says;  // the rule in one sentence
};

// A site is a place in the program: who, and which instruction. The report turns it into text.
struct Site {
  Thread thread;
  uint32_t mask = 0;      // lanes, 0: only thread.lane
  uint64_t async_id = 0;  // an asynchronous operation issued there
  const Inst* inst = nullptr;
};

struct Finding {
  const Rule* rule = nullptr;
  std::string summary;  // one line: "TMA load overwrites ... while tcgen05.mma may still read it"
  Site later;           // where it was noticed
  bool has_earlier = false;
  Site earlier;  // the other party
  std::vector<std::pair<std::string, Site>>
      others;  // further ones of the same kind: what they did, and where
  bool has_region = false;
  Region region;  // the bytes in question
  bool has_mbarrier = false;
  MbarrierRef mbarrier;              // the barrier in question
  std::vector<MbarrierRef> signals;  // those that tell of the end of the earlier operation
  std::string missing;               // what would have ordered or prevented it
  std::vector<std::string> notes;    // further facts, one line each
  bool every_schedule = true;        // follows from the order of synchronisation, not from this run's timing
};

// Checkers hand their findings to a sink: the judge, or a test.
using FindingSink = std::function<void(Finding)>;

extern const std::vector<Rule> kAllRules;
const Rule& rule(const char* id);  // std::logic_error: no such rule

// A remark of the machine, about something that it lets pass, is a finding, too.
Finding finding_of(const Remark& remark);

}  // namespace sim
