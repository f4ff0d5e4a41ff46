// prepare_a.h -- the pass over A. Some instances take A in 16 bits, in an order of K of their own. A kernel
// that is launched before such an instance leaves A in this form in the caller's workspace. Only this file
// knows the parameters of that kernel, how it is loaded and launched, and what else lies in the workspace.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "host/common/problem.h"
#include "host/model/tiling.h"
#include "kernel/plan.h"

namespace dualgemm {

// Describes A in the workspace as the pass leaves it: whole k-tiles of 256 elements in a row.
Tensor prepared_a(const Problem& problem);

// Returns the bytes that A takes in the workspace.
size_t prepared_a_bytes(const Problem& problem);

// CTAs with stream-K share this space. It follows A in the workspace, and has Params::parts_there, then
// Params::part_sums. Without stream-K it is empty.
struct StreamSpace {
  int32_t counts;                   // how many numbers parts_there has; the pass sets them to 0
  size_t counts_begin, sums_begin;  // bytes from the start of the workspace
  size_t bytes;                     // of both
};
StreamSpace stream_space(const Problem& problem, const Plan& plan);

// Returns the bytes of workspace that an instance needs: those of A and of the space for stream-K, or 0 if no
// pass precedes the instance.
size_t workspace_bytes(const Problem& problem, const Plan& plan);

// Loads, on the current device, the kernel that prepare_a launches for an instance.
dualgemm_status_t load_prepare_a(const Plan& plan);

// Launches the pass, if there is one before the instance.
dualgemm_status_t prepare_a(const Problem& problem, const Plan& plan, const Machine& machine,
                            cudaStream_t stream);

// Returns whether the kernel of an instance may start before what precedes it on the stream has ended. With
// PDL it may, and also beside its own pass over A: if the pass is an ordinary launch, all work before it has
// ended, and only that work may have written the weights. Where max_sms limits the launch, the kernel starts
// when the pass has ended, since the CTAs of both together could be more than it allows.
bool starts_early(const Problem& problem, const Plan& plan, const Machine& machine);

}  // namespace dualgemm
