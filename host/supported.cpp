// supported.cpp -- see supported.h.

#include "host/supported.h"

#include <cinttypes>
#include <limits>

#include "host/status.h"
#include "host/tiling.h"
#include "kernel/instance.h"

namespace dualgemm {
namespace {

constexpr dualgemm_status_t kOk = DUALGEMM_STATUS_SUCCESS;

// A tile of a group may start at any row: the kernel's 32-bit arithmetic goes up to the end of that tile.
constexpr int32_t kMaxGroupedRows = std::numeric_limits<int32_t>::max() - 1023;
// The same holds for the columns of any tile.
constexpr int32_t kMaxColumns = std::numeric_limits<int32_t>::max() - 1023;

// Refuses what the structure can express and the kernels of this release do not compute.
dualgemm_status_t check_requests(const Problem& problem) {
  const dualgemm_args_t& args = problem.args;
  const bool biased = args.bias1 || args.bias2;
  const struct {
    bool made;
    const char* text;
  } unsupported[] = {
      {(args.flags & DUALGEMM_FLAG_CHECK_POINTERS) != 0, "flags: DUALGEMM_FLAG_CHECK_POINTERS"},
      {biased && args.bias_dtype == DUALGEMM_DTYPE_FP16, "bias_dtype: anything but BF16 and FP32"},
  };
  for (const auto& request : unsupported)
    if (request.made)
      return fail(DUALGEMM_STATUS_NOT_SUPPORTED, "%s: not supported by this release", request.text);
  if (biased && args.k == 0)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                "bias1=%p, bias2=%p: must be NULL with K=0: a tensor map has no empty dimension, so that no "
                "kernel can run, and the result is not zero",
                args.bias1, args.bias2);
  return kOk;
}

// Checks that the instance that the caller asks for computes what the caller asks for.
dualgemm_status_t check_instance(const Problem& problem) {
  const int32_t id = problem.args.instance_id;
  if (problem.grouped() && problem.args.m > kMaxGroupedRows)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED, "M=%" PRId32 ": at most %" PRId32 " with a group_mode",
                problem.args.m, kMaxGroupedRows);
  if (problem.args.n > kMaxColumns)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED, "N=%" PRId32 ": at most %" PRId32, problem.args.n,
                kMaxColumns);
  if (id < 0 || id > instance_count())
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "instance_id=%" PRId32 ": must be in [0, %" PRId32 "]", id,
                instance_count());
  if (id == 0) return kOk;
  const Instance& instance = dualgemm::instance(id - 1);
  if (instance.epilogue.c_type != problem.c_type)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                "instance_id=%" PRId32 ": %s does not write the requested c_dtype", id, instance.name);
  if (problem.general && !instance.epilogue.general)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                "instance_id=%" PRId32 ": %s computes a plain SwiGLU and nothing else", id, instance.name);
  if (instance.plan.tile.grouped != problem.grouped())
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED, "instance_id=%" PRId32 ": %s is for launches %s a group_mode",
                id, instance.name, problem.grouped() ? "without" : "with");
  return kOk;
}

// Tiles have 32-bit numbers, whichever instance computes them.
dualgemm_status_t check_tiles(const Problem& problem) {
  const int32_t id = problem.args.instance_id;
  for (int32_t i = 0; i < instance_count(); ++i) {
    const Instance& x = instance(i);
    const bool fits = x.epilogue.c_type == problem.c_type && x.epilogue.general == problem.general &&
                      x.plan.tile.grouped == problem.grouped();
    if (!(id > 0 ? i == id - 1 : fits)) continue;
    const int64_t tiles = tile_bound(problem, x.plan.tile);
    if (tiles > std::numeric_limits<int32_t>::max())
      return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                  "M=%" PRId32 ", N=%" PRId32 ": %" PRId64 " tiles, at most 2^31-1", problem.args.m,
                  problem.args.n, tiles);
  }
  return kOk;
}

}  // namespace

dualgemm_status_t check_supported(const Problem& problem) {
  if (auto status = check_requests(problem)) return status;
  if (auto status = check_instance(problem)) return status;
  return check_tiles(problem);
}

}  // namespace dualgemm
