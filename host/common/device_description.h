// device_description.h -- what the runtime and the driver say of a device.
#pragma once

#include "host/include/dualgemm.h"

namespace dualgemm {

// Asks about a device, which is the current one. *complete becomes false if a part of the description is not
// known yet and has to be asked for again. Refuses a runtime of another major version than the build's.
dualgemm_status_t describe_device(int ordinal, dualgemm_device_t* device, bool* complete);

}  // namespace dualgemm
