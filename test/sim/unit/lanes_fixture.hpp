// lanes_fixture.hpp -- a kernel around a few instructions:
// every thread has its number and a word of the result.
#pragma once

#include "sim/unit/machine_fixture.hpp"

namespace sim_test {

inline const char* const kOut = ".param .u64 out";
// %rd1 = out + 4 * tid, %r1 = tid
inline const char* const kProlog = R"(
  .reg .pred %p<16>; .reg .b32 %r<64>; .reg .b64 %rd<32>; .reg .f32 %f<16>;
  ld.param.u64 %rd9, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd8, %r1, 4;
  add.s64 %rd1, %rd9, %rd8;
)";

inline std::vector<uint32_t> run_lanes(const std::string& body, uint32_t threads = 32,
                                       const std::string& before = "", uint32_t grid = 1,
                                       uint32_t cluster = 1, size_t dynamic = 0) {
  Machine machine;
  uint32_t* out = machine.make<uint32_t>(size_t(threads) * grid);
  machine.run(kernel_text(kOut, kProlog + body, before), shape(grid, threads, cluster, dynamic), {&out});
  return machine.fetch(out, size_t(threads) * grid);
}

inline sim::Fault lanes_fault(const std::string& body, uint32_t threads = 32, const std::string& before = "",
                              uint32_t grid = 1, uint32_t cluster = 1, size_t dynamic = 0) {
  return fault_of([&] { run_lanes(body, threads, before, grid, cluster, dynamic); });
}

inline const char* const kBulkShared = ".shared .align 128 .b8 buffer[128]; .shared .align 8 .b8 bar[8];";

}  // namespace sim_test
