// tensor_map.h -- fills the six tensor maps of Params from a checked problem. kernel/params.h has the table
// of what each map looks like; host/tensor_map.cpp is the only place that encodes one.
#pragma once

#include "host/dualgemm.h"
#include "host/validate.h"
#include "kernel/instances.h"
#include "kernel/params.h"

namespace dualgemm {

dualgemm_status_t encode_tensor_maps(const Problem& problem, const Instance& instance, Params* params);

}  // namespace dualgemm
