// convert.h -- the kernels of convert.cpp, as dualgemm_init loads them.
#pragma once

#include "host/include/dualgemm.h"

namespace dualgemm {

// Loads all these kernels on the current device.
dualgemm_status_t load_conversions();

}  // namespace dualgemm
