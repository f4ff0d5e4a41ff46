// tensor_map.cpp -- cuTensorMapEncodeTiled for the operands and their scale factors.
//
// `inner` dimensions run along K. After them come rows (operands) or blocks of 128 rows (scale factors), and
// last problems. Elements that a box has beyond the end of a dimension arrive as zero. That is why any M, any
// N and any K that is a multiple of 16 works: zero data times a finite factor adds nothing, and the caller's
// factors beyond K / 16 are zero. A box never reaches into the next problem, because problems are a dimension
// of their own. Groups with OFFSETS are one problem here.
//
// Strides are what the caller says, so a stride need not be a multiple of the stride before it. The driver's
// reference asks for such multiples; the encoder that was tried, on an H200, does not. The address of an
// element is the base plus the sum of its coordinates times their strides, for which they do not matter.

#include "host/launch/tensor_map.h"

#include <cudaTypedefs.h>

#include <cinttypes>
#include <cstdint>

#include "host/common/cuda_error.h"
#include "host/common/driver_function.h"
#include "host/common/status.h"
#include "host/common/text.h"
#include "host/launch/prepare_a.h"
#include "kernel/boxes.h"

namespace dualgemm {
namespace {

using EncodeTiled = PFN_cuTensorMapEncodeTiled_v12000;
constinit DriverFunction encode_tiled{"cuTensorMapEncodeTiled", 12000};

constexpr cuuint32_t kMaxRank = 4;

struct MapShape {
  const char* name;
  CUtensorMapDataType type;
  CUtensorMapSwizzle swizzle;
  const void* base;
  cuuint32_t rank;
  cuuint64_t dims[kMaxRank];         // elements of `type`, innermost first
  cuuint64_t strides[kMaxRank - 1];  // bytes, of all dimensions but the innermost
  Box box;
};

// Writes numbers as "{1, 2, 3}".
template <typename Number>
Text<96> numbers_text(const Number* numbers, cuuint32_t count) {
  Text<96> text;
  for (cuuint32_t i = 0; i < count; ++i)
    text.add("%s%" PRIu64, i ? ", " : "{", static_cast<uint64_t>(numbers[i]));
  text.add("}");
  return text;
}

dualgemm_status_t encode_map(EncodeTiled encode, const MapShape& shape, CUtensorMap* map) {
  constexpr cuuint32_t kElementStrides[kMaxRank] = {1, 1, 1, 1};
  // L2 promotion is off. With promotion to larger sectors, streams of whole boxes were 6 % slower where it
  // was tried, on compute capability 9.0.
  const CUresult result =
      encode(map, shape.type, shape.rank, const_cast<void*>(shape.base), shape.dims, shape.strides,
             shape.box.extent, kElementStrides, CU_TENSOR_MAP_INTERLEAVE_NONE, shape.swizzle,
             CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result == CUDA_SUCCESS) return DUALGEMM_STATUS_SUCCESS;
  // CUresult and cudaError_t share their numbers.
  if (const auto error = static_cast<cudaError_t>(result); ends_context(error))
    return fail_cuda(error, "cuTensorMapEncodeTiled");
  set_last_cuda_error(static_cast<int>(result));
  return fail(DUALGEMM_STATUS_CUDA_ERROR,
              "cuTensorMapEncodeTiled failed with %d for %s: type %d, rank %" PRIu32
              ", address %p, dims %s, strides %s, box %s, element strides 1, interleave 0, swizzle %d, "
              "L2 promotion 0, fill 0",
              static_cast<int>(result), shape.name, static_cast<int>(shape.type), shape.rank, shape.base,
              numbers_text(shape.dims, shape.rank).get(), numbers_text(shape.strides, shape.rank - 1).get(),
              numbers_text(shape.box.extent, shape.rank).get(), static_cast<int>(shape.swizzle));
}

cuuint64_t u64(int64_t value) { return static_cast<cuuint64_t>(value); }

// Describes rows of `columns` units of this type, in the 128-byte swizzle.
MapShape rows_map(const Tensor& t, CUtensorMapDataType type, uint64_t columns, const Box& box) {
  return {t.name,
          type,
          CU_TENSOR_MAP_SWIZZLE_128B,
          t.base,
          3,
          {columns, u64(t.most_rows), u64(t.problems)},
          {u64(t.bytes(t.pitch)), u64(t.bytes(t.stride))},
          box};
}

// Operands are packed E2M1, described as bytes of two elements each. A row of a box is 128 bytes, the K of a
// k-tile, in the 128-byte swizzle that the matrix descriptors of the mma expect. The packed 4-bit type
// 16U4_ALIGN8B would do the same, but count the box in elements. The type 16U4_ALIGN16B leaves gaps in shared
// memory.
MapShape operand_map(const Tensor& t, const Box& box) {
  return rows_map(t, CU_TENSOR_MAP_DATA_TYPE_UINT8, u64(t.bytes(t.row_elements)), box);
}

// An A of 16 bits comes in panels: a box row is 64 elements, 128 bytes, as long as a row of the swizzle.
MapShape sixteen_bit_map(const Tensor& t, const Box& box) {
  return rows_map(t, CU_TENSOR_MAP_DATA_TYPE_UINT16, u64(t.row_elements), box);
}

MapShape scales_map(const Tensor& t, const Box& box) {
  return {t.name,
          CU_TENSOR_MAP_DATA_TYPE_INT64,
          CU_TENSOR_MAP_SWIZZLE_NONE,
          t.base,
          4,
          {kSfAtomWords, u64(t.row_elements / kSfAtomBytes), u64(t.most_rows), u64(t.problems)},
          {kSfAtomBytes, u64(t.pitch), u64(t.stride)},
          box};
}

// Describes A as a pass has prepared it in the workspace: a row has panels of 64 places, 128 bytes.
MapShape prepared_map(const Tensor& t, const Box& box) {
  return {t.name,
          CU_TENSOR_MAP_DATA_TYPE_UINT16,
          CU_TENSOR_MAP_SWIZZLE_128B,
          t.base,
          4,
          {kPanelK, u64(t.rows), u64(t.pitch) / kPanelK, u64(t.problems)},
          {u64(t.bytes(t.pitch)), kBoxRowBytes, u64(t.bytes(t.stride))},
          box};
}

}  // namespace

dualgemm_status_t encode_tensor_maps(const Problem& problem, const Plan& plan, Params* params) {
  EncodeTiled encode = nullptr;
  if (auto status = encode_tiled.find(&encode)) return status;

  const Boxes boxes = boxes_of(plan);
  const struct {
    CUtensorMap* map;
    const Box& box;
  } maps[kMaps] = {{&params->a, boxes.a},     {&params->b1, boxes.b},     {&params->b2, boxes.b},
                   {&params->sfa, boxes.sfa}, {&params->sfb1, boxes.sfb}, {&params->sfb2, boxes.sfb}};
  for (int32_t i = 0; i < kMaps; ++i) {
    if (plan.prepared_a() && (i == kA || i == kSfa)) continue;  // the pass reads them
    const Tensor& t = problem.inputs[i];
    if (!t.given()) continue;  // an A of 16 bits has no factors
    const MapShape shape = !t.has_pitch()               ? scales_map(t, maps[i].box)
                           : i == kA && plan.orders_a() ? sixteen_bit_map(t, maps[i].box)
                                                        : operand_map(t, maps[i].box);
    if (auto status = encode_map(encode, shape, maps[i].map)) return status;
  }
  if (plan.prepared_a())
    return encode_map(encode, prepared_map(prepared_a(problem), boxes.prepared_a), &params->prepared_a);
  return DUALGEMM_STATUS_SUCCESS;
}

}  // namespace dualgemm
