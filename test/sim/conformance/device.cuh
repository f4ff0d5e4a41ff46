// device.cuh -- launches, device memory and random numbers for the cases: every CUDA error becomes an
// exception that says where, and every buffer starts with defined contents.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "test/sim/conformance/record.h"
#include "test/support/device_memory.h"
#include "test/support/rng.h"

namespace conformance {

using dualgemm_test::check_cuda;

template <class T>
using Buffer = dualgemm_test::FilledArray<T, 0>;

struct Shape {
  dim3 grid, block;
  size_t smem = 0;
  dim3 cluster = {1, 1, 1};
};

template <class... Params, class... Args>
void launch(const Shape& shape, void (*kernel)(Params...), Args... args) {
  if (shape.smem > 48 * 1024)
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shape.smem)),
               "cudaFuncSetAttribute");
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = shape.cluster.x;
  attribute.val.clusterDim.y = shape.cluster.y;
  attribute.val.clusterDim.z = shape.cluster.z;
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.smem;
  config.attrs = &attribute;
  config.numAttrs = shape.cluster.x * shape.cluster.y * shape.cluster.z > 1 ? 1 : 0;
  check_cuda(cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...), "launch");
  check_cuda(cudaDeviceSynchronize(), "kernel");
}

// The seed, and how numbers are made from the generator's bits, have to stay as they were when the record was
// made.
class Random : public dualgemm_test::Xorshift {
 public:
  explicit Random(uint64_t seed) : Xorshift(seed * 0x9E3779B97F4A7C15u + 0x1234567) {}
  uint32_t below(uint32_t limit) { return uint32_t((bits() >> 32) % limit); }
  int between(int low, int high) { return low + int(below(uint32_t(high - low + 1))); }
};

}  // namespace conformance
