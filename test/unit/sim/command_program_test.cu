// command_program_test.cu -- the programs that command_test.cpp judges, one for each word it is started with.
// It is an ordinary CUDA program: which runtime it gets is decided by LD_LIBRARY_PATH.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kThreads = 64;

// Every thread reads what a thread of the other warp wrote.
template <bool kBarrier>
__global__ void exchange(int* out) {
  __shared__ int values[kThreads];
  values[threadIdx.x] = -1;
  __syncthreads();
  values[threadIdx.x] = int(threadIdx.x);
  if (kBarrier) __syncthreads();
  out[threadIdx.x] = *reinterpret_cast<volatile int*>(&values[kThreads - 1 - threadIdx.x]);
}

// Waits for two arrivals and gets one.
__global__ void wait_forever(int* out) {
  __shared__ alignas(8) uint64_t barrier;
  const uint32_t address = uint32_t(__cvta_generic_to_shared(&barrier));
  asm volatile("mbarrier.init.shared.b64 [%0], 2;" ::"r"(address) : "memory");
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(address) : "memory");
  uint32_t done = 0;
  while (done == 0)
    asm volatile(
        "{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared.b64 p, [%1], 0;\n\tselp.u32 %0, 1, 0, p;\n\t}"
        : "=r"(done)
        : "r"(address)
        : "memory");
  out[0] = 1;
}

__global__ void outside(int* out) { out[1 << 20] = 1; }

__global__ void outside_twice(int* out) {
  out[1 << 20] = 1;
  if (out[2 << 20] == 7) out[0] = 1;
}

__global__ void same_word(int* out) { out[0] = 1; }

// Works only if the lowest lane is elected.
__global__ void elected(int* out) {
  uint32_t lane;
  asm volatile("{\n\t.reg .pred p;\n\telect.sync %0|p, -1;\n\t}" : "=r"(lane));
  if (lane != threadIdx.x % 32 && threadIdx.x % 32 == 0) asm volatile("trap;");
  out[threadIdx.x] = 1;
}

int run(const char* what) {
  if (std::strcmp(what, "nothing") == 0) return EXIT_SUCCESS;
  if (std::strcmp(what, "sleep") == 0)
    for (volatile int i = 0;; i = i + 1) {
    }
  if (std::strcmp(what, "second device") == 0 && cudaSetDevice(1) != cudaSuccess) return EXIT_FAILURE;
  const char* mode = std::getenv("SIM_MODE");  // of the schedule that it runs under
  int* out = nullptr;
  if (cudaMalloc(&out, kThreads * sizeof(int)) != cudaSuccess) return EXIT_FAILURE;
  if (std::strcmp(what, "race") == 0) exchange<false><<<1, kThreads>>>(out);
  else if (std::strcmp(what, "deadlock") == 0) wait_forever<<<1, 1>>>(out);
  else if (std::strcmp(what, "bounds") == 0) outside<<<1, 1>>>(out);
  else if (std::strcmp(what, "bounds twice") == 0) outside_twice<<<1, 1>>>(out);
  else if (std::strcmp(what, "same") == 0) same_word<<<1, 32>>>(out);
  else if (std::strcmp(what, "lane 0") == 0) elected<<<1, 32>>>(out);
  else if (std::strcmp(what, "beyond") == 0 && mode != nullptr && std::strcmp(mode, "strict-tensor") == 0)
    exchange<false><<<1, kThreads>>>(out);
  else exchange<true><<<1, kThreads>>>(out);
  if (cudaDeviceSynchronize() != cudaSuccess) return EXIT_FAILURE;
  std::printf("the program ran\n");
  return std::strcmp(what, "fail") == 0 ? 7 : EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) { return run(argc > 1 ? argv[1] : "clean"); }
