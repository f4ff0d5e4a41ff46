// moe.cpp -- see moe.h.

#include "host/convert/moe.h"

#include <cinttypes>

#include "host/common/sf_layout.h"
#include "host/common/status.h"
#include "host/common/structure.h"
#include "host/convert/rules.h"
#include "kernel/convert/moe_params.h"

namespace dualgemm {
namespace {

// Checks that the choices of all tokens, which are numbered in 32 bits, are few enough.
template <class Args>
dualgemm_status_t check_choices(const Args& args, int32_t* count) {
  if (auto status = check_count("tokens", args.tokens)) return status;
  if (auto status = check_count("top_k", args.top_k)) return status;
  const int64_t choices = int64_t{args.tokens} * args.top_k;
  if (choices > kMaxExtent)
    return fail(DUALGEMM_STATUS_INVALID_VALUE,
                "tokens=%" PRId32 ": %" PRId64 " choices of top_k=%" PRId32 " each, at most %" PRId32,
                args.tokens, choices, args.top_k, kMaxExtent);
  *count = static_cast<int32_t>(choices);
  return kOk;
}

dualgemm_status_t check_pointers(const dualgemm_moe_permute_args_t& args) {
  if (auto status = check_given("topk_ids", args.topk_ids)) return status;
  if (auto status = check_given("group_rows", args.group_rows)) return status;
  if (auto status = check_given("row_token", args.row_token)) return status;
  if (auto status = check_given("token_row", args.token_row)) return status;
  if (args.topk_weights) return check_given("row_weight", args.row_weight);
  return check_absent("row_weight", args.row_weight, "where topk_weights is NULL");
}

int32_t bits_of_output(int32_t dtype) { return dtype == DUALGEMM_DTYPE_FP32 ? 32 : 16; }

Tensor rows_of(const char* name, const char* pitch_name, const void* base, int32_t rows, int32_t n,
               int32_t dtype, int64_t pitch) {
  return matrix(n, bits_of_output(dtype), 16, {name, pitch_name, nullptr, base, 1, 0, rows, pitch});
}

// `add` may be the output, because a thread reads an element before it writes it.
bool adds_in_place(const Combination& combination) {
  return combination.add.base == combination.out.base && combination.add.pitch == combination.out.pitch;
}

// The rows that are written have `columns` columns, in tiles of `piece` columns. `of` says in the message
// which rows these are.
dualgemm_status_t check_size(const char* name, int32_t columns, int32_t piece, int64_t bands, const char* of,
                             int32_t* tiles) {
  const int64_t all = bands * ceil_div(columns, piece);
  if (columns > kMaxExtent || all > kMaxExtent)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                "%s=%" PRId32 ": at most %" PRId32 ", and so many pieces of %" PRId32 " columns of all %s",
                name, columns, kMaxExtent, piece, of);
  *tiles = static_cast<int32_t>(all);
  return kOk;
}

}  // namespace

dualgemm_moe_permute_args_t default_moe_permute_args() {
  dualgemm_moe_permute_args_t args{};
  args.struct_size = sizeof args;
  return args;
}

dualgemm_moe_gather_args_t default_moe_gather_args() {
  dualgemm_moe_gather_args_t args{};
  args.struct_size = sizeof args;
  args.x_dtype = DUALGEMM_DTYPE_BF16;
  return args;
}

dualgemm_moe_combine_args_t default_moe_combine_args() {
  dualgemm_moe_combine_args_t args{};
  args.struct_size = sizeof args;
  args.c_dtype = args.out_dtype = DUALGEMM_DTYPE_BF16;
  return args;
}

dualgemm_status_t validate(const dualgemm_moe_permute_args_t* user_args, Permutation* out) {
  dualgemm_moe_permute_args_t& args = out->args = default_moe_permute_args();
  if (auto status =
          read_args<72>("dualgemm_moe_permute_args_t", "dualgemm_moe_permute_args_init", user_args, &args))
    return status;
  if (auto status = check_pdl_flag(args.flags)) return status;
  if (args.experts < 1 || args.experts > DUALGEMM_MAX_GROUPS)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "experts=%" PRId32 ": must be in [1, %d]", args.experts,
                DUALGEMM_MAX_GROUPS);
  if (auto status = check_range("reserved0", args.reserved0, 0)) return status;
  if (auto status = check_choices(args, &out->count)) return status;
  out->empty = out->count == 0;
  if (out->empty) return kOk;
  if (auto status = check_pointers(args)) return status;
  const int32_t count = out->count;
  const Tensor ids = integers("topk_ids", args.topk_ids, count),
               weights = floats("topk_weights", nullptr, args.topk_weights, count, 1, 0),
               group_rows = integers("group_rows", args.group_rows, args.experts + 1),
               row_token = integers("row_token", args.row_token, count),
               token_row = integers("token_row", args.token_row, count),
               row_weight = floats("row_weight", nullptr, args.row_weight, count, 1, 0);
  return check_tensors({&ids, &weights}, {&group_rows, &row_token, &token_row, &row_weight}, "top_k");
}

dualgemm_status_t validate(const dualgemm_moe_gather_args_t* user_args, Gathering* out) {
  dualgemm_moe_gather_args_t& args = out->args = default_moe_gather_args();
  if (auto status =
          read_args<64>("dualgemm_moe_gather_args_t", "dualgemm_moe_gather_args_init", user_args, &args))
    return status;
  if (auto status = check_pdl_flag(args.flags)) return status;
  if (auto status = check_range("x_dtype", args.x_dtype, DUALGEMM_DTYPE_FP16)) return status;
  if (auto status = check_count("rows", args.rows)) return status;
  if (auto status = check_count("k", args.k)) return status;
  out->empty = args.rows == 0 || args.k == 0;
  if (out->empty) return kOk;
  if (args.k % kGatherColumns != 0)
    return fail(DUALGEMM_STATUS_INVALID_SHAPE, "k=%" PRId32 ": must be a multiple of %d", args.k,
                kGatherColumns);
  if (args.x_rows < 1)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "x_rows=%" PRId32 ": must be at least 1", args.x_rows);
  if (auto status = check_given("row_index", args.row_index)) return status;
  if (auto status = check_given("x", args.x)) return status;
  if (auto status = check_given("out", args.out)) return status;
  out->x = rows_of("x", "ldx", args.x, args.x_rows, args.k, args.x_dtype, args.ldx);
  out->out = rows_of("out", "ld_out", args.out, args.rows, args.k, args.x_dtype, args.ld_out);
  const Tensor row_index = integers("row_index", args.row_index, args.rows);
  if (auto status = check_tensors({&row_index, &out->x}, {&out->out}, "k")) return status;
  return check_size("k", args.k, kGatherPiece, ceil_div(args.rows, kGatherRows), "bands of 32 rows",
                    &out->tiles);
}

dualgemm_status_t validate(const dualgemm_moe_combine_args_t* user_args, Combination* out) {
  dualgemm_moe_combine_args_t& args = out->args = default_moe_combine_args();
  if (auto status =
          read_args<96>("dualgemm_moe_combine_args_t", "dualgemm_moe_combine_args_init", user_args, &args))
    return status;
  if (auto status = check_pdl_flag(args.flags)) return status;
  if (auto status = check_range("c_dtype", args.c_dtype, DUALGEMM_DTYPE_FP32)) return status;
  if (auto status = check_range("out_dtype", args.out_dtype, DUALGEMM_DTYPE_FP32)) return status;
  if (auto status = check_range("reserved0", args.reserved0, 0)) return status;
  if (auto status = check_count("n", args.n)) return status;
  if (auto status = check_choices(args, &out->rows)) return status;
  out->empty = out->rows == 0 || args.n == 0;
  if (out->empty) return kOk;
  if (args.n % kCombineColumns != 0)
    return fail(DUALGEMM_STATUS_INVALID_SHAPE, "n=%" PRId32 ": must be a multiple of %d", args.n,
                kCombineColumns);
  if (auto status = check_given("token_row", args.token_row)) return status;
  if (auto status = check_given("c", args.c)) return status;
  if (auto status = check_given("out", args.out)) return status;
  if (!args.add && args.ld_add != 0)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "ld_add=%" PRId64 ": must be 0 where add is NULL",
                args.ld_add);
  out->c = rows_of("c", "ldc", args.c, out->rows, args.n, args.c_dtype, args.ldc);
  out->add = rows_of("add", "ld_add", args.add, args.tokens, args.n, args.out_dtype, args.ld_add);
  out->out = rows_of("out", "ld_out", args.out, args.tokens, args.n, args.out_dtype, args.ld_out);
  const Tensor token_row = integers("token_row", args.token_row, out->rows),
               weights = floats("topk_weights", nullptr, args.topk_weights, out->rows, 1, 0), none{};
  if (auto status = check_tensors({&token_row, &weights, &out->c, adds_in_place(*out) ? &none : &out->add},
                                  {&out->out}, "n"))
    return status;
  return check_size("n", args.n, kCombinePiece, args.tokens, "tokens", &out->tiles);
}

}  // namespace dualgemm
