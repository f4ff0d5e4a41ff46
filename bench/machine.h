// machine.h -- the GPU that the figures of a report are about, and its two roofs.
#pragma once

#include <cstdint>
#include <string>

#include "dualgemm.h"

namespace bench {

struct Machine {
  std::string name;
  int32_t sms = 0, driver = 0, runtime = 0;
  double clock_ghz = 0;       // the highest the SMs are allowed
  double dram_tb_s = 0;       // pin rate
  const char* operands = "";  // of the tensor cores, where these are the limit
  double tensor_pflops = 0;   // dense, of these, at clock_ghz
};

// A device that the CUDA runtime knows, and an A of this type.
Machine describe_machine(const dualgemm_device_t& device, dualgemm_dtype_t a_dtype = DUALGEMM_DTYPE_NVFP4);

// A B200 where there is none, with the clocks that one reports.
Machine described_machine();

// No launch of so many bytes and operations takes less time than the slower of the two roofs allows.
struct Roof {
  double us;
  bool dram;  // else the tensor cores
};
Roof roof_of(double dram_bytes, double flops, const Machine& machine);

}  // namespace bench
