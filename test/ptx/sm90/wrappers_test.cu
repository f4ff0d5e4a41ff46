// wrappers_test.cu -- one small kernel per wrapper that the kernels for compute capability 9.0 use alone.
// What each leaves behind is checked by wrappers_run_test.cpp.
#include "ptx/cluster.cuh"
#include "ptx/descriptor.h"
#include "ptx/math.cuh"
#include "ptx/matrix.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/sync.cuh"
#include "ptx/wgmma.cuh"
#include "test/ptx/sm90/wrappers.h"

namespace ptx = dualgemm::ptx;

namespace {

constexpr int kRowWords = 32;  // of 64 elements of 16 bits, or of 128 of 8: 128 bytes

struct OfF16 {
  template <int kCount>
  static __device__ void multiply(float (&d)[kCount], const uint32_t (&a)[4], uint64_t b) {
    ptx::wgmma_m64k16_f32_f16(d, a, b);
  }
};
struct OfBf16 {
  template <int kCount>
  static __device__ void multiply(float (&d)[kCount], const uint32_t (&a)[4], uint64_t b) {
    ptx::wgmma_m64k16_f32_bf16(d, a, b);
  }
};
struct OfE4m3 {
  template <int kCount>
  static __device__ void multiply(float (&d)[kCount], const uint32_t (&a)[4], uint64_t b) {
    ptx::wgmma_m64k32_f32_e4m3(d, a, b);
  }
};

// D = A B^T twice over, for A of 64 rows and 16 elements of K, as pairs [64][8], and B of kN rows and 64, as
// [kN][32], of which those from 16 on count. Both wgmma are one group. Of e4m3 there are four numbers where
// there is a pair, and D = - A B^T twice over.
template <int kN, class Wgmma = OfF16>
__device__ void multiply(const uint32_t* a, const uint32_t* b, float* d) {
  __shared__ __align__(1024) uint32_t rows[kN * kRowWords];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  for (int i = thread; i < kN * kRowWords; i += 128) {
    const int row = i / kRowWords, column = i % kRowWords / 4;  // of 16 bytes
    rows[row * kRowWords + (column ^ row % 8) * 4 + i % 4] = b[i];
  }
  ptx::fence_proxy_async_shared_cta();  // the rows are written before the wgmma read them
  __syncthreads();
  const int row = thread / 32 * 16 + lane / 4, pair = lane % 4;
  const uint32_t registers[4] = {a[row * 8 + pair], a[(row + 8) * 8 + pair], a[row * 8 + 4 + pair],
                                 a[(row + 8) * 8 + 4 + pair]};
  float sums[kN / 2];
#pragma unroll
  for (float& sum : sums) {
    sum = 0.0f;
    asm volatile("" : "+f"(sum)::"memory");  // in a register of its own, before the fence
  }
  const uint64_t descriptor = ptx::advance(ptx::wgmma_descriptor(ptx::smem_u32(rows)), 32);
  ptx::wgmma_fence();
  Wgmma::multiply(sums, registers, descriptor);
  Wgmma::multiply(sums, registers, descriptor);
  ptx::wgmma_commit_group();
  ptx::wgmma_wait_group<0>();
#pragma unroll
  for (int i = 0; i < kN / 2; ++i) {
    asm volatile("" : "+f"(sums[i])::"memory");
    d[(row + i / 2 % 2 * 8) * kN + i / 4 * 8 + 2 * pair + i % 2] = sums[i];
  }
}

template <int kMatrices>
__device__ void store_matrices(uint32_t address) {
  uint32_t matrices[kMatrices];
#pragma unroll
  for (int i = 0; i < kMatrices; ++i) {
    const uint32_t first = 64 * i + threadIdx.x * 2;
    matrices[i] = (first + 1) << 16 | first;
  }
  ptx::stmatrix_m8n8_trans(address, matrices);
}

}  // namespace

extern "C" {

#define MULTIPLY(name, ...)                                                                     \
  __global__ void __launch_bounds__(128) name(const uint32_t* a, const uint32_t* b, float* d) { \
    multiply<__VA_ARGS__>(a, b, d);                                                             \
  }
MULTIPLY(wgmma_n8, 8)
MULTIPLY(wgmma_n16, 16)
MULTIPLY(wgmma_n32, 32)
MULTIPLY(wgmma_n64, 64)
MULTIPLY(wgmma_n128, 128)
MULTIPLY(wgmma_n160, 160)
MULTIPLY(wgmma_n192, 192)
MULTIPLY(wgmma_n256, 256)
MULTIPLY(wgmma_bf16_n16, 16, OfBf16)
MULTIPLY(wgmma_bf16_n32, 32, OfBf16)
MULTIPLY(wgmma_bf16_n64, 64, OfBf16)
MULTIPLY(wgmma_bf16_n128, 128, OfBf16)
MULTIPLY(wgmma_bf16_n160, 160, OfBf16)
MULTIPLY(wgmma_bf16_n192, 192, OfBf16)
MULTIPLY(wgmma_bf16_n256, 256, OfBf16)
MULTIPLY(wgmma_e4m3_n8, 8, OfE4m3)
MULTIPLY(wgmma_e4m3_n16, 16, OfE4m3)
MULTIPLY(wgmma_e4m3_n32, 32, OfE4m3)
MULTIPLY(wgmma_e4m3_n64, 64, OfE4m3)
MULTIPLY(wgmma_e4m3_n128, 128, OfE4m3)
MULTIPLY(wgmma_e4m3_n256, 256, OfE4m3)

// Element n of a matrix, row by row, is n and 64 more for each matrix before it. Lane i names row i of 32,
// each 16 bytes and as many between; all are written out.
__global__ void stmatrix(int32_t matrices, uint32_t* out) {
  __shared__ __align__(16) uint32_t rows[32][8];
  for (int i = 0; i < 8; ++i) rows[threadIdx.x][i] = 0xFFFFFFFF;
  __syncwarp();
  const uint32_t address = ptx::smem_u32(rows[threadIdx.x]);
  if (matrices == 1) store_matrices<1>(address);
  else if (matrices == 2) store_matrices<2>(address);
  else store_matrices<4>(address);
  __syncwarp();
  for (int i = 0; i < 8; ++i) out[threadIdx.x * 8 + i] = rows[threadIdx.x][i];
}

// One warpgroup gives registers back, the others take them: that they go on is all there is to see.
__global__ void __launch_bounds__(384, 1) setmaxnreg(uint32_t* out) {
  if (threadIdx.x < 128) ptx::setmaxnreg_dec<40>();
  else ptx::setmaxnreg_inc<232>();
  out[threadIdx.x] = 1;
}

// Of a warp, the lanes below `lanes` arrive on a barrier for five; lane 0 waits.
__global__ void mbarrier_arrive_if(uint32_t lanes, uint32_t* out) {
  __shared__ uint64_t mbar;
  if (threadIdx.x == 0) ptx::mbarrier_init(&mbar, 5);
  __syncwarp();
  ptx::mbarrier_arrive_if(&mbar, threadIdx.x < lanes);
  __syncwarp();
  while (!ptx::mbarrier_try_wait_parity(&mbar, 0)) {
  }
  out[threadIdx.x] = 1;
}

__global__ void mul_rn_f16x2(const uint32_t* in, uint32_t* out) {
  out[threadIdx.x] = ptx::mul_rn_f16x2(in[2 * threadIdx.x], in[2 * threadIdx.x + 1]);
}
__global__ void mul_rn_bf16x2(const uint32_t* in, uint32_t* out) {
  out[threadIdx.x] = ptx::mul_rn_bf16x2(in[2 * threadIdx.x], in[2 * threadIdx.x + 1]);
}
__global__ void lop3_select(const uint32_t* in, uint32_t* out) {
  out[threadIdx.x] = ptx::lop3_select(in[3 * threadIdx.x], in[3 * threadIdx.x + 1], in[3 * threadIdx.x + 2]);
}
__global__ void prmt(const uint32_t* in, uint32_t* out) {
  out[threadIdx.x] = ptx::prmt(in[3 * threadIdx.x], in[3 * threadIdx.x + 1], in[3 * threadIdx.x + 2]);
}
__global__ void half_twice(uint32_t x, uint32_t* out) {
  for (int half = 0; half < 2; ++half) out[half] = ptx::half_twice(x, half);
}

}  // extern "C"
