// conversion.cpp -- see conversion.h.

#include "host/convert/conversion.h"

#include <cinttypes>
#include <initializer_list>
#include <limits>

#include "host/common/names.h"
#include "host/common/status.h"
#include "host/common/structure.h"
#include "host/common/tensor_rules.h"
#include "host/convert/rules.h"
#include "kernel/convert/params.h"

namespace dualgemm {
namespace {

constexpr int kCodeBits = 4, kByteBits = 8;

// Check the fields that both structures have.
template <class Args>
dualgemm_status_t check_flags(const Args& args) {
  if (auto status = check_pdl_flag(args.flags)) return status;
  return check_range("group_mode", args.group_mode, DUALGEMM_GROUP_MASKED);
}

template <class Args>
dualgemm_status_t check_counts(const Args& args) {
  const struct {
    const char* name;
    int32_t value;
  } counts[] = {{"rows", args.rows}, {"k", args.k}, {"batch", args.batch}};
  for (const auto& c : counts)
    if (auto status = check_count(c.name, c.value)) return status;
  if (args.group_mode == DUALGEMM_GROUP_NONE) {
    if (args.groups != 0)
      return fail(DUALGEMM_STATUS_INVALID_VALUE, "groups=%" PRId32 ": must be 0 without a group_mode",
                  args.groups);
    return kOk;
  }
  if (args.groups < 1 || args.groups > DUALGEMM_MAX_GROUPS)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "groups=%" PRId32 ": must be in [1, %d] with a group_mode",
                args.groups, DUALGEMM_MAX_GROUPS);
  if (args.batch > 1)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "batch=%" PRId32 ": must be 0 or 1 with a group_mode",
                args.batch);
  return kOk;
}

template <class Args>
Rows rows_of(const Args& args) {
  const bool grouped = args.group_mode != DUALGEMM_GROUP_NONE;
  return {args.rows, grouped ? args.groups : std::max(args.batch, 1), args.group_mode, args.group_rows};
}

dualgemm_status_t check_k(int32_t k) {
  if (k % kSfBlock == 0) return kOk;
  return fail(DUALGEMM_STATUS_INVALID_SHAPE, "k=%" PRId32 ": must be a multiple of %d", k, kSfBlock);
}

template <class Args>
dualgemm_status_t check_group_rows_given(const Args& args) {
  return args.group_mode == DUALGEMM_GROUP_NONE ? kOk : check_given("group_rows", args.group_rows);
}

template <class Args>
dualgemm_status_t check_group_rows_absent(const Args& args) {
  return args.group_mode != DUALGEMM_GROUP_NONE
             ? kOk
             : check_absent("group_rows", args.group_rows, "without a group_mode");
}

struct Stride {
  const char* name;
  int64_t value;
};

// With OFFSETS the rows of all groups are one matrix.
dualgemm_status_t check_shared_rows(int32_t group_mode, std::initializer_list<Stride> strides) {
  if (group_mode != DUALGEMM_GROUP_OFFSETS) return kOk;
  for (const Stride& stride : strides)
    if (stride.value != 0)
      return fail(DUALGEMM_STATUS_INVALID_VALUE,
                  "%s=%" PRId64 ": must be 0 with group_mode=%" PRId32
                  " (%s), where the rows of all groups follow each other",
                  stride.name, stride.value, group_mode, group_mode_name(group_mode));
  return kOk;
}

Tensor group_rows_tensor(const Rows& rows) {
  return integers("group_rows", rows.group_rows, rows.problems + (rows.offsets() ? 1 : 0));
}

Tensor atoms_tensor(const char* name, const char* stride_name, const void* base, const Rows& rows,
                    int64_t stride, int32_t k) {
  Tensor t{name, nullptr, stride_name, base, rows.matrices(), stride, rows.known_blocks()};
  t.row_elements = sf_atoms(k) * kSfAtomBytes;
  t.bits = kByteBits;
  return resolved(t);
}

dualgemm_status_t check_q_dtype(int32_t q_dtype) {
  if (q_dtype == DUALGEMM_DTYPE_NVFP4 || q_dtype == DUALGEMM_DTYPE_FP8_E4M3) return kOk;
  return fail(DUALGEMM_STATUS_INVALID_VALUE, "q_dtype=%" PRId32 " (%s): must be %d (%s) or %d (%s)", q_dtype,
              dtype_name(q_dtype), DUALGEMM_DTYPE_NVFP4, dtype_name(DUALGEMM_DTYPE_NVFP4),
              DUALGEMM_DTYPE_FP8_E4M3, dtype_name(DUALGEMM_DTYPE_FP8_E4M3));
}

dualgemm_status_t check_scales(const dualgemm_quantize_args_t& args) {
  const bool given = args.scale_mode == DUALGEMM_SCALE_GIVEN;
  constexpr float kLargest = std::numeric_limits<float>::max() / 512;
  if (!(args.global_scale > 0 && args.global_scale <= kLargest))
    return fail(DUALGEMM_STATUS_INVALID_VALUE,
                "global_scale=%g: must be above 0, and at most the largest float over 512",
                static_cast<double>(args.global_scale));
  if (!given && args.global_scale != 1)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "global_scale=%g: must be 1 unless scale_mode is GIVEN",
                static_cast<double>(args.global_scale));
  if (args.global_scale_stride < 0)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "global_scale_stride=%" PRId64 ": must not be negative",
                args.global_scale_stride);
  return kOk;
}

dualgemm_status_t check_gather(const dualgemm_quantize_args_t& args) {
  if (!args.row_index) {
    if (args.x_rows == 0) return kOk;
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "x_rows=%" PRId32 ": must be 0 where row_index is NULL",
                args.x_rows);
  }
  if (args.x_rows < 1 || args.x_rows > kMaxExtent)
    return fail(DUALGEMM_STATUS_INVALID_VALUE,
                "x_rows=%" PRId32 ": must be in [1, %" PRId32 "] with a row_index", args.x_rows, kMaxExtent);
  if (args.group_mode == DUALGEMM_GROUP_MASKED || args.batch > 1)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                "row_index=%p: must be NULL with batch=%" PRId32 " and group_mode=%" PRId32
                " (%s): the rows have to lie in one matrix",
                static_cast<const void*>(args.row_index), args.batch, args.group_mode,
                group_mode_name(args.group_mode));
  return kOk;
}

dualgemm_status_t check_pointers(const dualgemm_quantize_args_t& args) {
  if (auto status = check_given("x", args.x)) return status;
  if (auto status = check_given("q", args.q)) return status;
  const bool fp8 = args.q_dtype == DUALGEMM_DTYPE_FP8_E4M3;
  if (!fp8)
    if (auto status = check_given("sf", args.sf)) return status;
  if (auto status = check_group_rows_given(args)) return status;
  if (auto status = check_gather(args)) return status;
  const bool tensor = args.scale_mode == DUALGEMM_SCALE_TENSOR, row = args.scale_mode == DUALGEMM_SCALE_ROW;
  if (tensor)
    if (auto status = check_given("tensor_scales", args.tensor_scales)) return status;
  if (row)
    if (auto status = check_given("row_scale", args.row_scale)) return status;
  if (auto status = check_group_rows_absent(args)) return status;
  if (fp8) {
    if (auto status = check_absent("sf", args.sf, "with q_dtype=4 (FP8_E4M3)")) return status;
    if (args.batch_stride_sf != 0)
      return fail(DUALGEMM_STATUS_INVALID_VALUE, "batch_stride_sf=%" PRId64 ": must be 0 where sf is NULL",
                  args.batch_stride_sf);
  }
  if (!tensor)
    if (auto status = check_absent("tensor_scales", args.tensor_scales, "unless scale_mode is TENSOR"))
      return status;
  if (!row)
    if (auto status = check_absent("row_scale", args.row_scale, "unless scale_mode is ROW")) return status;
  if (args.scale_mode != DUALGEMM_SCALE_GIVEN)
    if (auto status = check_absent("global_scale_dev", args.global_scale_dev, "unless scale_mode is GIVEN"))
      return status;
  if (!args.global_scale_dev && args.global_scale_stride != 0)
    return fail(DUALGEMM_STATUS_INVALID_VALUE,
                "global_scale_stride=%" PRId64 ": must be 0 where global_scale_dev is NULL",
                args.global_scale_stride);
  if (!row && args.batch_stride_row_scale != 0)
    return fail(DUALGEMM_STATUS_INVALID_VALUE,
                "batch_stride_row_scale=%" PRId64 ": must be 0 where row_scale is NULL",
                args.batch_stride_row_scale);
  return check_shared_rows(args.group_mode, {{"batch_stride_x", args.batch_stride_x},
                                             {"batch_stride_q", args.batch_stride_q},
                                             {"batch_stride_sf", args.batch_stride_sf},
                                             {"batch_stride_row_scale", args.batch_stride_row_scale}});
}

void describe(Quantization& out) {
  const dualgemm_quantize_args_t& args = out.args;
  const Rows& rows = out.rows;
  const int32_t x_bits = args.x_dtype == DUALGEMM_DTYPE_FP32 ? 32 : 16, all = rows.matrices();
  out.x = matrix(args.k, x_bits, 16,
                 {"x", "ldx", "batch_stride_x", args.x, all, args.batch_stride_x,
                  args.row_index ? args.x_rows : rows.m, args.ldx});
  out.row_index = integers("row_index", args.row_index, rows.m);
  out.q = matrix(args.k, out.in_fp8() ? kByteBits : kCodeBits, 16,
                 {"q", "ldq", "batch_stride_q", args.q, all, args.batch_stride_q, rows.m, args.ldq});
  out.sf = atoms_tensor("sf", "batch_stride_sf", args.sf, rows, args.batch_stride_sf, args.k);
  out.global_scale_dev = floats("global_scale_dev", "global_scale_stride", args.global_scale_dev, 1,
                                args.global_scale_stride == 0 ? 1 : rows.problems, args.global_scale_stride);
  out.tensor_scales = floats("tensor_scales", nullptr, args.tensor_scales, kTensorScales, 1, 0);
  out.row_scale =
      floats("row_scale", "batch_stride_row_scale", args.row_scale, rows.m, all, args.batch_stride_row_scale);
  out.tiles_of_search = static_cast<int32_t>(ceil_div(args.k, kQuantizePiece));
  if (out.in_fp8()) out.tiles_of_band = out.has_short_rows() ? kSfAtomRows / kShortRowsOfTile : kSfAtomRows;
  else if (args.scale_mode == DUALGEMM_SCALE_ROW) out.tiles_of_band = kTilesOfRows;
  else out.tiles_of_band = out.tiles_of_search;
}

}  // namespace

dualgemm_sf_args_t default_sf_args() {
  dualgemm_sf_args_t args{};
  args.struct_size = sizeof args;
  return args;
}

dualgemm_quantize_args_t default_quantize_args() {
  dualgemm_quantize_args_t args{};
  args.struct_size = sizeof args;
  args.x_dtype = DUALGEMM_DTYPE_BF16;
  args.global_scale = 1;
  args.q_dtype = DUALGEMM_DTYPE_NVFP4;
  return args;
}

dualgemm_status_t validate(const dualgemm_sf_args_t* user_args, bool to_atoms, FactorConversion* out) {
  dualgemm_sf_args_t& args = out->args = default_sf_args();
  if (auto status = read_args<80>("dualgemm_sf_args_t", "dualgemm_sf_args_init", user_args, &args))
    return status;
  if (auto status = check_flags(args)) return status;
  if (auto status = check_range("reserved0", args.reserved0, 0)) return status;
  if (auto status = check_counts(args)) return status;
  out->rows = rows_of(args);
  out->empty = args.rows == 0 || args.k == 0;
  if (out->empty) return kOk;
  if (auto status = check_k(args.k)) return status;
  if (auto status = check_given("src", args.src)) return status;
  if (auto status = check_given("dst", args.dst)) return status;
  if (auto status = check_group_rows_given(args)) return status;
  if (auto status = check_group_rows_absent(args)) return status;

  if (auto status = check_shared_rows(args.group_mode, {{"batch_stride_src", args.batch_stride_src},
                                                        {"batch_stride_dst", args.batch_stride_dst}}))
    return status;

  const Rows& rows = out->rows;
  const struct {
    const char *name, *stride_name;
    const void* base;
    int64_t stride;
  } src{"src", "batch_stride_src", args.src, args.batch_stride_src},
      dst{"dst", "batch_stride_dst", args.dst, args.batch_stride_dst}, &linear = to_atoms ? src : dst,
                                                                       &atoms = to_atoms ? dst : src;
  out->linear = matrix(args.k / kSfBlock, kByteBits, 1,
                       {linear.name, "pitch", linear.stride_name, linear.base, rows.matrices(), linear.stride,
                        rows.m, args.pitch});
  out->atoms = atoms_tensor(atoms.name, atoms.stride_name, atoms.base, rows, atoms.stride, args.k);
  out->tiles_of_band = static_cast<int32_t>(ceil_div(args.k / kSfBlock, kFactorPiece));
  const Tensor counts = group_rows_tensor(rows);
  const Tensor *const input = to_atoms ? &out->linear : &out->atoms, *const output = to_atoms ? &out->atoms
                                                                                              : &out->linear;
  if (auto status = check_tensors({input, &counts}, {output}, "k/16")) return status;
  return check_size(rows, args.k, out->tiles_of_band);
}

dualgemm_status_t validate(const dualgemm_quantize_args_t* user_args, Quantization* out) {
  dualgemm_quantize_args_t& args = out->args = default_quantize_args();
  if (auto status =
          read_args<152>("dualgemm_quantize_args_t", "dualgemm_quantize_args_init", user_args, &args))
    return status;
  if (auto status = check_flags(args)) return status;
  if (auto status = check_range("x_dtype", args.x_dtype, DUALGEMM_DTYPE_FP32)) return status;
  if (auto status = check_q_dtype(args.q_dtype)) return status;
  if (auto status = check_range("reserved0", args.reserved0, 0)) return status;
  if (auto status = check_range("reserved1", args.reserved1, 0)) return status;
  if (auto status = check_range("scale_mode", args.scale_mode, DUALGEMM_SCALE_ROW)) return status;
  if (auto status = check_counts(args)) return status;
  if (auto status = check_scales(args)) return status;
  out->rows = rows_of(args);
  out->empty = args.rows == 0 || args.k == 0;
  if (out->empty) return kOk;
  if (auto status = check_k(args.k)) return status;
  if (auto status = check_pointers(args)) return status;
  describe(*out);
  const Tensor counts = group_rows_tensor(out->rows);
  if (auto status = check_tensors({&out->x, &out->global_scale_dev, &counts, &out->row_index},
                                  {&out->q, &out->sf, &out->tensor_scales, &out->row_scale}, "k"))
    return status;
  const bool searches = args.scale_mode == DUALGEMM_SCALE_TENSOR;
  return check_size(out->rows, args.k, std::max(out->tiles_of_band, searches ? out->tiles_of_search : 0));
}

}  // namespace dualgemm
