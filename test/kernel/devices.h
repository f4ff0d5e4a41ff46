// devices.h -- several devices in one process: as many as a test asks the simulator for, or those of this
// machine.
#pragma once

namespace dualgemm_test {

// So many devices, until the end of a test; the calling thread starts on the first.
struct Devices {
  explicit Devices(int count);
  ~Devices();
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;
  bool there() const;  // a machine may have fewer
};

}  // namespace dualgemm_test
