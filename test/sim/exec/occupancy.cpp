// occupancy.cpp -- see the header.
#include "sim/exec/occupancy.h"

#include <algorithm>
#include <numeric>

namespace sim {

constexpr int kRegistersPerThread = 64;  // PTX does not say what ptxas would allocate
constexpr size_t kSharedUnit = 128;

int max_active_blocks_per_sm(const Machine& machine, const KernelInfo& kernel, int threads,
                             size_t dynamic_smem) {
  if (threads <= 0 || threads > int(kMaxThreads)) return 0;
  const int rounded = (threads + 31) / 32 * 32;
  const size_t used = (kernel.static_smem + dynamic_smem + Machine::kReservedSmemPerBlock + kSharedUnit - 1) /
                      kSharedUnit * kSharedUnit;
  if (kernel.static_smem + dynamic_smem > size_t(machine.smem_per_block_optin)) return 0;
  return std::min({machine.ctas_per_sm, machine.threads_per_sm / rounded,
                   machine.registers_per_sm / (rounded * kRegistersPerThread),
                   int(machine.smem_per_sm / used)});
}

int registers_at_launch(const Machine& machine, const KernelInfo& kernel) {
  constexpr int kUnit = 8, kMost = 256;
  int registers = kernel.max_registers == 0 ? 0 : (int(kernel.max_registers) + kUnit - 1) / kUnit * kUnit;
  const auto& shape = kernel.req_ntid[0] != 0 ? kernel.req_ntid : kernel.max_ntid;
  if (shape[0] != 0) {
    const uint32_t threads = shape[0] * std::max(1u, shape[1]) * std::max(1u, shape[2]);
    const int allotted = int((threads + 31) / 32 * 32 * std::max(1u, kernel.min_ctas));
    const int left = std::min(machine.registers_per_sm / allotted / kUnit * kUnit, kMost);
    registers = registers == 0 ? left : std::min(registers, left);
  }
  return std::min(registers, kMost);
}

int max_active_clusters(const Machine& machine, const KernelInfo& kernel, const LaunchConfig& config) {
  const Dim3 &b = config.block, &c = config.cluster;
  const int size = int(c.x * c.y * c.z);
  const int per_sm = max_active_blocks_per_sm(machine, kernel, int(b.x * b.y * b.z), config.dynamic_smem);
  const auto& groups = machine.cluster_groups;
  return std::accumulate(groups.begin(), groups.end(), 0, [&](int sum, const ClusterGroups& alike) {
    return sum + (size <= 0 || size > alike.sms ? 0 : alike.groups * (alike.sms * per_sm / size));
  });
}

}  // namespace sim
