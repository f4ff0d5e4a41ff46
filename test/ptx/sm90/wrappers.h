// wrappers.h -- the kernels of wrappers_test.cu as a host compiler and nvcc both see them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

extern "C" {

__global__ void wgmma_n8(const uint32_t* a, const uint32_t* b, float* d);
__global__ void wgmma_n16(const uint32_t* a, const uint32_t* b, float* d);
__global__ void wgmma_n32(const uint32_t* a, const uint32_t* b, float* d);
__global__ void wgmma_n64(const uint32_t* a, const uint32_t* b, float* d);
__global__ void wgmma_n128(const uint32_t* a, const uint32_t* b, float* d);
__global__ void wgmma_n160(const uint32_t* a, const uint32_t* b, float* d);
__global__ void wgmma_n192(const uint32_t* a, const uint32_t* b, float* d);
__global__ void wgmma_n256(const uint32_t* a, const uint32_t* b, float* d);
__global__ void wgmma_bf16_n16(const uint32_t* a, const uint32_t* b, float* d);
__global__ void wgmma_bf16_n32(const uint32_t* a, const uint32_t* b, float* d);
__global__ void wgmma_bf16_n64(const uint32_t* a, const uint32_t* b, float* d);
__global__ void wgmma_bf16_n128(const uint32_t* a, const uint32_t* b, float* d);
__global__ void wgmma_bf16_n160(const uint32_t* a, const uint32_t* b, float* d);
__global__ void wgmma_bf16_n192(const uint32_t* a, const uint32_t* b, float* d);
__global__ void wgmma_bf16_n256(const uint32_t* a, const uint32_t* b, float* d);
__global__ void wgmma_e4m3_n8(const uint32_t* a, const uint32_t* b, float* d);
__global__ void wgmma_e4m3_n16(const uint32_t* a, const uint32_t* b, float* d);
__global__ void wgmma_e4m3_n32(const uint32_t* a, const uint32_t* b, float* d);
__global__ void wgmma_e4m3_n64(const uint32_t* a, const uint32_t* b, float* d);
__global__ void wgmma_e4m3_n128(const uint32_t* a, const uint32_t* b, float* d);
__global__ void wgmma_e4m3_n256(const uint32_t* a, const uint32_t* b, float* d);
__global__ void stmatrix(int32_t matrices, uint32_t* out);
__global__ void setmaxnreg(uint32_t* out);
__global__ void mbarrier_arrive_if(uint32_t lanes, uint32_t* out);
__global__ void mul_rn_f16x2(const uint32_t* in, uint32_t* out);
__global__ void mul_rn_bf16x2(const uint32_t* in, uint32_t* out);
__global__ void lop3_select(const uint32_t* in, uint32_t* out);
__global__ void prmt(const uint32_t* in, uint32_t* out);
__global__ void half_twice(uint32_t x, uint32_t* out);

}  // extern "C"
