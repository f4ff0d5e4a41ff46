// choice.h -- the instance for a checked problem on a device: the one that the caller asks for, the one that
// a tuning file names, or the one that the cost model ranks first. It makes no CUDA call.
#pragma once

#include <cstddef>

#include "host/common/problem.h"
#include "host/model/instance_kinds.h"
#include "host/model/tiling.h"

namespace dualgemm {

// Returns the shape that the choice looks at. It is a guess where only the device knows the rows of the
// groups.
Shape shape_of(const Problem& problem);

// Checks the rules that are left once the device is known. *choice becomes the instance to launch if the
// workspace has `workspace` bytes, or kNoInstance where no kernel runs because K is 0.
dualgemm_status_t choose(const Problem& problem, const dualgemm_device_t& device, size_t workspace,
                         IndexedInstance* choice);

// Returns how many bytes the workspace must have so that the choice can take this instance. For an instance
// that the caller asks for, and for one without stream-K, these are the bytes that the instance uses. The
// choice considers instances with stream-K only if the workspace is large enough for all of them that have
// the same InstanceKind.
size_t workspace_for(const Problem& problem, const Instance& instance);

}  // namespace dualgemm
