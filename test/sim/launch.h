// launch.h -- the door between the CUDA runtime shim and the machine: load PTX, find a kernel, run a grid.
// shim/ knows nothing below this header.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/fault.h"
#include "sim/machine.h"
#include "sim/mem/global.h"

namespace sim {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
};

struct ParamInfo {
  std::string name;
  size_t size, align, offset;
};
struct KernelInfo {
  std::string name;
  std::vector<ParamInfo> params;
  size_t param_bytes = 0;
  size_t static_smem = 0;
  std::array<uint32_t, 3> max_ntid{};     // .maxntid, zeros when absent
  std::array<uint32_t, 3> req_ntid{};     // .reqntid
  std::array<uint32_t, 3> req_cluster{};  // .reqnctapercluster, zeros when absent
  bool explicit_cluster = false;          // .explicitcluster
};
struct GlobalVariable {
  std::string name;
  uint64_t address;
  size_t size;
};

namespace ptx {
struct Module;  // parse/module.h
}
// Changes a parsed module before it is decoded: tests plant faults with it.
using ModuleEditor = std::function<void(ptx::Module&)>;

class Program;  // decoded instructions; exec/ owns it

class Module {
 public:
  // Parses and decodes everything; Fault kSyntax or kUnsupported names PTX line, text and source line. Global
  // variables are allocated in `memory` and initialised.
  static std::unique_ptr<Module> load(const std::string& ptx, GlobalMemory& memory,
                                      const ModuleEditor& edit = {});
  ~Module();
  const KernelInfo* find_kernel(const std::string& name) const;
  const GlobalVariable* find_global(const std::string& name) const;
  const std::vector<KernelInfo>& kernels() const;
  const Program& program() const { return *program_; }

 private:
  Module();
  std::unique_ptr<Program> program_;
};

struct LaunchConfig {
  Dim3 grid, block, cluster;
  size_t dynamic_smem = 0;
};

class Observer;  // exec/observer.h: sees every access and synchronisation event, changes nothing
class Policy;    // exec/policy.h: decides who moves next and when asynchronous work lands

struct LaunchOptions {
  Policy* policy = nullptr;      // null: the default order, deterministic
  Observer* observer = nullptr;  // null: nobody watches
  uint64_t work = 0;             // HostWork::id of this launch, 0 without the runtime
  Machine machine = kB200;
};

struct LaunchStats {
  uint64_t warp_instructions = 0, async_operations = 0;
};

// Runs the grid to completion. args[i] points at the value of parameter i. Throws Fault, with the site in its
// text; kLaunch also when the module was compiled for what the machine does not run.
LaunchStats launch(const Module& module, const std::string& kernel, const LaunchConfig& config,
                   void* const* args, GlobalMemory& memory, const LaunchOptions& options = {});

// Resident CTAs per SM and clusters on the machine for a launch, by registers (64 a thread assumed when
// unknown), shared memory and threads: the occupancy calls of the runtime.
int max_active_blocks_per_sm(const Machine& machine, const KernelInfo& kernel, int threads,
                             size_t dynamic_smem);
int max_active_clusters(const Machine& machine, const KernelInfo& kernel, const LaunchConfig& config);

}  // namespace sim
