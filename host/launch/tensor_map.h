// tensor_map.h -- fills the tensor maps of Params from a checked problem: one for each operand and one for
// its factors, or `prepared_a` in place of the two of A. kernel/params.h has the table of what each map looks
// like; host/launch/tensor_map.cpp is the only place that encodes one.
#pragma once

#include "host/common/problem.h"
#include "kernel/params.h"
#include "kernel/plan.h"

namespace dualgemm {

dualgemm_status_t encode_tensor_maps(const Problem& problem, const Plan& plan, Params* params);

}  // namespace dualgemm
