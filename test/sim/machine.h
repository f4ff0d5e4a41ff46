// machine.h -- the GPUs that can be simulated, as values: what the CUDA runtime reports of each, and the
// numbers that decide launches, occupancy and which code runs. (The state of a running grid is in
// exec/grid.h.)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace sim {

// A target is what PTX or machine code was compiled for: sm_100, sm_100f (its family) or sm_100a (only this
// architecture).
struct Target {
  uint32_t arch = 0;   // 10 * major + minor
  char suffix = '\0';  // 'a', 'f' or none

  std::string text() const;  // "100f"
  bool operator==(const Target&) const = default;
};
Target parse_target(const std::string& text);  // "sm_100f", "compute_100f" or "100f"; arch 0 when it is none

// So many groups of so many SMs each.
struct ClusterGroups {
  int groups = 0, sms = 0;

  bool operator==(const ClusterGroups&) const = default;
};

// shim/runtime_device.cpp answers CUDA device attributes with these numbers.
struct Machine {
  // The same for every compute capability since 8.0, so code can be laid out before a machine is chosen.
  static constexpr int kWarpSize = 32, kReservedSmemPerBlock = 1024;

  const char* name;
  uint32_t major, minor;
  const char* build_target;  // the target that nvcc takes for it
  int sms;
  int smem_per_sm, smem_per_block_optin;
  int registers_per_sm;
  int threads_per_sm, ctas_per_sm;
  int l2_bytes;
  size_t memory_bytes;
  int sm_clock_khz, memory_clock_khz, memory_bus_bits;
  int copy_engines;
  // The groups of SMs that can hold the CTAs of one cluster. A group holds clusters of at most as many CTAs
  // as it has SMs, even where an SM has room for several CTAs.
  std::array<ClusterGroups, 12> cluster_groups;

  constexpr uint32_t arch() const { return 10 * major + minor; }
  // compiles() is true when PTX of the target can be compiled for this machine, executes() when machine code
  // of the target runs on it (CUDA C++ Programming Guide, compatibility of cubins and PTX, family- and
  // architecture-specific targets).
  bool compiles(const Target& ptx) const;
  bool executes(const Target& cubin) const;
};

// SMs, L2, clocks and bus are as published measurements report them (SemiAnalysisAI/microbench-blackwell),
// and so are the TPCs of its GPCs: 10, 10, 10, 9 on one die and 9, 9, 9, 5 + 3 on the other. Shared memory,
// registers and threads are the CUDA C++ Programming Guide's for compute capability 10.0.
inline constexpr Machine kB200 = {.name = "B200",
                                  .major = 10,
                                  .minor = 0,
                                  .build_target = "100f",
                                  .sms = 148,
                                  .smem_per_sm = 233472,
                                  .smem_per_block_optin = 232448,
                                  .registers_per_sm = 65536,
                                  .threads_per_sm = 2048,
                                  .ctas_per_sm = 32,
                                  .l2_bytes = 132644864,
                                  .memory_bytes = size_t{183359} << 20,
                                  .sm_clock_khz = 1965000,
                                  .memory_clock_khz = 3996000,
                                  .memory_bus_bits = 7680,
                                  .copy_engines = 4,
                                  .cluster_groups = {{{3, 20}, {4, 18}, {1, 10}, {1, 6}}}};

// A B300 SXM6 differs from a B200 only in these numbers, as its runtime reported (ademeure/QuickRunCUDA:
// B300_all_attributes.txt, B300_PIPE_CATALOG.md). The groups are a B200's with three TPCs that hold no
// cluster of four or more: its occupancy calls answered 592, 284 and 142 clusters of 2, 4 and 8 where an SM
// holds eight CTAs, and 15 clusters of 8 where it holds one (09_gpc_count.md,
// NVFP4_CUTEDSL_THROTTLE_DEEP_DIVE.md).
inline constexpr Machine kB300 = [] {
  Machine machine = kB200;
  machine.name = "B300";
  machine.minor = 3;
  machine.memory_bytes = size_t{274115} << 20;
  machine.sm_clock_khz = 2032000;
  machine.cluster_groups = {{{3, 20}, {4, 18}, {1, 10}, {3, 2}}};
  return machine;
}();

// Every number is as an H200 SXM reported it (driver 580.159, CUDA 13.0). With these groups the occupancy of
// clusters of every size up to 16 at 1 to 7 CTAs per SM is what that H200 answered.
inline constexpr Machine kH200 = {.name = "H200",
                                  .major = 9,
                                  .minor = 0,
                                  .build_target = "90a",
                                  .sms = 132,
                                  .smem_per_sm = 233472,
                                  .smem_per_block_optin = 232448,
                                  .registers_per_sm = 65536,
                                  .threads_per_sm = 2048,
                                  .ctas_per_sm = 32,
                                  .l2_bytes = 62914560,
                                  .memory_bytes = 150109880320,
                                  .sm_clock_khz = 1980000,
                                  .memory_clock_khz = 3201000,
                                  .memory_bus_bits = 6016,
                                  .copy_engines = 3,
                                  .cluster_groups = {{{2, 18}, {5, 16}, {1, 8}, {4, 2}}}};

// An H100 SXM5 of 80 GB differs from an H200 in its memory. SMs, L2 and the ten 512-bit memory controllers
// are those of "NVIDIA Hopper Architecture In-Depth", clocks and memory those that nvidia-smi reports on an
// H100. How many TPCs each GPC has differs from chip to chip, and no occupancy was published with the rest:
// the groups are the H200's.
inline constexpr Machine kH100 = [] {
  Machine machine = kH200;
  machine.name = "H100";
  machine.l2_bytes = 52428800;
  machine.memory_bytes = size_t{81559} << 20;
  machine.memory_clock_khz = 2619000;
  machine.memory_bus_bits = 5120;
  return machine;
}();

// Finds a machine by its name, in upper or lower case. Behind the name may stand that it is a part of that
// GPU, as MIG, MPS, green contexts or smaller products leave it:
// "h100,sms=78,clusters_of_2=33,clusters_of_4=0".
//   sms=N             the first N SMs, in the order of cluster_groups
//   clusters_of_2=N   as many clusters of two CTAs have room with one CTA to an SM; likewise clusters_of_4.
//                     If either of the two is given, clusters of more than four CTAs do not run.
// If there is no such machine, it throws std::invalid_argument, which lists the machines that exist.
Machine machine_named(const std::string& name);

}  // namespace sim
