// tensor_map.cpp -- cuTensorMapEncodeTiled for the operands and their scale factors. The driver's function is
// looked up at run time through the CUDA runtime, so that programs need not link libcuda.
//
// All maps are two-dimensional: `inner` runs along K and is contiguous, `outer` counts rows (operands) or
// bands of 128 rows (scale factors). What a box reads beyond either end arrives as zero, which is what makes
// any M, N and K % 16 work: zero data times any finite factor adds nothing.

#include "host/tensor_map.h"

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <cinttypes>

#include "host/launch.h"
#include "host/sf_layout.h"
#include "host/status.h"

namespace dualgemm {
namespace {

using EncodeTiled = PFN_cuTensorMapEncodeTiled_v12000;

dualgemm_status_t find_encode_tiled(EncodeTiled* encode) {
  // A failed look-up is not remembered: a process may initialise CUDA later than its first call into this
  // library.
  static std::atomic<EncodeTiled> found{nullptr};
  *encode = found.load(std::memory_order_relaxed);
  if (*encode) return DUALGEMM_STATUS_SUCCESS;

  void* symbol = nullptr;
  cudaDriverEntryPointQueryResult result{};
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &symbol, 12000, cudaEnableDefault, &result);
  if (error != cudaSuccess)
    return fail_cuda(error, "cudaGetDriverEntryPointByVersion(cuTensorMapEncodeTiled)");
  if (result != cudaDriverEntryPointSuccess || !symbol)
    return fail(DUALGEMM_STATUS_DRIVER_TOO_OLD, "the driver has no cuTensorMapEncodeTiled (query result %d)",
                static_cast<int>(result));
  *encode = reinterpret_cast<EncodeTiled>(symbol);
  found.store(*encode, std::memory_order_relaxed);
  return DUALGEMM_STATUS_SUCCESS;
}

struct MapShape {
  const char* name;
  CUtensorMapDataType type;
  const void* base;
  cuuint64_t inner, outer;  // elements of `type`
  cuuint64_t pitch_bytes;   // between outer indices
  cuuint32_t box_inner, box_outer;
  CUtensorMapSwizzle swizzle;
};

dualgemm_status_t encode_map(EncodeTiled encode, const MapShape& shape, CUtensorMap* map) {
  const cuuint64_t dims[] = {shape.inner, shape.outer};
  const cuuint64_t strides[] = {shape.pitch_bytes};
  const cuuint32_t box[] = {shape.box_inner, shape.box_outer};
  const cuuint32_t element_strides[] = {1, 1};
  // L2 promotion off: larger sectors were 6 % slower for streams of whole boxes on the Hopper GPU they were
  // tried on.
  const CUresult result = encode(map, shape.type, 2, const_cast<void*>(shape.base), dims, strides, box,
                                 element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE, shape.swizzle,
                                 CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result == CUDA_SUCCESS) return DUALGEMM_STATUS_SUCCESS;
  // CUresult and cudaError_t share their numbers.
  set_last_cuda_error(static_cast<int>(result));
  return fail(DUALGEMM_STATUS_CUDA_ERROR,
              "cuTensorMapEncodeTiled failed with %d for %s: type %d, rank 2, address %p, dims {%" PRIu64
              ", %" PRIu64 "}, strides {%" PRIu64 "}, box {%" PRIu32 ", %" PRIu32
              "}, element strides {1, 1}, interleave 0, swizzle %d, L2 promotion 0, fill 0",
              static_cast<int>(result), shape.name, static_cast<int>(shape.type), shape.base,
              static_cast<uint64_t>(shape.inner), static_cast<uint64_t>(shape.outer),
              static_cast<uint64_t>(shape.pitch_bytes), shape.box_inner, shape.box_outer,
              static_cast<int>(shape.swizzle));
}

// Packed E2M1 as bytes, two elements each. A box row is 128 bytes = kTileK elements and is stored 128-byte
// swizzled, the layout the matrix descriptors of the mma expect. Bytes rather than the packed 4-bit type:
// that one wants K % 128.
MapShape operand(const char* name, const void* base, int32_t rows, int32_t k, int64_t ld, int32_t box_rows,
                 int32_t tile_k) {
  return {name,
          CU_TENSOR_MAP_DATA_TYPE_UINT8,
          base,
          static_cast<cuuint64_t>(k) / 2,
          static_cast<cuuint64_t>(rows),
          static_cast<cuuint64_t>(ld) / 2,
          static_cast<cuuint32_t>(tile_k) / 2,
          static_cast<cuuint32_t>(box_rows),
          CU_TENSOR_MAP_SWIZZLE_128B};
}

// Scale factors as 8-byte words: atoms along K are contiguous, so the four atoms of a K tile are one straight
// run, and a box may have 256 words per dimension.
MapShape scale_factors(const char* name, const void* base, int32_t rows, int32_t k, int32_t tile_k) {
  constexpr cuuint64_t kWordsPerAtom = kSfAtomBytes / sizeof(int64_t);
  const auto atoms = static_cast<cuuint64_t>(sf_atoms(k));
  return {name,
          CU_TENSOR_MAP_DATA_TYPE_INT64,
          base,
          kWordsPerAtom * atoms,
          static_cast<cuuint64_t>(sf_row_blocks(rows)),
          kSfAtomBytes * atoms,
          static_cast<cuuint32_t>(kWordsPerAtom * static_cast<cuuint64_t>(tile_k / kSfAtomElems)),
          1,
          CU_TENSOR_MAP_SWIZZLE_NONE};
}

}  // namespace

dualgemm_status_t encode_tensor_maps(const Problem& problem, const Instance& instance, Params* params) {
  EncodeTiled encode = nullptr;
  if (auto status = find_encode_tiled(&encode)) return status;

  const dualgemm_args_t& args = problem.args;
  const Instance& i = instance;
  const struct {
    MapShape shape;
    CUtensorMap* map;
  } maps[] = {
      {operand("a", args.a, args.m, args.k, args.lda, i.a_box_rows, i.tile_k), &params->a},
      {operand("b1", args.b1, args.n, args.k, args.ldb1, i.b_box_rows, i.tile_k), &params->b1},
      {operand("b2", args.b2, args.n, args.k, args.ldb2, i.b_box_rows, i.tile_k), &params->b2},
      {scale_factors("sfa", args.sfa, args.m, args.k, i.tile_k), &params->sfa},
      {scale_factors("sfb1", args.sfb1, args.n, args.k, i.tile_k), &params->sfb1},
      {scale_factors("sfb2", args.sfb2, args.n, args.k, i.tile_k), &params->sfb2},
  };
  for (const auto& m : maps)
    if (auto status = encode_map(encode, m.shape, m.map)) return status;
  return DUALGEMM_STATUS_SUCCESS;
}

}  // namespace dualgemm
