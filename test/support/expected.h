// expected.h -- what a launch has to give, by the reference. Launches of one problem by many instances, or
// into many types of C, are compared with the same numbers, which are computed once.
#pragma once

#include <cstdint>
#include <memory>

#include "support/device_set.h"
#include "support/problem.h"

namespace dualgemm_test {

struct Expected {
  ref::DualGemm c;   // before its conversion, encode scale left out; without `tensor_core`
  ref::Matrix d[2];  // gate and up as the activation takes them; of one product the first
};

// Returns what a launch of p with these options has to give where an instance divides K into `split_k`
// slices: the bounds are for these alone. The same problem gets the same numbers, but for those of long
// ago, which are computed again.
std::shared_ptr<const Expected> expected(const Problem& p, const LaunchOptions& options, int32_t split_k);

}  // namespace dualgemm_test
