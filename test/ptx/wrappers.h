// wrappers.h -- the kernels of wrappers_test.cu and wrappers_cluster_test.cu as a host compiler and nvcc both
// see them: to C++ each is the handle that a launch takes. Those files say what each of them writes.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>

extern "C" {

__global__ void elect_sync(uint32_t* out);
__global__ void barrier_sync(uint32_t threads, uint32_t* out);
__global__ void barrier_arrive(uint32_t threads, uint32_t* out);
__global__ void barrier_red_or(uint32_t threads, int32_t chosen, uint32_t* out);
__global__ void griddepcontrol(const uint32_t* in, int32_t waits, uint32_t* out);

__global__ void mbarrier_arrive(int32_t arrivals, uint32_t* out);
__global__ void mbarrier_arrive_expect_tx(const __grid_constant__ CUtensorMap map, uint32_t bytes,
                                          uint32_t* out);
__global__ void mbarrier_try_wait_parity(uint32_t parity, uint32_t* out);

__global__ void cp_async_bulk_tensor_3d(const __grid_constant__ CUtensorMap map, int32_t c0, int32_t c1,
                                        int32_t c2, int32_t last, uint32_t* out);
__global__ void cp_async_bulk_tensor_3d_swizzled(const __grid_constant__ CUtensorMap map, uint32_t* out);
__global__ void cp_async_bulk_tensor_4d(const __grid_constant__ CUtensorMap map, int32_t c0, int32_t c1,
                                        int32_t c2, int32_t c3, uint32_t* out);
__global__ void cp_async_bulk_prefetch_tensor_3d(const __grid_constant__ CUtensorMap map, int32_t c0,
                                                 int32_t c1, int32_t c2, uint32_t* out);
__global__ void cp_async_bulk_shared_to_global(uint32_t bytes, int32_t wait_read, int32_t wait_written,
                                               uint32_t* out);
__global__ void prefetch_tensormap(const __grid_constant__ CUtensorMap map, uint32_t* out);

__global__ void tcgen05_alloc(uint32_t* out);
__global__ void tcgen05_dealloc(uint32_t* out);
__global__ void tcgen05_cp_32x128b_warpx4(const __grid_constant__ CUtensorMap rows, int32_t width,
                                          uint32_t* out);
__global__ void tcgen05_mma_mxf4nvf4_block16(const __grid_constant__ CUtensorMap a,
                                             const __grid_constant__ CUtensorMap b,
                                             const __grid_constant__ CUtensorMap scales, int32_t times,
                                             int32_t collector, uint32_t* out);

__global__ void ex2_approx_ftz(const float* in, float* out);
__global__ void rcp_approx_ftz(const float* in, float* out);
__global__ void cvt_rn_f16x2_f32(const float* in, uint32_t* out);
__global__ void cvt_rn_bf16x2_f32(const float* in, uint32_t* out);

__global__ void min_nan(const float* in, float* out);
__global__ void max_nan(const float* in, float* out);
__global__ void cvt_rn_satfinite_e4m3x2_f32(const float* in, uint32_t* out);
__global__ void cvt_rn_f16x2_e4m3x2(const uint32_t* in, float* out);
__global__ void cvt_rn_satfinite_e2m1x8_f32(const float* in, uint32_t* out);

__global__ void st_global_v8_b32(uint32_t* out);
__global__ void st_global_v4_b32(uint32_t* out);
__global__ void st_global_v2_b32(uint32_t* out);
__global__ void red_global_max_s32(const int32_t* in, int32_t* out);
__global__ void atom_acq_rel_gpu_global_add_u32(uint32_t* count, uint32_t* words, uint32_t* out);
__global__ void ld_acquire_gpu_global_u32(uint32_t* count, uint32_t* words, uint32_t* out);

// These run in clusters of two.
__global__ void cluster_ctarank(uint32_t* out);
__global__ void st_async_v4_b32(uint32_t bytes, uint32_t* out);
__global__ void mbarrier_arrive_relaxed_cluster(int32_t arrivals, uint32_t waiter, uint32_t* out);
__global__ void cp_async_bulk_tensor_3d_pair(const __grid_constant__ CUtensorMap map, int32_t c0, int32_t c1,
                                             int32_t c2, uint32_t bytes, uint32_t* out);
__global__ void cp_async_bulk_tensor_4d_pair(const __grid_constant__ CUtensorMap map, int32_t c0, int32_t c1,
                                             int32_t c2, int32_t c3, uint32_t bytes, uint32_t* out);
__global__ void cp_async_bulk_tensor_4d_pair_multicast(const __grid_constant__ CUtensorMap map, int32_t c0,
                                                       int32_t c1, int32_t c2, int32_t c3, uint32_t issuer,
                                                       uint32_t ranks, uint32_t* out);
__global__ void tcgen05_commit_multicast(const __grid_constant__ CUtensorMap rows, uint32_t ranks,
                                         uint32_t* out);
__global__ void tcgen05_mma_mxf4nvf4_block16_pair(const __grid_constant__ CUtensorMap a,
                                                  const __grid_constant__ CUtensorMap b,
                                                  const __grid_constant__ CUtensorMap scales,
                                                  int32_t collector, uint32_t* out);

}  // extern "C"
