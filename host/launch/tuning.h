// tuning.h -- the tuning file in force: read from a path that the program names, or from DUALGEMM_TUNING, and
// kept for the life of the process, so that launches look at it without a lock.
#pragma once

#include <cuda_runtime_api.h>

#include <span>

#include "host/include/dualgemm.h"
#include "host/model/tuned.h"

namespace dualgemm {

// What a file in force says. It never changes, and stays where it is.
struct Tuning {
  char gpu[sizeof dualgemm_device_t::name];
  int32_t sms, driver;
  std::span<const TunedEntry> entries;
};

// Returns what the file in force says of this device, or null if the file is for another device, or there is
// none.
const Tuning* tuning_for(const dualgemm_device_t& device);

// Reads the file that DUALGEMM_TUNING names, unless that has been done or a program has loaded one. `device`
// is the current device. A file that is refused changes nothing. If the stream is being captured, the second
// form does nothing, and a later call reads the file.
void read_environment_tuning(const dualgemm_device_t& device);
void read_environment_tuning(const dualgemm_device_t& device, cudaStream_t stream);

}  // namespace dualgemm
