// command_program_test.cu -- the programs that command_test.cpp judges, one for each word it is started with.
// It is an ordinary CUDA program: which runtime it gets is decided by LD_LIBRARY_PATH.
#include <cuda.h>
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

// Counts for long.
__global__ void count(int* out) {
  uint32_t value = 1;
  for (int i = 0; i < 100000; ++i) value ^= value << 13, value ^= value >> 17, value ^= value << 5;
  out[0] = int(value);
}

__global__ void outside(int* out) { out[1 << 20] = 1; }

__global__ void outside_twice(int* out) {
  out[1 << 20] = 1;
  if (out[2 << 20] == 7) out[0] = 1;
}

__global__ void fail(int* out) {
  if (threadIdx.x == 0) asm volatile("trap;");
  out[threadIdx.x] = 1;
}

__global__ void same_word(int* out) { out[0] = 1; }

// Prefetches an address outside every allocation, which does no harm.
__global__ void advice(int* out) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(uint64_t{4096}) : "memory");
  out[0] = 1;
}

// Works only if the lowest lane is elected.
__global__ void elected(int* out) {
  uint32_t lane;
  asm volatile("{\n\t.reg .pred p;\n\telect.sync %0|p, -1;\n\t}" : "=r"(lane));
  if (lane != threadIdx.x % 32 && threadIdx.x % 32 == 0) asm volatile("trap;");
  out[threadIdx.x] = 1;
}

// The warps of a warpgroup ask for different registers.
__global__ void __maxnreg__(128) registers(int* out) {
  if (threadIdx.x < 32) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
  else asm volatile("setmaxnreg.dec.sync.aligned.u32 64;");
  if (threadIdx.x == 0) out[0] = 1;
}

// Rounds the address of dynamic shared memory up to a multiple of 1024, for which the launch gives no bytes.
__global__ void round_up(int* out, uint32_t beyond) {
  extern __shared__ uint8_t window[];
  const uint32_t start = (uint32_t(__cvta_generic_to_shared(window)) + 1023) / 1024 * 1024;
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(start + 1020 + beyond), "r"(1) : "memory");
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(start + 1016 + beyond), "r"(1) : "memory");
  out[0] = 1;
}

constexpr uint32_t kRow = 64, kRows = 8;  // bytes, rows of a box

// Loads a box to dynamic shared memory, which is declared with less alignment than the pattern of its
// swizzle needs.
__global__ void load_box(int* out, const __grid_constant__ CUtensorMap map) {
  extern __shared__ uint8_t window[];
  const uint32_t box = uint32_t(__cvta_generic_to_shared(window)), barrier = box + kRow * kRows;
  asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(barrier) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(kRow * kRows)
               : "memory");
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %2}], [%3];" ::
          "r"(box),
      "l"(&map), "r"(0), "r"(barrier)
      : "memory");
  uint32_t done = 0;
  while (done == 0)
    asm volatile(
        "{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared.b64 p, [%1], 0;\n\tselp.u32 %0, 1, 0, p;\n\t}"
        : "=r"(done)
        : "r"(barrier)
        : "memory");
  int sum = 0;
  for (uint32_t i = 0; i < kRow * kRows; ++i) sum += window[i];
  out[0] = sum;
}

void launch_load_box(int* out) {
  void *bytes = nullptr, *encode = nullptr;
  cudaDriverEntryPointQueryResult found;
  if (cudaMalloc(&bytes, kRow * kRows) != cudaSuccess || cudaMemset(bytes, 3, kRow * kRows) != cudaSuccess ||
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &found) !=
          cudaSuccess)
    std::exit(EXIT_FAILURE);
  CUtensorMap map;
  const cuuint64_t extents[] = {kRow, kRows}, pitches[] = {kRow};
  const cuuint32_t box[] = {kRow, kRows}, steps[] = {1, 1};
  reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode)(
      &map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, bytes, extents, pitches, box, steps,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  load_box<<<1, 1, kRow * kRows + sizeof(uint64_t)>>>(out, map);
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
  else if (std::strcmp(what, "count") == 0) count<<<1, 1>>>(out);
  else if (std::strcmp(what, "bounds") == 0) outside<<<1, 1>>>(out);
  else if (std::strcmp(what, "bounds twice") == 0) outside_twice<<<1, 1>>>(out);
  else if (std::strcmp(what, "same") == 0) same_word<<<1, 32>>>(out);
  else if (std::strcmp(what, "advice") == 0) advice<<<1, 1>>>(out);
  else if (std::strcmp(what, "lane 0") == 0) elected<<<1, 32>>>(out);
  else if (std::strcmp(what, "registers") == 0) registers<<<1, 128>>>(out);
  else if (std::strcmp(what, "rounded") == 0) round_up<<<1, 1, 1024>>>(out, 0);
  else if (std::strcmp(what, "rounded, outside") == 0) round_up<<<1, 1, 1024>>>(out, 16384);
  else if (std::strcmp(what, "rounded, then a race") == 0 || std::strcmp(what, "box, then a race") == 0) {
    if (what[0] == 'b') launch_load_box(out);
    else round_up<<<1, 1, 1024>>>(out, 0);
    exchange<false><<<1, kThreads>>>(out);
    cudaDeviceSynchronize();  // a program that asks for no error
    return EXIT_SUCCESS;
  } else if (std::strcmp(what, "deadlock, then a race") == 0 || std::strcmp(what, "trap, then a race") == 0) {
    if (what[0] == 'd') wait_forever<<<1, 1>>>(out);
    else fail<<<1, kThreads>>>(out);
    exchange<false><<<1, kThreads>>>(out);
  } else if (std::strcmp(what, "box") == 0 || std::strcmp(what, "box, killed") == 0) launch_load_box(out);
  else if (std::strcmp(what, "beyond") == 0 && mode != nullptr && std::strcmp(mode, "strict-tensor") == 0)
    exchange<false><<<1, kThreads>>>(out);
  else exchange<true><<<1, kThreads>>>(out);
  if (cudaDeviceSynchronize() != cudaSuccess) {
    if (std::strcmp(what, "box, killed") == 0) std::abort();
    return EXIT_FAILURE;
  }
  std::printf("the program ran\n");
  return std::strcmp(what, "fail") == 0 ? 7 : EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) { return run(argc > 1 ? argv[1] : "clean"); }
