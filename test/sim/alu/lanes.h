// lanes.h -- whole-warp forms of the arithmetic that dominates kernels: one loop over 32 lanes instead of 32
// calls. They compute exactly what the lane functions of alu.h compute; a test compares the two.
#pragma once

#include <cstdint>

#include "sim/parse/module.h"

namespace sim {

using LaneLoop = void (*)(uint64_t* out, const uint64_t* a, const uint64_t* b, const uint64_t* c);

// Returns null when the spelling has no whole-warp form.
LaneLoop find_lane_loop(const ptx::Statement& statement);

}  // namespace sim
