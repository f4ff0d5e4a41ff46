// convert.h -- the kernels of convert.cpp, as dualgemm_init loads them.
#pragma once

#include "host/dualgemm.h"

namespace dualgemm {

// Loads them all on the current device, which is `device`, where they are built for it.
dualgemm_status_t load_conversions(const dualgemm_device_t& device);

}  // namespace dualgemm
