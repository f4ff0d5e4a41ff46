// cluster_launch.h -- the response of cluster launch control, 16 bytes that are opaque to programs: their
// layout is ours, and only the two instructions see it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/exec/launch_config.h"

namespace sim {

constexpr uint64_t kCancelBytes = 16;

// Returns the bytes that say which cluster was cancelled, by its first CTA, or that none was.
std::vector<uint8_t> cancel_response(const std::optional<Dim3>& first_cta);

}  // namespace sim
