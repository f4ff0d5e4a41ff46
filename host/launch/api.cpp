// api.cpp -- the exported functions that deal with launches and instances. A launch is `launch` below;
// host/SOURCES.md lists its steps. Nothing here throws or prints.

#include <cuda_runtime_api.h>

#include <cinttypes>
#include <limits>

#include "host/common/cuda_error.h"
#include "host/common/device.h"
#include "host/common/status.h"
#include "host/common/structure.h"
#include "host/common/text.h"
#include "host/convert/convert.h"
#include "host/launch/arguments.h"
#include "host/launch/check_pointers.h"
#include "host/launch/choice.h"
#include "host/launch/launch.h"
#include "host/launch/load.h"
#include "host/launch/tuning.h"
#include "host/launch/validate.h"
#include "kernel/instance.h"

namespace dualgemm {
namespace {

constexpr Structure kInfoStructure = {"info", "dualgemm_instance_info_t", "dualgemm_instance_info_init", 96,
                                      sizeof(dualgemm_instance_info_t)};
static_assert(kInfoStructure.size >= kInfoStructure.first_size);

Text<192> build_info() {
  Text<192> text;
  text.add("dualgemm %d.%d.%d, CUDART_VERSION %d", DUALGEMM_VERSION_MAJOR, DUALGEMM_VERSION_MINOR,
           DUALGEMM_VERSION_PATCH, CUDART_VERSION);
  for (const Architecture& a : kArchitectures)
    if (built_for(a.arch)) text.add(", compute capability %s (%s)", a.capability, a.target);
  return text;
}

dualgemm_status_t look_up_pointers(const Problem& problem, const dualgemm_device_t& device) {
  if ((problem.args.flags & DUALGEMM_FLAG_CHECK_POINTERS) == 0) return DUALGEMM_STATUS_SUCCESS;
  return check_pointers(problem, device.ordinal);
}

// Returns the bytes of workspace that the choice would make use of if it had them, or 0 if the launch is
// refused anyway.
size_t usable_workspace(const Problem& problem, const dualgemm_device_t& device) {
  const UnreportedErrors unreported;
  IndexedInstance chosen;
  const auto status = choose(problem, device, std::numeric_limits<size_t>::max(), &chosen);
  return status == kOk && chosen.instance ? workspace_for(problem, *chosen.instance) : 0;
}

// Does the same for the current device, and returns 0 if that device is not known.
size_t usable_workspace(const Problem& problem) {
  const CudaErrorScope errors;
  const UnreportedErrors unreported;
  dualgemm_device_t device;
  if (query_current_device(&device) != kOk) return 0;
  read_environment_tuning(device);
  return usable_workspace(problem, device);
}

// Chooses the instance of a launch with these arguments, and looks up its pointers on the device.
dualgemm_status_t ask(const Problem& problem, const dualgemm_device_t& device, IndexedInstance* chosen) {
  if (auto status = choose(problem, device, problem.args.workspace_size, chosen)) return status;
  return look_up_pointers(problem, device);
}

// Launches on the current device, which is `device`.
dualgemm_status_t launch(const Problem& problem, const dualgemm_device_t& device, cudaStream_t stream) {
  IndexedInstance chosen;
  if (auto status = ask(problem, device, &chosen)) return status;
  if (!chosen.instance) return launch_zero_fill(problem, stream);
  if (auto status = load_once(device, chosen)) return status;
  return launch_instance(problem, *chosen.instance, device, stream);
}

dualgemm_status_t launch(const dualgemm_args_t* args, cudaStream_t stream) {
  Problem problem;
  if (auto status = validate(args, &problem)) return status;
  if (problem.empty) return DUALGEMM_STATUS_SUCCESS;

  const CudaErrorScope errors;
  dualgemm_device_t device;
  if (auto status = query_current_device(&device)) return status;
  read_environment_tuning(device, stream);
  return launch(problem, device, stream);
}

// Sets *bytes to the workspace that the choice would make use of, and launches if the caller's workspace is
// as large.
dualgemm_status_t try_launch(const dualgemm_args_t* args, size_t* bytes, cudaStream_t stream) {
  Problem problem;
  if (auto status = validate(args, &problem)) return status;
  if (!bytes) return fail(DUALGEMM_STATUS_NULL_POINTER, "bytes=NULL: must point to a size_t");
  *bytes = 0;
  if (problem.empty) return DUALGEMM_STATUS_SUCCESS;

  const CudaErrorScope errors;
  dualgemm_device_t device;
  if (auto status = query_current_device(&device)) return status;
  read_environment_tuning(device, stream);
  *bytes = usable_workspace(problem, device);
  if (problem.args.workspace_size < *bytes)
    return fail(DUALGEMM_STATUS_WORKSPACE_TOO_SMALL, "workspace_size=%zu: the launch would use %zu bytes",
                problem.args.workspace_size, *bytes);
  return launch(problem, device, stream);
}

}  // namespace
}  // namespace dualgemm

using namespace dualgemm;

int dualgemm_version(void) noexcept { return DUALGEMM_VERSION; }

const char* dualgemm_build_info(void) noexcept {
  static const Text<192> text = build_info();
  return text.get();
}

void dualgemm_args_init_sized(dualgemm_args_t* args, size_t struct_size) noexcept {
  init_structure(args, struct_size, default_args());
}

void dualgemm_device_init_sized(dualgemm_device_t* device, size_t struct_size) noexcept {
  init_structure(device, struct_size, nullptr, 0);
}

void dualgemm_instance_info_init_sized(dualgemm_instance_info_t* info, size_t struct_size) noexcept {
  init_structure(info, struct_size, nullptr, 0);
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

dualgemm_status_t dualgemm_launch_linear(const void* a, const void* b, const void* sfa, const void* sfb,
                                         void* c, int32_t m, int32_t n, int32_t k, float alpha,
                                         dualgemm_dtype_t c_dtype, dualgemm_stream_t stream) noexcept {
  clear_last_error();
  dualgemm_args_t args = default_args();
  args.products = 1;
  args.a = a;
  args.b1 = b;
  args.sfa = sfa;
  args.sfb1 = sfb;
  args.c = c;
  args.m = m;
  args.n = n;
  args.k = k;
  args.alpha1 = alpha;
  args.c_dtype = static_cast<int32_t>(c_dtype);
  return launch(&args, stream);
}

dualgemm_status_t dualgemm_launch_ex(const dualgemm_args_t* args, dualgemm_stream_t stream) noexcept {
  clear_last_error();
  return launch(args, stream);
}

dualgemm_status_t dualgemm_try_launch(const dualgemm_args_t* args, size_t* bytes,
                                      dualgemm_stream_t stream) noexcept {
  clear_last_error();
  return try_launch(args, bytes, stream);
}

dualgemm_status_t dualgemm_init(void) noexcept {
  clear_last_error();
  const CudaErrorScope errors;
  dualgemm_device_t device;
  if (auto status = query_current_device(&device)) return status;
  if (auto status = check_device(device)) return status;
  read_environment_tuning(device);
  if (auto status = load_all(device)) return status;
  return load_conversions();
}

dualgemm_status_t dualgemm_current_device(dualgemm_device_t* device) noexcept {
  clear_last_error();
  if (auto status = check_structure(kDeviceStructure, device)) return status;
  const CudaErrorScope errors;
  dualgemm_device_t current;
  if (auto status = query_current_device(&current)) return status;
  write_structure(kDeviceStructure, &current, device);
  return DUALGEMM_STATUS_SUCCESS;
}

dualgemm_status_t dualgemm_can_implement(const dualgemm_args_t* args) noexcept {
  clear_last_error();
  Problem problem;
  if (auto status = validate(args, &problem)) return status;
  if (problem.empty) return DUALGEMM_STATUS_SUCCESS;
  const CudaErrorScope errors;
  dualgemm_device_t device;
  if (auto status = query_current_device(&device)) return status;
  read_environment_tuning(device);
  IndexedInstance chosen;
  return ask(problem, device, &chosen);
}

dualgemm_status_t dualgemm_can_implement_on(const dualgemm_args_t* args,
                                            const dualgemm_device_t* device) noexcept {
  clear_last_error();
  Problem problem;
  if (auto status = validate(args, &problem)) return status;
  dualgemm_device_t described{};
  if (auto status = read_structure(kDeviceStructure, device, &described)) return status;
  IndexedInstance chosen;
  return problem.empty ? DUALGEMM_STATUS_SUCCESS
                       : choose(problem, described, problem.args.workspace_size, &chosen);
}

dualgemm_status_t dualgemm_workspace_size(const dualgemm_args_t* args, size_t* bytes) noexcept {
  clear_last_error();
  Problem problem;
  if (auto status = validate(args, &problem)) return status;
  if (!bytes) return fail(DUALGEMM_STATUS_NULL_POINTER, "bytes=NULL: must point to a size_t");
  *bytes = problem.empty ? 0 : usable_workspace(problem);
  return DUALGEMM_STATUS_SUCCESS;
}

int32_t dualgemm_instance_count(void) noexcept { return instance_count(); }

dualgemm_status_t dualgemm_instance_info(int32_t id, dualgemm_instance_info_t* info) noexcept {
  clear_last_error();
  if (auto status = check_structure(kInfoStructure, info)) return status;
  if (id < 1 || id > instance_count())
    return fail(DUALGEMM_STATUS_INVALID_VALUE, "id=%" PRId32 ": must be in [1, %" PRId32 "]", id,
                instance_count());
  const Instance& instance = dualgemm::instance(id - 1);
  const Plan& plan = instance.plan;
  dualgemm_instance_info_t known{};
  known.name = instance.name;
  known.c_dtype = instance.epilogue.general ? -1 : static_cast<int32_t>(instance.epilogue.outputs[0].type);
  known.cta_group = plan.mma.cta_group;
  known.tile_m = plan.tile.m;
  known.tile_n = plan.tile.n;
  known.tile_k = plan.tile.k;
  known.stages = plan.operands.stages;
  known.acc_stages = plan.tmem.acc_stages;
  known.mma_n = plan.mma.n;
  known.mmas_per_step = plan.mma.per_step;
  known.split_k = plan.tile.split_k;
  known.threads = plan.threads;
  known.smem_bytes = instance.smem_bytes;
  known.tmem_columns = plan.tmem.allocated;
  known.scale_stages = plan.scales.stages;
  known.scale_k_tiles = plan.scales.k_tiles;
  known.grouped = plan.tile.grouped;
  known.overlapped = plan.tmem.overlapped();
  known.general = instance.epilogue.general;
  known.cc_major = limits_of(plan.arch).cc_major;
  known.a_dtype = static_cast<int32_t>(plan.a_type);
  known.products = plan.mma.products;
  known.stream_k = plan.tile.stream_k;
  write_structure(kInfoStructure, &known, info);
  return DUALGEMM_STATUS_SUCCESS;
}

dualgemm_status_t dualgemm_select_instance(const dualgemm_args_t* args, const dualgemm_device_t* device,
                                           int32_t* id) noexcept {
  clear_last_error();
  Problem problem;
  if (auto status = validate(args, &problem)) return status;
  dualgemm_device_t described{};
  if (auto status = read_structure(kDeviceStructure, device, &described)) return status;
  if (!id) return fail(DUALGEMM_STATUS_NULL_POINTER, "id=NULL: must point to an int32_t");
  IndexedInstance chosen = kNoInstance;  // an empty problem, or one without K, runs no kernel
  if (!problem.empty)
    if (auto status = choose(problem, described, problem.args.workspace_size, &chosen)) return status;
  *id = chosen.index + 1;
  return DUALGEMM_STATUS_SUCCESS;
}
