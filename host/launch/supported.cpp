// supported.cpp -- see supported.h.

#include "host/launch/supported.h"

#include <cinttypes>
#include <limits>

#include "host/common/names.h"
#include "host/common/status.h"
#include "host/common/text.h"
#include "host/model/instance_kinds.h"
#include "host/model/tiling.h"

namespace dualgemm {
namespace {

// A tile of a group may start at any row: the kernel's 32-bit arithmetic goes up to the end of that tile.
constexpr int32_t kMaxGroupedRows = std::numeric_limits<int32_t>::max() - 1023;
// The columns of any tile, grouped or not, have the same limit for the same reason.
constexpr int32_t kMaxColumns = std::numeric_limits<int32_t>::max() - 1023;

// With K == 0 no kernel runs, because a tensor map has no empty dimension. The sum of no products is 0, so
// the host fills all outputs with zeros. A launch for which zeros are not the result, or whose rows the host
// does not know, is refused.
dualgemm_status_t check_without_k(const Problem& problem) {
  const dualgemm_args_t& args = problem.args;
  if (problem.grouped())
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                "k=0: must be above 0 with group_mode=%" PRId32
                " (%s): outputs are filled with zeros then, and only the device knows their rows",
                args.group_mode, group_mode_name(args.group_mode));
  if (args.c_add)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                "k=0: must be above 0 with c_add=%p: outputs are filled with zeros then", args.c_add);
  if (args.bias1 || args.bias2)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                "k=0: must be above 0 with bias1=%s, bias2=%s: outputs are filled with zeros then, which is "
                "not the result with a bias",
                pointer_text(args.bias1).get(), pointer_text(args.bias2).get());
  return kOk;
}

// FP8 of A and MXFP4 of B need each other: no kernel multiplies either by another type.
dualgemm_status_t check_types(const Problem& problem) {
  const int32_t a = problem.args.a_dtype, b = problem.args.b_dtype;
  const bool fp8 = problem.a_type == CType::kFp8, mxfp4 = problem.b_type == CType::kMxfp4;
  if (fp8 == mxfp4) return kOk;
  if (fp8)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                "a_dtype=%" PRId32 " (%s): needs b_dtype=%d (%s), not b_dtype=%" PRId32
                " (%s); for these weights quantise A to NVFP4 by dualgemm_quantize, or pass its 16 bits",
                a, dtype_name(a), DUALGEMM_DTYPE_MXFP4, dtype_name(DUALGEMM_DTYPE_MXFP4), b, dtype_name(b));
  return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
              "b_dtype=%" PRId32 " (%s): needs a_dtype=%d (%s), not a_dtype=%" PRId32
              " (%s); for this A dualgemm_import_mxfp4_host makes NVFP4 of MXFP4 without loss",
              b, dtype_name(b), DUALGEMM_DTYPE_FP8_E4M3, dtype_name(DUALGEMM_DTYPE_FP8_E4M3), a,
              dtype_name(a));
}

dualgemm_status_t check_extents(const Problem& problem) {
  const dualgemm_args_t& args = problem.args;
  if (problem.grouped() && args.m > kMaxGroupedRows)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                "m=%" PRId32 ": must be at most %" PRId32 " with group_mode=%" PRId32 " (%s)", args.m,
                kMaxGroupedRows, args.group_mode, group_mode_name(args.group_mode));
  if (args.n > kMaxColumns)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED, "n=%" PRId32 ": must be at most %" PRId32, args.n,
                kMaxColumns);
  return kOk;
}

Text<64> text_of(const GeneralRequest& request) {
  Text<64> text;
  if (request.address) text.add("%s=%p", request.field, request.address);
  else text.add("%s=%g", request.field, request.number);
  return text;
}

dualgemm_status_t check_instance_id(int32_t id) {
  if (id >= 0 && id <= instance_count()) return kOk;
  return fail(DUALGEMM_STATUS_INVALID_VALUE, "instance_id=%" PRId32 ": must be in [0, %" PRId32 "]", id,
              instance_count());
}

// Checks that the instance that the caller names computes the caller's launch.
dualgemm_status_t check_instance(const Problem& problem) {
  const dualgemm_args_t& args = problem.args;
  const int32_t id = args.instance_id;
  if (id == 0) return kOk;
  const Instance& instance = dualgemm::instance(id - 1);
  if (instance.plan.a_type != problem.a_type) {
    const auto read = static_cast<int32_t>(instance.plan.a_type);
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                "instance_id=%" PRId32 ": %s reads a_dtype=%" PRId32 " (%s), not a_dtype=%" PRId32 " (%s)",
                id, instance.name, read, dtype_name(read), args.a_dtype, dtype_name(args.a_dtype));
  }
  if (instance.plan.mma.products != problem.products)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                "instance_id=%" PRId32 ": %s computes products=%" PRId32 ", not products=%" PRId32, id,
                instance.name, instance.plan.mma.products, problem.products);
  if (!instance.epilogue.output(problem.c_type)) {
    const auto written = static_cast<int32_t>(instance.epilogue.outputs[0].type);
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                "instance_id=%" PRId32 ": %s writes c_dtype=%" PRId32 " (%s), not c_dtype=%" PRId32 " (%s)",
                id, instance.name, written, dtype_name(written), args.c_dtype, dtype_name(args.c_dtype));
  }
  if (problem.general() && !instance.epilogue.general)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                "instance_id=%" PRId32 ": %s computes a plain %s and nothing else, not what %s asks for", id,
                instance.name, problem.products == 1 ? "product" : "SwiGLU",
                text_of(problem.general_request).get());
  if (instance.plan.tile.grouped != problem.grouped())
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                "instance_id=%" PRId32 ": %s is for launches %s a group_mode, not for group_mode=%" PRId32
                " (%s)",
                id, instance.name, problem.grouped() ? "without" : "with", args.group_mode,
                group_mode_name(args.group_mode));
  if (instance.plan.tile.stream_k && (args.flags & DUALGEMM_FLAG_BATCH_INVARIANT) != 0)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                "instance_id=%" PRId32
                ": %s has stream-K, whose order of additions depends on M, and not for "
                "flags=0x%" PRIx32 " (BATCH_INVARIANT)",
                id, instance.name, args.flags);
  return kOk;
}

}  // namespace

// Tiles, and with split-K the CTAs that compute them, have 31-bit numbers.
dualgemm_status_t check_tiles(const Problem& problem, const Instance& instance) {
  const dualgemm_args_t& args = problem.args;
  const TilePlan& tile = instance.plan.tile;
  const int64_t tiles = tile_bound(problem, tile);
  const int32_t ctas = tile.split_k > 1 ? instance.plan.cluster_size() : 1;
  if (tiles <= std::numeric_limits<int32_t>::max() / ctas) return kOk;
  Text<64> computed_by;
  if (ctas > 1) computed_by.add(", each computed by %" PRId32 " CTAs at once", ctas);
  return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
              "m=%" PRId32 ", n=%" PRId32 ", %s=%" PRId32 ": are %" PRId64 " tiles of %" PRId32 " x %" PRId32
              "%s, must be at most 2^31-1 %s",
              args.m, args.n, problem.grouped() ? "groups" : "batch",
              problem.grouped() ? args.groups : args.batch, tiles, tile.m, tile.n, computed_by.get(),
              ctas > 1 ? "CTAs" : "tiles");
}

dualgemm_status_t check_supported(const Problem& problem) {
  if (auto status = check_instance_id(problem.args.instance_id)) return status;
  if (problem.args.k == 0) return check_without_k(problem);
  if (auto status = check_extents(problem)) return status;
  if (auto status = check_types(problem)) return status;
  if (auto status = check_instance(problem)) return status;
  // An instance that the caller names computes the same tiles on every device, so they are checked here.
  // Where the library chooses, the instance depends on the device.
  const int32_t id = problem.args.instance_id;
  return id > 0 ? check_tiles(problem, instance(id - 1)) : kOk;
}

}  // namespace dualgemm
