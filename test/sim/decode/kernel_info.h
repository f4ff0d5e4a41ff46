// kernel_info.h -- what the runtime may know of a decoded module: its kernels with their parameters and
// limits, and its global variables.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sim {

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
  uint32_t max_registers = 0;             // .maxnreg, 0 when absent
  uint32_t min_ctas = 0;                  // .minnctapersm
};
struct GlobalVariable {
  std::string name;
  uint64_t address;
  size_t size;
};

}  // namespace sim
