// fault.cpp -- the words a report uses for each kind of fault.
#include "sim/fault.h"

namespace sim {

const char* name(FaultKind kind) {
  switch (kind) {
    case FaultKind::kSyntax: return "syntax error";
    case FaultKind::kUnsupported: return "unsupported";
    case FaultKind::kPoison: return "use of an unwritten value";
    case FaultKind::kBounds: return "out of bounds";
    case FaultKind::kMisaligned: return "misaligned access";
    case FaultKind::kAlignment: return "alignment not declared";
    case FaultKind::kProtocol: return "protocol violation";
    case FaultKind::kDeadlock: return "deadlock";
    case FaultKind::kGivenUp: return "given up";
    case FaultKind::kTrap: return "trap";
    case FaultKind::kAssert: return "failed assertion";
    case FaultKind::kLaunch: return "launch failure";
  }
  return "fault";
}

}  // namespace sim
