// tensor_map.cpp -- cuTensorMapEncodeTiled for the operands and their scale factors. The driver's function is
// looked up at run time through the CUDA runtime, so that programs need not link libcuda.
//
// `inner` dimensions run along K; behind them come rows (operands) or blocks of 128 rows (scale factors), and
// then problems. What a box reads beyond the end of a dimension arrives as zero, which is what makes any M, N
// and K % 16 work: zero data times any finite factor adds nothing. It never reaches into the next problem.
//
// Strides are what the caller says, so one need not be a multiple of the one before it. The driver's
// reference asks for that; its encoder does not (test/h200), and the address of an element is a sum of
// products.

#include "host/tensor_map.h"

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <cinttypes>
#include <cstdio>

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

constexpr cuuint32_t kMaxRank = 4;

struct MapShape {
  const char* name;
  CUtensorMapDataType type;
  CUtensorMapSwizzle swizzle;
  const void* base;
  cuuint32_t rank;
  cuuint64_t dims[kMaxRank];         // elements of `type`, innermost first
  cuuint64_t strides[kMaxRank - 1];  // bytes, of the dimensions behind the innermost
  cuuint32_t box[kMaxRank];
};

// "{1, 2, 3}"
struct NumbersText {
  char text[96] = "";
  template <typename Number>
  NumbersText(const Number* numbers, cuuint32_t count) {
    int used = 0;
    for (cuuint32_t i = 0; i < count; ++i)
      used += std::snprintf(text + used, sizeof text - static_cast<size_t>(used), "%s%" PRIu64,
                            i ? ", " : "{", static_cast<uint64_t>(numbers[i]));
    std::snprintf(text + used, sizeof text - static_cast<size_t>(used), "}");
  }
};

dualgemm_status_t encode_map(EncodeTiled encode, const MapShape& shape, CUtensorMap* map) {
  constexpr cuuint32_t kElementStrides[kMaxRank] = {1, 1, 1, 1};
  // L2 promotion off: larger sectors were 6 % slower for streams of whole boxes on the Hopper GPU they were
  // tried on.
  const CUresult result =
      encode(map, shape.type, shape.rank, const_cast<void*>(shape.base), shape.dims, shape.strides, shape.box,
             kElementStrides, CU_TENSOR_MAP_INTERLEAVE_NONE, shape.swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result == CUDA_SUCCESS) return DUALGEMM_STATUS_SUCCESS;
  // CUresult and cudaError_t share their numbers.
  set_last_cuda_error(static_cast<int>(result));
  return fail(DUALGEMM_STATUS_CUDA_ERROR,
              "cuTensorMapEncodeTiled failed with %d for %s: type %d, rank %" PRIu32
              ", address %p, dims %s, strides %s, box %s, element strides 1, interleave 0, swizzle %d, "
              "L2 promotion 0, fill 0",
              static_cast<int>(result), shape.name, static_cast<int>(shape.type), shape.rank, shape.base,
              NumbersText(shape.dims, shape.rank).text, NumbersText(shape.strides, shape.rank - 1).text,
              NumbersText(shape.box, shape.rank).text, static_cast<int>(shape.swizzle));
}

// Packed E2M1 as bytes, two elements each. A box row is 128 bytes = kTileK elements and is stored 128-byte
// swizzled, the layout the matrix descriptors of the mma expect. Bytes rather than the packed 4-bit type:
// that one wants K % 128.
MapShape operand(const char* name, const void* base, int32_t rows, int32_t k, int64_t ld, int32_t problems,
                 int64_t stride, int32_t box_rows, int32_t tile_k) {
  const auto u64 = [](int64_t value) { return static_cast<cuuint64_t>(value); };
  const auto u32 = [](int64_t value) { return static_cast<cuuint32_t>(value); };
  return {name,
          CU_TENSOR_MAP_DATA_TYPE_UINT8,
          CU_TENSOR_MAP_SWIZZLE_128B,
          base,
          3,
          {u64(k / 2), u64(rows), u64(problems)},
          {u64(ld / 2), u64(stride / 2)},
          {u32(tile_k / 2), u32(box_rows), 1}};
}

// Scale factors as 8-byte words, an atom of 512 bytes being the innermost dimension: a box may have 256 words
// per dimension, and atoms along K as many as a slot of the ring holds.
MapShape scale_factors(const char* name, const void* base, int64_t row_blocks, int32_t k, int32_t problems,
                       int64_t stride, int32_t box_atoms, int32_t box_row_blocks) {
  constexpr cuuint32_t kWordsPerAtom = kSfAtomBytes / sizeof(int64_t);
  const auto u64 = [](int64_t value) { return static_cast<cuuint64_t>(value); };
  const auto u32 = [](int64_t value) { return static_cast<cuuint32_t>(value); };
  return {name,
          CU_TENSOR_MAP_DATA_TYPE_INT64,
          CU_TENSOR_MAP_SWIZZLE_NONE,
          base,
          4,
          {kWordsPerAtom, u64(sf_atoms(k)), u64(row_blocks), u64(problems)},
          {kSfAtomBytes, u64(kSfAtomBytes * sf_atoms(k)), u64(stride)},
          {kWordsPerAtom, u32(box_atoms), u32(box_row_blocks), 1}};
}

// Bands of 128 rows of SFA. Groups that share one start at a band each, and their rows are known to the
// device only; never more than this.
int64_t sfa_row_blocks(const Problem& problem) {
  const int32_t m = problem.args.m;
  if (!problem.group_offsets()) return sf_row_blocks(m);
  return (m + int64_t{kSfAtomRows - 1} * problem.groups_with_rows()) / kSfAtomRows;
}

}  // namespace

dualgemm_status_t encode_tensor_maps(const Problem& problem, const Instance& instance, Params* params) {
  EncodeTiled encode = nullptr;
  if (auto status = find_encode_tiled(&encode)) return status;

  const dualgemm_args_t& x = problem.args;
  const Instance& i = instance;
  const int32_t a_problems = problem.a_problems, b_problems = problem.problems;
  const int32_t atoms = i.scale_k_tiles * (i.tile_k / kSfAtomElems);
  const int64_t a_blocks = sfa_row_blocks(problem), b_blocks = sf_row_blocks(x.n);
  const struct {
    MapShape shape;
    CUtensorMap* map;
  } maps[] = {
      {operand("a", x.a, x.m, x.k, x.lda, a_problems, x.batch_stride_a, i.a_box_rows, i.tile_k), &params->a},
      {operand("b1", x.b1, x.n, x.k, x.ldb1, b_problems, x.batch_stride_b1, i.b_box_rows, i.tile_k),
       &params->b1},
      {operand("b2", x.b2, x.n, x.k, x.ldb2, b_problems, x.batch_stride_b2, i.b_box_rows, i.tile_k),
       &params->b2},
      {scale_factors("sfa", x.sfa, a_blocks, x.k, a_problems, x.batch_stride_sfa, atoms, 1), &params->sfa},
      {scale_factors("sfb1", x.sfb1, b_blocks, x.k, b_problems, x.batch_stride_sfb1, atoms, i.sfb_blocks),
       &params->sfb1},
      {scale_factors("sfb2", x.sfb2, b_blocks, x.k, b_problems, x.batch_stride_sfb2, atoms, i.sfb_blocks),
       &params->sfb2},
  };
  for (const auto& m : maps)
    if (auto status = encode_map(encode, m.shape, m.map)) return status;
  return DUALGEMM_STATUS_SUCCESS;
}

}  // namespace dualgemm
