// mutate.h -- one small change to the shipping PTX, and the systematic list of them: every synchronisation
// instruction and every operand group of a kernel, with every operator that applies. An instruction is named
// by what it is and where it comes from ("mbarrier.try_wait @ load_role/drain/wait #2"), never by a line
// number, so names outlive edits of the kernel.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernel/instance.h"
#include "mutation/edit.h"

namespace mutation {

// Returns the functions a statement was inlined through, outermost first, without the wrapper of the
// instruction.
std::string path_of(const Statement& statement);

// Holds the places of one function by name: `opcode @ path #n`, n counting those with equal opcode and path.
class Places {
 public:
  explicit Places(const Function& function);
  const std::string& name(size_t index) const { return names_[index]; }
  // Returns the indices whose spelling begins with `opcode` and whose path contains `path`, in program order.
  std::vector<size_t> find(const std::string& opcode, const std::string& path) const;

 private:
  const Function& function_;
  std::vector<std::string> names_, paths_;
};

// A subject is what is attacked: a kernel of the library, or the pass over A that comes before it (9.0).
struct Subject {
  std::string name;  // "m128n64k256_fp16", "the pass of sm90m64n64k256s2x_fp16"
  const dualgemm::Instance* instance = nullptr;
  bool is_pass = false;

  const dualgemm::Plan& plan() const { return instance->plan; }
  bool is_sm90() const { return plan().arch == dualgemm::Arch::kSm90; }
};

struct Mutant {
  std::string id;  // "delete tcgen05.wait::ld @ epilogue_role/load_fragment #0": stable, what tables match
  Subject subject;
  std::string operation;  // "delete", "arrive without bytes", ...
  std::string group;      // instruction class of the score: "mbarrier.try_wait"
  std::string opcode;     // of the statement under attack, as written
  std::string path;       // of the statement under attack
  uint32_t ptx_line = 0;  // of the statement under attack
  std::string source;     // "sm100/mma.cuh:59 in mma_role <- ..."
  std::function<void(Function&)> edit;
  bool in_entry = false;  // it changes the kernel's entry, whatever function is under attack
};

// The sweep attacks nothing, synchronisation alone, or operands of copies, multiplications, loads and stores
// as well.
enum class Breadth { kNothing, kSynchronisation, kAll };

std::vector<Mutant> sweep(const Function& function, const Subject& subject, Breadth breadth);

}  // namespace mutation
