// cublaslt_test.cpp -- what bench/cublaslt.h declares is what NVIDIA's headers say, where they are.
#include "bench/cublaslt.h"

#include "support/catch.hpp"

#if __has_include(<cublasLt.h>) && __has_include(<cublas_v2.h>)
#include <cublasLt.h>
#include <cublas_v2.h>

namespace {

using namespace bench;

static_assert(sizeof(lt::Algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(lt::Heuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(lt::Heuristic, workspace) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(lt::Heuristic, status) == offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(lt::kStatusSuccess == CUBLAS_STATUS_SUCCESS);
static_assert(lt::kStatusNotSupported == CUBLAS_STATUS_NOT_SUPPORTED);
static_assert(lt::kCompute32F == CUBLAS_COMPUTE_32F);
static_assert(lt::kReal32F == CUDA_R_32F && lt::kReal16F == CUDA_R_16F && lt::kReal16BF == CUDA_R_16BF);
static_assert(lt::kReal8FE4M3 == CUDA_R_8F_E4M3 && lt::kReal4FE2M1 == CUDA_R_4F_E2M1);
static_assert(lt::kOpAsItIs == CUBLAS_OP_N && lt::kOpTransposed == CUBLAS_OP_T);
static_assert(lt::kTransA == static_cast<int>(CUBLASLT_MATMUL_DESC_TRANSA));
static_assert(lt::kAScalePointer == static_cast<int>(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER));
static_assert(lt::kBScalePointer == static_cast<int>(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER));
static_assert(lt::kFastAccumulation == static_cast<int>(CUBLASLT_MATMUL_DESC_FAST_ACCUM));
static_assert(lt::kAScaleMode == static_cast<int>(CUBLASLT_MATMUL_DESC_A_SCALE_MODE));
static_assert(lt::kBScaleMode == static_cast<int>(CUBLASLT_MATMUL_DESC_B_SCALE_MODE));
static_assert(lt::kBatchCount == static_cast<int>(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT));
static_assert(lt::kStridedBatchOffset == static_cast<int>(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET));
static_assert(lt::kMaxWorkspaceBytes == static_cast<int>(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES));
static_assert(lt::kReductionSchemeMask == static_cast<int>(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK));
static_assert(lt::kAlignmentA == static_cast<int>(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES));
static_assert(lt::kAlignmentB == static_cast<int>(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES));
static_assert(lt::kAlignmentC == static_cast<int>(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES));
static_assert(lt::kAlignmentD == static_cast<int>(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES));
static_assert(lt::kReduceInPlace == CUBLASLT_REDUCTION_SCHEME_INPLACE);
static_assert(lt::kReduceComputeType == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
static_assert(lt::kScaleVec16Ue4m3 == CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3);

// A pointer to each function of the header converts to ours but for the types of handles and enumerations,
// which are passed as pointers and int.
template <class Ours, class Theirs>
struct SameParameters;
template <class R, class... Ours, class S, class... Theirs>
struct SameParameters<R (*)(Ours...), S (*)(Theirs...)> {
  static constexpr bool value =
      sizeof...(Ours) == sizeof...(Theirs) && sizeof(R) == sizeof(S) &&
      ((sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>)&&...);
};
#define CHECK_FUNCTION(member, name, ...) \
  static_assert(SameParameters<decltype(lt::Library::member), decltype(&::name)>::value, #name);
DUALGEMM_LT_FUNCTIONS(CHECK_FUNCTION)
DUALGEMM_BLAS_FUNCTIONS(CHECK_FUNCTION)
#undef CHECK_FUNCTION

}  // namespace

TEST_CASE("what the benchmark declares of cuBLASLt and cuBLAS is what their headers say", "[bench]") {
  SUCCEED();
}
#endif
