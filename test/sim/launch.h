// launch.h -- the interface between the CUDA runtime shim and the machine: load PTX, find a kernel, run a
// grid. Of the headers below this one, shim/ includes only the observer, the policy and tensor maps.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/decode/kernel_info.h"
#include "sim/exec/launch_config.h"
#include "sim/exec/occupancy.h"
#include "sim/fault.h"
#include "sim/machine.h"
#include "sim/mem/global.h"

namespace sim {

namespace ptx {
struct Module;  // parse/module.h
}
// A ModuleEditor changes a parsed module before it is decoded; tests plant faults with it.
using ModuleEditor = std::function<void(ptx::Module&)>;

class Program;  // decode/program.h: decoded instructions

class Module {
 public:
  // Parses and decodes everything. A Fault names PTX line, text and source line. If a kernel uses something
  // that the simulator lacks, only a launch of it throws the Fault. Variables are initialised, in the
  // device's part of `memory`.
  static std::unique_ptr<Module> load(const std::string& ptx, GlobalMemory& memory,
                                      const ModuleEditor& edit = {}, int device = 0);
  ~Module();
  // Gives the memory of the variables back. Code and names stay, because a judge may still refer to them.
  void release_variables();
  const KernelInfo* find_kernel(const std::string& name) const;
  const GlobalVariable* find_global(const std::string& name) const;
  const std::vector<KernelInfo>& kernels() const;
  const Program& program() const { return *program_; }

 private:
  Module();
  std::unique_ptr<Program> program_;
};

class Observer;  // exec/observer.h: sees every access and synchronisation event, changes nothing
class Policy;    // exec/policy.h: decides who moves next and when asynchronous work lands

struct LaunchOptions {
  Policy* policy = nullptr;      // null: the default order, deterministic
  Observer* observer = nullptr;  // null: nobody watches
  Machine machine = kB200;
  // When true, a fault of one instruction or operation is told to the observer, which has to be there, and
  // the grid goes on: a missing value counts as zero, and an instruction that cannot be executed is left out.
  bool go_on = false;
  // When false, shared windows start at multiples of 1024 in every schedule, as on the hardware.
  bool align_as_declared = true;
  bool elect_lowest = false;  // elect.sync elects the lowest lane, whatever the policy says
  uint64_t patience = kDefaultPatience;
  std::FILE *out = stdout, *err = stderr;  // of printf and of failed assertions in device code
};

// A launch that the machine accepts, with its parameters.
class Launch {
 public:
  // args[i] points at the value of parameter i. Throws Fault kLaunch, also when the module was compiled for a
  // target that the machine does not run, and kUnsupported for a kernel with something the simulator lacks.
  Launch(const Module& module, const std::string& kernel, const LaunchConfig& config, void* const* args,
         GlobalMemory& memory, const Machine& machine);
  ~Launch();
  uint64_t work = 0;  // HostWork::id, 0 without the runtime: another one for each of those that run together
  Reach reach;
  std::vector<const Launch*> after;  // have to end before it starts
  std::vector<const Launch*>
      preceding;      // have to let it start, and to end before griddepcontrol.wait returns
  LaunchStats stats;  // when it has run

 private:
  friend void run(const std::vector<Launch*>&, GlobalMemory&, const LaunchOptions&);
  struct Accepted;
  std::unique_ptr<const Accepted> accepted_;
};

// Runs grids together, to their completion. They stand in the order of their launches, and every launch that
// one of them comes after is among them. Throws Fault with the site in its text.
void run(const std::vector<Launch*>& launches, GlobalMemory& memory, const LaunchOptions& options = {});

// Runs one grid.
LaunchStats launch(const Module& module, const std::string& kernel, const LaunchConfig& config,
                   void* const* args, GlobalMemory& memory, const LaunchOptions& options = {});

}  // namespace sim
