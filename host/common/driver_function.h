// driver_function.h -- a function of the driver, looked up through the CUDA runtime, so that programs need
// not link libcuda.
#pragma once

#include <atomic>

#include "host/include/dualgemm.h"

namespace dualgemm {

class DriverFunction {
 public:
  // `version` is that of the function's type in cudaTypedefs.h.
  constexpr DriverFunction(const char* name, unsigned version) : name_(name), version_(version) {}

  // A look-up that failed is not remembered: a process may initialise CUDA later than its first call into
  // this library.
  template <class Function>
  dualgemm_status_t find(Function* function) {
    void* found = found_.load(std::memory_order_relaxed);
    if (!found)
      if (auto status = look_up(&found)) return status;
    *function = reinterpret_cast<Function>(found);
    return DUALGEMM_STATUS_SUCCESS;
  }

 private:
  dualgemm_status_t look_up(void** function);

  const char* name_;
  unsigned version_;
  std::atomic<void*> found_{nullptr};
};

}  // namespace dualgemm
