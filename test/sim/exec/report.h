// report.h -- where a grid stands, in words: for a deadlock, for a grid that was given up, and for the place
// of a fault.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/exec/grid.h"

namespace sim {

struct Running;

std::string deadlock_report(const Grid& grid, const std::vector<Spin>& spins = {});
Fault given_up(const Grid& grid, uint64_t quiet, const std::vector<Running>& running);
Fault located(const Fault& fault, const Grid& grid, const Warp& warp, uint32_t lanes, const Inst& inst);
[[noreturn]] void throw_at(const Fault& fault, const Grid& grid, const Warp& warp, uint32_t lanes,
                           const Inst& inst);
std::string where(const Grid& grid, const Cta& cta);
std::string pending_bytes(const Mbarrier& barrier);  // or how many too many have arrived

}  // namespace sim
