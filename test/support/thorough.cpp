// thorough.cpp -- see thorough.h.
#include "support/thorough.h"

#include <cstdlib>
#include <string>

namespace dualgemm_test {

bool simulated() {
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  check_status(dualgemm_current_device(&device));
  return std::string(device.name).find("simulated") != std::string::npos;
}

bool thorough() {
  static const bool asked = std::getenv("DUALGEMM_TEST_ALL") != nullptr;
  return asked || !simulated();
}

std::vector<NamedInstance> all_or_in_turn(const std::vector<NamedInstance>& all) {
  return thorough() ? all : in_turn(all);
}

}  // namespace dualgemm_test
