// command_lacking_test.cu -- a program for command_test.cpp: one of its two kernels uses something that the
// simulator lacks.
#include <cuda_runtime.h>

#include <cstdlib>

namespace {

// Has an instruction that the simulator lacks, but never executes it.
__global__ void multiply(float* out, int never) {
  float d[4] = {};
  if (never != 0)
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %4}, {%4}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(never));
  out[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
}

__global__ void number(float* out) { out[threadIdx.x] = static_cast<float>(threadIdx.x); }

}  // namespace

int main() {
  float* out = nullptr;
  if (cudaMalloc(&out, 32 * sizeof(float)) != cudaSuccess) return EXIT_FAILURE;
  multiply<<<1, 32>>>(out, 0);
  if (cudaGetLastError() == cudaSuccess) return EXIT_FAILURE;
  number<<<1, 32>>>(out);
  return cudaDeviceSynchronize() == cudaSuccess ? EXIT_SUCCESS : EXIT_FAILURE;
}
