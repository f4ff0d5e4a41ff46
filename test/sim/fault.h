// fault.h -- the exception that says that a program did something wrong, or something that the simulator does
// not know.
#pragma once

#include <stdexcept>
#include <string>

namespace sim {

enum class FaultKind {
  kSyntax,       // PTX text that does not parse, or uses what its .target does not have
  kUnsupported,  // an instruction, qualifier or mode outside the table
  kPoison,       // use of poison, a value that nobody wrote
  kBounds,       // an access outside an allocation, window or limit
  kMisaligned,   // an address that breaks the alignment rule of the access
  kAlignment,    // an address that is aligned only by the placement of shared memory, not as declared
  kProtocol,     // a rule of an instruction broken: mbarrier, TMEM allocation, descriptors, aligned execution
  kDeadlock,     // nobody can move and somebody has not exited
  kGivenUp,      // nothing changed for so long that the machine does not wait for the end
  kTrap,         // the program executed trap
  kAssert,       // an assertion of the program failed
  kLaunch,       // launch configuration the machine cannot run
};

const char* name(FaultKind kind);

// The code below exec/ throws a Fault without saying where it happened; exec/ catches it, adds the kernel,
// CTA, warp, lanes, PTX line and source line, and throws it on.
class Fault : public std::runtime_error {
 public:
  Fault(FaultKind kind, const std::string& text) : std::runtime_error(text), kind_(kind) {}
  FaultKind kind() const { return kind_; }

 private:
  FaultKind kind_;
};

[[noreturn]] inline void protocol_fault(const std::string& text) { throw Fault(FaultKind::kProtocol, text); }

}  // namespace sim
