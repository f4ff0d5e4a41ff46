// machine.cpp -- see machine.h.
#include "machine.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "budget.h"
#include "test/support/device_memory.h"

namespace bench {
namespace {

struct Rates {
  double sm_khz, memory_khz, bus_bits;
};

// These are as a B200's driver reports them (test/sim/machine.h).
constexpr Rates kB200Rates{1965e3, 3996e3, 7680};

void set_rates(Machine* m, const TensorRate& tensor, const Rates& rates) {
  m->clock_ghz = rates.sm_khz * 1e-6;
  // There are two transfers per clock.
  m->dram_tb_s = rates.memory_khz * 1e3 * 2 * rates.bus_bits / 8 * 1e-12;
  m->operands = tensor.operands;
  m->tensor_pflops = static_cast<double>(tensor.flops_per_clock) * m->clock_ghz * 1e9 * m->sms * 1e-15;
}

}  // namespace

Machine describe_machine(const dualgemm_device_t& device, dualgemm_dtype_t a_dtype) {
  const auto attribute = [&](cudaDeviceAttr which) {
    int value = 0;
    dualgemm_test::check_cuda(cudaDeviceGetAttribute(&value, which, device.ordinal),
                              "cudaDeviceGetAttribute");
    return static_cast<double>(value);
  };
  Machine m;
  m.name = device.name;
  m.sms = device.sm_count;
  m.driver = device.driver_version;
  dualgemm_test::check_cuda(cudaRuntimeGetVersion(&m.runtime), "cudaRuntimeGetVersion");
  set_rates(&m, tensor_rate(device, a_dtype),
            {attribute(cudaDevAttrClockRate), attribute(cudaDevAttrMemoryClockRate),
             attribute(cudaDevAttrGlobalMemoryBusWidth)});
  return m;
}

Machine described_machine() {
  const dualgemm_device_t device = described_b200();
  Machine m;
  m.name = device.name;
  m.sms = device.sm_count;
  set_rates(&m, tensor_rate(device), kB200Rates);
  return m;
}

Roof roof_of(double dram_bytes, double flops, const Machine& machine) {
  const double dram_us = dram_bytes / machine.dram_tb_s * 1e-6;
  const double tensor_us = flops / machine.tensor_pflops * 1e-9;
  return {std::max(dram_us, tensor_us), dram_us > tensor_us};
}

}  // namespace bench
