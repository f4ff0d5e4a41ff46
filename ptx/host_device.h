// host_device.h -- the two function qualifiers. A header with DUALGEMM_HOST_DEVICE functions is plain C++ for
// a host compiler, so that tests can run these functions on a CPU.
#pragma once

#define DUALGEMM_DEVICE __device__ __forceinline__

#ifdef __CUDACC__
#define DUALGEMM_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define DUALGEMM_HOST_DEVICE inline
#endif
