// devices_on_gpu.cpp -- see devices.h: a machine has those that it has.
#include <cuda_runtime_api.h>

#include "kernel/devices.h"

namespace dualgemm_test {
namespace {
int wanted = 1;
}

Devices::Devices(int count) { wanted = count; }
Devices::~Devices() { cudaSetDevice(0); }
bool Devices::there() const {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count >= wanted;
}

}  // namespace dualgemm_test
