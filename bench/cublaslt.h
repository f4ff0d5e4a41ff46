// cublaslt.h -- the part of cuBLASLt's interface that the baseline calls, and of cuBLAS's the grouped GEMM,
// declared here: the libraries are loaded at run time where they are, so that neither their headers nor they
// themselves are needed to build. test/unit/bench/cublaslt_test.cpp compares this with the headers.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace bench::lt {

using Handle = struct HandleTag*;
using MatmulDesc = struct MatmulDescTag*;
using Layout = struct LayoutTag*;
using Preference = struct PreferenceTag*;
using BlasHandle = struct BlasHandleTag*;
struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace;
  int status;
  float waves;
  int reserved[4];
};

// Names and numbers of the header, without their prefixes.
inline constexpr int kStatusSuccess = 0, kStatusNotSupported = 15;
inline constexpr int kCompute32F = 68;
inline constexpr int kReal32F = 0, kReal16F = 2, kReal16BF = 14, kReal8FE4M3 = 28, kReal4FE2M1 = 33;
inline constexpr int32_t kOpAsItIs = 0, kOpTransposed = 1;
enum DescAttribute {
  kTransA = 3,
  kAScalePointer = 17,
  kBScalePointer = 18,
  kFastAccumulation = 25,
  kAScaleMode = 31,
  kBScaleMode = 32
};
enum LayoutAttribute { kBatchCount = 5, kStridedBatchOffset = 6 };
enum PreferenceAttribute {
  kMaxWorkspaceBytes = 1,
  kReductionSchemeMask = 3,
  kAlignmentA = 5,
  kAlignmentB,
  kAlignmentC,
  kAlignmentD
};
inline constexpr uint32_t kReduceInPlace = 1, kReduceComputeType = 2;
inline constexpr int32_t kScaleVec16Ue4m3 = 1;
inline constexpr size_t kFirstWithNvfp4 = 120800;  // of version()

#define DUALGEMM_LT_FUNCTIONS(X)                                                                             \
  X(version, cublasLtGetVersion, size_t())                                                                   \
  X(create, cublasLtCreate, int(Handle*))                                                                    \
  X(desc_create, cublasLtMatmulDescCreate, int(MatmulDesc*, int, int))                                       \
  X(desc_destroy, cublasLtMatmulDescDestroy, int(MatmulDesc))                                                \
  X(desc_set, cublasLtMatmulDescSetAttribute, int(MatmulDesc, DescAttribute, const void*, size_t))           \
  X(layout_create, cublasLtMatrixLayoutCreate, int(Layout*, int, uint64_t, uint64_t, int64_t))               \
  X(layout_destroy, cublasLtMatrixLayoutDestroy, int(Layout))                                                \
  X(layout_set, cublasLtMatrixLayoutSetAttribute, int(Layout, LayoutAttribute, const void*, size_t))         \
  X(preference_create, cublasLtMatmulPreferenceCreate, int(Preference*))                                     \
  X(preference_destroy, cublasLtMatmulPreferenceDestroy, int(Preference))                                    \
  X(preference_set, cublasLtMatmulPreferenceSetAttribute,                                                    \
    int(Preference, PreferenceAttribute, const void*, size_t))                                               \
  X(heuristic, cublasLtMatmulAlgoGetHeuristic,                                                               \
    int(Handle, MatmulDesc, Layout, Layout, Layout, Layout, Preference, int, Heuristic*, int*))              \
  X(matmul, cublasLtMatmul,                                                                                  \
    int(Handle, MatmulDesc, const void*, const void*, Layout, const void*, Layout, const void*, const void*, \
        Layout, void*, Layout, const Algorithm*, void*, size_t, cudaStream_t))

// Of cuBLAS, 12.5 and newer.
#define DUALGEMM_BLAS_FUNCTIONS(X)                                                                           \
  X(blas_create, cublasCreate_v2, int(BlasHandle*))                                                          \
  X(set_stream, cublasSetStream_v2, int(BlasHandle, cudaStream_t))                                           \
  X(set_workspace, cublasSetWorkspace_v2, int(BlasHandle, void*, size_t))                                    \
  X(grouped, cublasGemmGroupedBatchedEx,                                                                     \
    int(BlasHandle, const int*, const int*, const int*, const int*, const int*, const void*,                 \
        const void* const*, int, const int*, const void* const*, int, const int*, const void*, void* const*, \
        int, const int*, int, const int*, int))

struct Library {
  Handle handle = nullptr;
  BlasHandle blas = nullptr;  // null where there is no grouped GEMM
#define DUALGEMM_LT_MEMBER(member, name, ...) std::add_pointer_t<__VA_ARGS__> member = nullptr;
  DUALGEMM_LT_FUNCTIONS(DUALGEMM_LT_MEMBER)
  DUALGEMM_BLAS_FUNCTIONS(DUALGEMM_LT_MEMBER)
#undef DUALGEMM_LT_MEMBER
};

// Returns the libraries with handles for the current device, loaded by the first call, or null where there is
// no cuBLASLt.
const Library* library();

// Throws std::runtime_error unless a function returned 0.
void check(int status, const char* what);

}  // namespace bench::lt
