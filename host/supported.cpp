// supported.cpp -- see supported.h. What an output or an activation needs to be accepted is an instance that
// has it.

#include "host/supported.h"

#include <cinttypes>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "host/status.h"
#include "host/text.h"
#include "host/tiling.h"
#include "kernel/instance.h"

namespace dualgemm {
namespace {

constexpr dualgemm_status_t kOk = DUALGEMM_STATUS_SUCCESS;

// A tile of a group may start at any row: the kernel's 32-bit arithmetic goes up to the end of that tile.
constexpr int32_t kMaxGroupedRows = std::numeric_limits<int32_t>::max() - 1023;

template <class Property>
bool any_instance(const Property& has) {
  for (const Instance& instance : instances())
    if (has(instance.epilogue)) return true;
  return false;
}

// These are in the order of the numbers of dualgemm_activation_t and dualgemm_dtype_t.
constexpr const char* kActivationNames[] = {"SWIGLU", "GEGLU_TANH", "GEGLU_ERF", "REGLU", "GLU"};
constexpr const char* kDtypeNames[] = {"BF16", "FP16", "FP32", "NVFP4"};

// Accepts an output and an activation that some instance has, and has together.
dualgemm_status_t check_epilogue(const Problem& problem) {
  const auto computes = [](ActivationKind activation) {
    return any_instance([&](const EpilogueKind& e) { return e.activation == activation; });
  };
  const char* const activation = kActivationNames[problem.args.activation];
  const char* const c_dtype = kDtypeNames[problem.args.c_dtype];
  if (!computes(problem.activation)) {
    Text<80> computed;
    for (int32_t i = 0; i <= DUALGEMM_ACTIVATION_GLU; ++i)
      if (computes(static_cast<ActivationKind>(i))) computed.add_member(kActivationNames[i]);
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED, "activation: anything but %s: not supported by this release",
                computed.get());
  }
  if (!any_instance([&](const EpilogueKind& e) { return e.c_type == problem.c_type; }))
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED, "c_dtype: %s output: not supported by this release", c_dtype);
  if (!any_instance([&](const EpilogueKind& e) {
        return e.c_type == problem.c_type && e.activation == problem.activation;
      }))
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                "activation, c_dtype: %s with %s output: not supported by this release", activation, c_dtype);
  return kOk;
}

// Refuses what the structure can express and the kernels of this release do not compute.
dualgemm_status_t check_requests(const Problem& problem) {
  const dualgemm_args_t& args = problem.args;
  struct Request {
    bool made;
    const char* text;
  };
  const auto check = [](std::initializer_list<Request> unsupported) {
    for (const Request& request : unsupported)
      if (request.made)
        return fail(DUALGEMM_STATUS_NOT_SUPPORTED, "%s: not supported by this release", request.text);
    return kOk;
  };
  if (auto status = check({
          {(args.flags & DUALGEMM_FLAG_CHECK_POINTERS) != 0, "flags: DUALGEMM_FLAG_CHECK_POINTERS"},
          {(args.flags & DUALGEMM_FLAG_EXACT_ACT) != 0, "flags: DUALGEMM_FLAG_EXACT_ACT"},
      }))
    return status;
  if (auto status = check_epilogue(problem)) return status;
  const bool plain_swiglu = args.swiglu_alpha == 1 && args.swiglu_beta == 0 && std::isinf(args.swiglu_limit);
  return check({
      {args.sfa_layout != DUALGEMM_SF_LAYOUT_128X4, "sfa_layout: anything but 128X4"},
      {args.a_row_scale != nullptr, "a_row_scale: a factor per row of A"},
      {args.bias1 != nullptr, "bias1: a bias"},
      {args.bias2 != nullptr, "bias2: a bias"},
      {args.c_global_scale_dev != nullptr, "c_global_scale_dev: a global scale of C"},
      {!plain_swiglu, "swiglu_alpha, swiglu_beta, swiglu_limit: values other than 1, 0, infinity"},
      {args.amax_out != nullptr, "amax_out: the largest output"},
      {args.d1 != nullptr, "d1, d2: the products before the activation"},
  });
}

// Checks that the instance that the caller asks for computes what the caller asks for.
dualgemm_status_t check_instance(const Problem& problem) {
  const int32_t id = problem.args.instance_id;
  if (problem.grouped() && problem.args.m > kMaxGroupedRows)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED, "M=%" PRId32 ": at most %" PRId32 " with a group_mode",
                problem.args.m, kMaxGroupedRows);
  if (id < 0 || id > instance_count())
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "instance_id=%" PRId32 ": must be in [0, %" PRId32 "]", id,
                instance_count());
  if (id == 0) return kOk;
  const Instance& instance = dualgemm::instance(id - 1);
  if (instance.epilogue.c_type != problem.c_type)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                "instance_id=%" PRId32 ": %s does not write the requested c_dtype", id, instance.name);
  if (instance.epilogue.activation != problem.activation)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                "instance_id=%" PRId32 ": %s does not compute the requested activation", id, instance.name);
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
    const bool fits = x.epilogue.c_type == problem.c_type && x.epilogue.activation == problem.activation &&
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
