// supported.h -- the last rules of a launch. They refuse what the structure can express, but no instance of
// this library computes.
#pragma once

#include "host/common/problem.h"
#include "kernel/instance.h"

namespace dualgemm {

// Checks a problem that keeps all other rules. Returns NOT_SUPPORTED, or INVALID_VALUE for an instance_id
// that does not exist.
dualgemm_status_t check_supported(const Problem& problem);

// Checks that, in an instance, the tiles of a problem have 31-bit numbers, and with split-K the CTAs, too, of
// which each tile has several.
dualgemm_status_t check_tiles(const Problem& problem, const Instance& instance);

}  // namespace dualgemm
