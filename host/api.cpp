// api.cpp -- the exported functions that deal with launches and configurations. A launch is three steps:
// validate, choose an instance, launch it. Nothing here throws or prints.

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "host/launch.h"
#include "host/select_config.h"
#include "host/sf_layout.h"
#include "host/status.h"
#include "host/validate.h"
#include "kernel/instances.h"

#define DUALGEMM_STRING_(x) #x
#define DUALGEMM_STRING(x) DUALGEMM_STRING_(x)

namespace dualgemm {
namespace {

static_assert(DUALGEMM_DTYPE_BF16 == static_cast<int>(CType::kBf16) &&
              DUALGEMM_DTYPE_FP16 == static_cast<int>(CType::kFp16));

// Under BATCH_INVARIANT the choice pretends this M, one band of rows: what decoding sees most.
constexpr int32_t kInvariantM = 128;

// What the choice looks at. It is a guess where only the device knows the rows of the groups.
Shape shape_of(const Problem& problem) {
  const dualgemm_args_t& args = problem.args;
  Shape shape = {args.m, args.n, args.k, problem.problems, problem.grouped()};
  if (args.flags & DUALGEMM_FLAG_BATCH_INVARIANT) {
    shape.m = kInvariantM;
    shape.problems = 1;
  } else if (problem.grouped()) {
    if (problem.group_offsets()) {
      shape.problems = problem.groups_with_rows();
      shape.m = static_cast<int32_t>(ceil_div(args.m, shape.problems));
    }
    if (args.expected_rows > 0) shape.m = std::min(args.expected_rows, args.m);
  }
  return shape;
}

// Can the configuration that the caller asks for keep what the caller asks for, on this device?
dualgemm_status_t check_forced(const Problem& problem, const dualgemm_device_t& device) {
  const dualgemm_args_t& args = problem.args;
  const Instance& instance = kInstances[args.config_id - 1];
  const int32_t cluster = instance.cta_group * instance.split_k;
  const int64_t at_once = clusters_at_once(machine_of(args, device), cluster);
  const int64_t needed = instance.split_k > 1 ? tile_bound(problem, instance) : 1;
  const bool limited = args.max_sms > 0 && args.max_sms < device.sm_count;
  if (limited && needed > at_once)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                "config_id=%" PRId32 ": %s runs %s%" PRId64 " CTAs at once, max_sms=%" PRId32
                " allows %" PRId64,
                args.config_id, instance.name, instance.split_k > 1 ? "" : "at least ", needed * cluster,
                args.max_sms, at_once * cluster);
  if (at_once == 0)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                "config_id=%" PRId32 ": %s needs clusters of %" PRId32 " CTAs, the device has %" PRId32
                " SMs",
                args.config_id, instance.name, cluster, device.sm_count);
  return DUALGEMM_STATUS_SUCCESS;
}

// Index into kInstances for a problem that passed validate().
dualgemm_status_t choose(const Problem& problem, const dualgemm_device_t& device, int32_t* index) {
  const dualgemm_args_t& args = problem.args;
  if (args.config_id > 0) {
    *index = args.config_id - 1;
    return check_forced(problem, device);
  }
  // A split of K in the time of one wave is only right for the M it was chosen for.
  const bool split_k = (args.flags & DUALGEMM_FLAG_BATCH_INVARIANT) == 0;
  *index = select_config(shape_of(problem), problem.c_type, machine_of(args, device), split_k);
  return *index >= 0 ? DUALGEMM_STATUS_SUCCESS
                     : fail(DUALGEMM_STATUS_INTERNAL, "no kernel writes c_dtype=%" PRId32, args.c_dtype);
}

// What is left to check once the device is known; *index is set where a kernel runs.
dualgemm_status_t check_on_device(const Problem& problem, const dualgemm_device_t& device, int32_t* index) {
  if (auto status = validate_device(device)) return status;
  return problem.args.k == 0 ? DUALGEMM_STATUS_SUCCESS : choose(problem, device, index);
}

dualgemm_status_t launch(const dualgemm_args_t* user_args, cudaStream_t stream) {
  Problem problem;
  if (auto status = validate(user_args, &problem)) return status;
  if (problem.empty) return DUALGEMM_STATUS_SUCCESS;

  const CudaErrorScope errors;
  dualgemm_device_t device;
  if (auto status = query_current_device(&device)) return status;
  int32_t index = 0;
  if (auto status = check_on_device(problem, device, &index)) return status;
  if (problem.args.k == 0) return launch_zero_fill(problem, stream);
  if (auto status = load_kernels(device.ordinal)) return status;
  return launch_instance(problem, kInstances[index], device, stream);
}

}  // namespace
}  // namespace dualgemm

using namespace dualgemm;

int dualgemm_version(void) noexcept { return DUALGEMM_VERSION; }

const char* dualgemm_build_info(void) noexcept {
  return "dualgemm " DUALGEMM_STRING(DUALGEMM_VERSION_MAJOR) "." DUALGEMM_STRING(DUALGEMM_VERSION_MINOR) "."
         DUALGEMM_STRING(DUALGEMM_VERSION_PATCH) ", CUDART_VERSION " DUALGEMM_STRING(CUDART_VERSION)
         ", compute capability 10.x (sm_100f)";
}

void dualgemm_args_init_sized(dualgemm_args_t* args, size_t struct_size) noexcept {
  if (!args) return;
  const dualgemm_args_t defaults = default_args();
  std::memset(args, 0, struct_size);
  std::memcpy(args, &defaults, std::min(struct_size, sizeof defaults));
  const auto size = static_cast<uint32_t>(struct_size);
  std::memcpy(args, &size, std::min(struct_size, sizeof size));
}

dualgemm_status_t dualgemm_launch(const void* a, const void* b1, const void* b2, const void* sfa,
                                  const void* sfb1, const void* sfb2, void* c, int32_t m, int32_t n,
                                  int32_t k, float alpha1, float alpha2, dualgemm_dtype_t c_dtype,
                                  dualgemm_stream_t stream) noexcept {
  clear_last_error();
  dualgemm_args_t args = default_args();
  args.a = a;
  args.b1 = b1;
  args.b2 = b2;
  args.sfa = sfa;
  args.sfb1 = sfb1;
  args.sfb2 = sfb2;
  args.c = c;
  args.m = m;
  args.n = n;
  args.k = k;
  args.alpha1 = alpha1;
  args.alpha2 = alpha2;
  args.c_dtype = static_cast<int32_t>(c_dtype);
  return launch(&args, stream);
}

dualgemm_status_t dualgemm_launch_ex(const dualgemm_args_t* args, dualgemm_stream_t stream) noexcept {
  clear_last_error();
  return launch(args, stream);
}

dualgemm_status_t dualgemm_init(void) noexcept {
  clear_last_error();
  const CudaErrorScope errors;
  dualgemm_device_t device;
  if (auto status = query_current_device(&device)) return status;
  if (auto status = validate_device(device)) return status;
  return load_kernels(device.ordinal);
}

dualgemm_status_t dualgemm_current_device(dualgemm_device_t* device) noexcept {
  clear_last_error();
  if (!device) return fail(DUALGEMM_STATUS_NULL_POINTER, "device=NULL: must point to a dualgemm_device_t");
  const CudaErrorScope errors;
  return query_current_device(device);
}

dualgemm_status_t dualgemm_can_implement(const dualgemm_args_t* args) noexcept {
  clear_last_error();
  Problem problem;
  if (auto status = validate(args, &problem)) return status;
  if (problem.empty) return DUALGEMM_STATUS_SUCCESS;
  const CudaErrorScope errors;
  dualgemm_device_t device;
  if (auto status = query_current_device(&device)) return status;
  int32_t index = 0;
  return check_on_device(problem, device, &index);
}

dualgemm_status_t dualgemm_can_implement_on(const dualgemm_args_t* args,
                                            const dualgemm_device_t* device) noexcept {
  clear_last_error();
  Problem problem;
  if (auto status = validate(args, &problem)) return status;
  if (!device) return fail(DUALGEMM_STATUS_NULL_POINTER, "device=NULL: must point to a dualgemm_device_t");
  int32_t index = 0;
  return problem.empty ? DUALGEMM_STATUS_SUCCESS : check_on_device(problem, *device, &index);
}

dualgemm_status_t dualgemm_workspace_size(const dualgemm_args_t* args, size_t* bytes) noexcept {
  clear_last_error();
  if (!bytes) return fail(DUALGEMM_STATUS_NULL_POINTER, "bytes=NULL: must point to a size_t");
  Problem problem;
  if (auto status = validate(args, &problem)) return status;
  *bytes = 0;  // the parts of a split K are exchanged through shared memory
  return DUALGEMM_STATUS_SUCCESS;
}

int32_t dualgemm_config_count(void) noexcept { return kInstanceCount; }

dualgemm_status_t dualgemm_config_info(int32_t id, dualgemm_config_info_t* info) noexcept {
  clear_last_error();
  if (!info) return fail(DUALGEMM_STATUS_NULL_POINTER, "info=NULL: must point to a dualgemm_config_info_t");
  if (id < 1 || id > kInstanceCount)
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "id=%" PRId32 ": must be in [1, %d]", id, kInstanceCount);
  const Instance& i = kInstances[id - 1];
  *info = {};
  info->name = i.name;
  info->c_dtype = static_cast<int32_t>(i.c_type);
  info->cta_group = i.cta_group;
  info->tile_m = i.tile_m;
  info->tile_n = i.tile_n;
  info->tile_k = i.tile_k;
  info->stages = i.stages;
  info->acc_stages = i.acc_stages;
  info->mma_n = i.mma_n;
  info->mmas_per_step = i.mmas_per_step;
  info->split_k = i.split_k;
  info->threads = i.threads;
  info->smem_bytes = i.smem_bytes;
  info->tmem_columns = i.tmem_columns;
  info->scale_stages = i.scale_stages;
  info->scale_k_tiles = i.scale_k_tiles;
  info->grouped = i.grouped;
  info->overlapped = i.overlapped;
  return DUALGEMM_STATUS_SUCCESS;
}

dualgemm_status_t dualgemm_select_config(const dualgemm_args_t* args, const dualgemm_device_t* device,
                                         int32_t* id) noexcept {
  clear_last_error();
  Problem problem;
  if (auto status = validate(args, &problem)) return status;
  if (!device) return fail(DUALGEMM_STATUS_NULL_POINTER, "device=NULL: must point to a dualgemm_device_t");
  if (!id) return fail(DUALGEMM_STATUS_NULL_POINTER, "id=NULL: must point to an int32_t");
  *id = 0;  // an empty problem, or one without K, runs no kernel
  if (problem.empty) return DUALGEMM_STATUS_SUCCESS;
  int32_t index = -1;
  if (auto status = check_on_device(problem, *device, &index)) return status;
  *id = index + 1;
  return DUALGEMM_STATUS_SUCCESS;
}
