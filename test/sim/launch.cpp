// launch.cpp -- the limits of a launch: everything between a loaded module and running grids.
#include "sim/launch.h"

#include <malloc.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "sim/exec/grid.h"
#include "sim/text.h"

namespace sim {
namespace {

constexpr size_t kParamAlign = 128;  // tensor maps are read in place
constexpr uint32_t kMaxCluster = 16;

[[noreturn]] void refuse(const KernelInfo& kernel, const std::string& why) {
  throw Fault(FaultKind::kLaunch, "launch of " + short_name(readable(kernel.name)) + ": " + why);
}

std::string text(uint32_t x, uint32_t y, uint32_t z) {
  return "(" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + ")";
}

bool given(const std::array<uint32_t, 3>& dims) { return dims[0] != 0; }

// Returns the launch as it will run, or refuses it: a kernel that was compiled for a cluster shape runs with
// that shape.
LaunchConfig check(const Machine& machine, const KernelInfo& kernel, LaunchConfig config) {
  Dim3 &g = config.grid, &b = config.block, &c = config.cluster;
  if (given(kernel.req_cluster)) {
    const auto& r = kernel.req_cluster;
    if (c.x == 1 && c.y == 1 && c.z == 1) c = {r[0], r[1], r[2]};
    if (c.x != r[0] || c.y != r[1] || c.z != r[2])
      refuse(kernel, "cluster " + text(c.x, c.y, c.z) + ", compiled for " + text(r[0], r[1], r[2]));
  } else if (kernel.explicit_cluster && c.x * c.y * c.z == 0) {
    refuse(kernel, "the kernel needs a cluster dimension");
  }
  if (uint64_t(g.x) * g.y * g.z == 0 || uint64_t(b.x) * b.y * b.z == 0 || uint64_t(c.x) * c.y * c.z == 0)
    refuse(kernel, "an empty grid, block or cluster");
  const uint64_t threads = uint64_t(b.x) * b.y * b.z;
  if (threads > kMaxThreads) refuse(kernel, std::to_string(threads) + " threads in a block");
  if (given(kernel.req_ntid) && (b.x != kernel.req_ntid[0] || b.y != std::max(1u, kernel.req_ntid[1]) ||
                                 b.z != std::max(1u, kernel.req_ntid[2])))
    refuse(kernel, "block " + text(b.x, b.y, b.z) + ", compiled for exactly " +
                       text(kernel.req_ntid[0], kernel.req_ntid[1], kernel.req_ntid[2]));
  if (given(kernel.max_ntid)) {
    const uint64_t most =
        uint64_t(kernel.max_ntid[0]) * std::max(1u, kernel.max_ntid[1]) * std::max(1u, kernel.max_ntid[2]);
    if (threads > most)
      refuse(kernel,
             std::to_string(threads) + " threads in a block, compiled for at most " + std::to_string(most));
  }
  if (uint64_t(c.x) * c.y * c.z > kMaxCluster)
    refuse(kernel, "cluster " + text(c.x, c.y, c.z) + " has more than 16 CTAs");
  if (g.x % c.x != 0 || g.y % c.y != 0 || g.z % c.z != 0)
    refuse(kernel,
           "grid " + text(g.x, g.y, g.z) + " is not a multiple of the cluster " + text(c.x, c.y, c.z));
  if (kernel.static_smem + config.dynamic_smem > size_t(machine.smem_per_block_optin))
    refuse(kernel, std::to_string(kernel.static_smem) + " static and " + std::to_string(config.dynamic_smem) +
                       " dynamic bytes of shared memory; the limit is " +
                       std::to_string(machine.smem_per_block_optin));
  return config;
}

// The memory of a CTA is megabytes that live for milliseconds. If malloc returned them to the system with
// each CTA, every page of the next one would be mapped and cleared anew, which takes a third of the time.
// 32 MB is the largest threshold of mmap that every glibc takes; 1 GB is more than a cluster needs.
void keep_freed_memory() {
  static const bool kept = mallopt(M_MMAP_THRESHOLD, 1 << 25) != 0 && mallopt(M_TRIM_THRESHOLD, 1 << 30) != 0;
  (void)kept;  // if this fails, runs are only slower
}

// Hardware places the window at a multiple of 1024, but promises no more than the module asks for.
uint32_t shared_shift(Policy& policy, const Kernel& kernel, bool as_declared) {
  const uint32_t align = as_declared ? kernel.shared_align : 1024;
  const uint32_t shift = policy.shared_shift(align);
  if (shift % align != 0 || shift > Policy::kMaxSharedShift)
    throw Fault(FaultKind::kLaunch, "the policy shifts shared windows by " + std::to_string(shift) +
                                        " bytes: not a multiple of " + std::to_string(align) + " up to " +
                                        std::to_string(Policy::kMaxSharedShift));
  return shift;
}

}  // namespace

struct Launch::Accepted {
  // Holds the parameters of a launch and registers them as device memory while the grid runs.
  class Parameters {
   public:
    Parameters(const KernelInfo& kernel, void* const* args, GlobalMemory& memory)
        : memory_(memory), bytes_(kernel.param_bytes + kParamAlign, 0) {
      void* start = bytes_.data();
      size_t space = bytes_.size();
      base_ = static_cast<uint8_t*>(
          std::align(kParamAlign, std::max<size_t>(1, kernel.param_bytes), start, space));
      for (size_t i = 0; i < kernel.params.size(); ++i)
        std::memcpy(base_ + kernel.params[i].offset, args[i], kernel.params[i].size);
      memory_.adopt(base_, std::max<size_t>(1, kernel.param_bytes),
                    "parameters of " + short_name(readable(kernel.name)));
    }
    Parameters(const Parameters&) = delete;
    Parameters& operator=(const Parameters&) = delete;
    ~Parameters() { memory_.release(base_); }
    uint64_t base() const { return reinterpret_cast<uint64_t>(base_); }

   private:
    GlobalMemory& memory_;
    std::vector<uint8_t> bytes_;
    uint8_t* base_;
  };

  const Kernel& kernel;
  LaunchConfig config;
  Parameters parameters;
};

Launch::Launch(const Module& module, const std::string& name, const LaunchConfig& config, void* const* args,
               GlobalMemory& memory, const Machine& machine) {
  const Kernel* kernel = module.program().find(name);
  if (kernel == nullptr) throw Fault(FaultKind::kLaunch, "the module has no kernel " + name);
  if (const std::string& target = module.program().text.target; !machine.compiles(parse_target(target)))
    refuse(kernel->info, "compiled for " + target + ", which the " + machine.name + " does not run");
  if (!kernel->refused.empty())
    throw Fault(FaultKind::kUnsupported,
                "launch of " + short_name(readable(kernel->info.name)) + ": " + kernel->refused);
  const LaunchConfig checked = check(machine, kernel->info, config);
  accepted_.reset(new Accepted{*kernel, checked, {kernel->info, args, memory}});
}

Launch::~Launch() = default;

void run(const std::vector<Launch*>& launches, GlobalMemory& memory, const LaunchOptions& options) {
  keep_freed_memory();
  DefaultPolicy default_policy;
  Policy& policy = options.policy != nullptr ? *options.policy : default_policy;
  policy.start();
  std::vector<std::unique_ptr<Grid>> grids;
  std::map<const Launch*, const Grid*> grid_of;
  for (const Launch* launch : launches) {
    const Launch::Accepted& accepted = *launch->accepted_;
    auto grid = std::make_unique<Grid>(options.machine, accepted.kernel, accepted.config, memory,
                                       accepted.parameters.base(), policy, options.observer);
    grid->shared_shift = shared_shift(policy, accepted.kernel, options.align_as_declared);
    grid->go_on = options.go_on && options.observer != nullptr;
    grid->elect_lowest = options.elect_lowest;
    grid->patience = options.patience;
    grid->out = options.out;
    grid->err = options.err;
    grid->work = launch->work;
    grid->reach = launch->reach;
    for (const Launch* other : launch->after) grid->after.push_back(grid_of.at(other));
    for (const Launch* other : launch->preceding) grid->preceding.push_back(grid_of.at(other));
    grid_of[launch] = grid.get();
    grids.push_back(std::move(grid));
  }
  std::vector<Grid*> together;
  for (const auto& grid : grids) together.push_back(grid.get());
  run_together(together);
  for (size_t i = 0; i < launches.size(); ++i) launches[i]->stats = grids[i]->stats;
}

LaunchStats launch(const Module& module, const std::string& name, const LaunchConfig& config,
                   void* const* args, GlobalMemory& memory, const LaunchOptions& options) {
  Launch one(module, name, config, args, memory, options.machine);
  run({&one}, memory, options);
  return one.stats;
}

}  // namespace sim
