// launch.h -- everything the library asks of the CUDA runtime, apart from tensor maps. Nothing here allocates
// device memory, synchronises or touches the default stream unless the caller passes it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "host/cost_model.h"
#include "host/dualgemm.h"
#include "host/validate.h"
#include "kernel/instances.h"
#include "kernel/params.h"

namespace dualgemm {

// Reports a failed CUDA call: CUDA_ERROR, or NO_DEVICE and DRIVER_TOO_OLD where the error says so.
dualgemm_status_t fail_cuda(cudaError_t error, const char* call);

// The runtime remembers the last error of a thread. This scope keeps the errors of our own calls from staying
// behind; an error that was already pending belongs to the caller and is left alone.
class CudaErrorScope {
 public:
  CudaErrorScope() : pending_(cudaPeekAtLastError()) {}
  ~CudaErrorScope() {
    if (pending_ == cudaSuccess) cudaGetLastError();
  }
  CudaErrorScope(const CudaErrorScope&) = delete;
  CudaErrorScope& operator=(const CudaErrorScope&) = delete;

 private:
  cudaError_t pending_;
};

// The calling thread's current device; asked once per device, then remembered.
dualgemm_status_t query_current_device(dualgemm_device_t* device);

// Lets the current device run the instance: loads the kernel and allows it its shared memory.
dualgemm_status_t load_instance(const Instance& instance);

// Loads every instance of the table on the current device `ordinal`; once per device.
dualgemm_status_t load_kernels(int32_t ordinal);

// The part of the device that a launch may use.
Machine machine_of(const dualgemm_args_t& args, const dualgemm_device_t& device);

// CTAs of a launch. Without a split of K, no more than run at once: each walks several tiles.
int64_t grid_size(const Problem& problem, const Instance& instance, const Machine& machine);

// The argument of the kernel. Params travels by value.
dualgemm_status_t make_params(const Problem& problem, const Instance& instance, Params* params);

// How a kernel is launched, with the attributes that the configuration points to.
struct LaunchConfig {
  cudaLaunchConfig_t config;
  cudaLaunchAttribute attributes[2];
};
void make_launch_config(const Problem& problem, const Instance& instance, int64_t ctas, cudaStream_t stream,
                        LaunchConfig* launch);

// Runs a checked problem with K > 0 on a loaded instance, which need not be one of the table.
dualgemm_status_t launch_instance(const Problem& problem, const Instance& instance,
                                  const dualgemm_device_t& device, cudaStream_t stream);

// C = 0 for K == 0: the sum of no products. Columns from N to ldc keep what they hold.
dualgemm_status_t launch_zero_fill(const Problem& problem, cudaStream_t stream);

}  // namespace dualgemm
