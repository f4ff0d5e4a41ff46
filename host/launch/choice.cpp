// choice.cpp -- see choice.h.

#include "host/launch/choice.h"

#include <algorithm>
#include <cinttypes>
#include <limits>

#include "host/common/device.h"
#include "host/common/names.h"
#include "host/common/sf_layout.h"
#include "host/common/status.h"
#include "host/common/text.h"
#include "host/launch/prepare_a.h"
#include "host/launch/supported.h"
#include "host/launch/tuning.h"
#include "host/model/select_instance.h"
#include "host/model/tiling.h"
#include "host/model/tuned.h"

namespace dualgemm {
namespace {

// Where the bits of a sum may depend on the tile, the choice under BATCH_INVARIANT pretends that M is this:
// one block of 128 rows.
constexpr int32_t kInvariantM = 128;

// Holds all that the automatic choice looks at.
struct Question {
  InstanceKind kind;
  Shape shape;
  Machine machine;
  Allowed allowed;
  const Tuning* tuning = nullptr;  // null: the model chooses
  // Where there is one: the problems of the batch, or groups, empty ones counted, and the rows of all.
  int32_t problems = 0;
  int64_t rows = 0;

  bool operator==(const Question&) const = default;
};

int32_t index_for(const Question& x) {
  if (x.tuning)
    if (const int32_t index =
            select_tuned(x.tuning->entries, {x.kind, x.shape.grouped, x.problems, x.shape.n, x.shape.k},
                         x.rows, x.shape, x.machine, x.allowed);
        index >= 0)
      return index;
  return select_instance(x.kind, x.shape, x.machine, x.allowed);
}

// A program asks about the same few problems again and again, and about each problem perhaps twice: which
// workspace it wants, and then which instance to launch without one. Each thread remembers its last answers
// in kPlaces places; a question always takes the same place. An answer depends only on the question, so it
// stays right.
IndexedInstance answer(const Question& question) {
  struct Remembered {
    Question question;
    IndexedInstance choice;
  };
  constexpr size_t kPlaces = 64;
  thread_local Remembered places[kPlaces] = {};  // none yet: questions have M, N and K above 0
  const Shape& shape = question.shape;
  uint32_t mixed = 0;
  for (const int32_t number : {shape.m, shape.n, shape.k, shape.problems, question.kind.products,
                               question.allowed.prepared_a + question.allowed.stream_k})
    mixed = (mixed ^ static_cast<uint32_t>(number)) * 0x9E3779B1u;  // 2^32 over the golden ratio
  Remembered& place = places[mixed >> 26];
  static_assert(kPlaces == 1 << (32 - 26));
  if (!(place.question == question)) {
    const int32_t index = index_for(question);
    place = {question, index < 0 ? kNoInstance : IndexedInstance{&instance(index), index}};
  }
  return place.choice;
}

// Ends the sentence that says which clusters an instance needs. Clusters of three are counted as those of
// four.
Text<128> why_no_clusters(const Machine& machine, int32_t size) {
  Text<128> text;
  if (runs_clusters(machine, size))
    text.add(machine.limited ? "max_sms=%" PRId32 " allows fewer" : "the device has %" PRId32 " SM%s",
             machine.sms, machine.sms == 1 ? "" : "s");
  else
    text.add("%sof which the device runs none (clusters_of_2=%" PRId32 ", clusters_of_4=%" PRId32 ")",
             size == 3 ? "counted as clusters of 4, " : "", machine.clusters_of_2, machine.clusters_of_4);
  return text;
}

// Returns how many bytes of workspace are enough for every instance of a kind with stream-K.
size_t room_for_parts(const Problem& problem, const InstanceKind& kind) {
  size_t most = 0;
  for (const auto& [instance, index] : instances_of(kind, problem.grouped()))
    if (instance->plan.tile.stream_k) most = std::max(most, workspace_bytes(problem, instance->plan));
  return most;
}

// Returns the CTAs of the smallest cluster with which an instance of a kind works.
int32_t smallest_cluster(const InstanceKind& kind, bool grouped) {
  int32_t smallest = std::numeric_limits<int32_t>::max();
  for (const auto& [instance, index] : instances_of(kind, grouped))
    smallest = std::min(smallest, instance->plan.cluster_size());
  return smallest;
}

// Checks that the instance that the caller names can compute the caller's launch on this device.
dualgemm_status_t check_forced(const Problem& problem, const dualgemm_device_t& device, Arch arch,
                               size_t workspace, const Instance& instance) {
  const dualgemm_args_t& args = problem.args;
  const Plan& plan = instance.plan;
  if (plan.arch != arch)
    return fail(
        DUALGEMM_STATUS_NOT_SUPPORTED,
        "instance_id=%" PRId32 ": %s is for compute capability %s, the device is %" PRId32 ".%" PRId32,
        args.instance_id, instance.name, limits_of(plan.arch).capability, device.cc_major, device.cc_minor);
  const int32_t cluster = plan.cluster_size();
  if (const Machine whole{device.sm_count, device.clusters_of_2, device.clusters_of_4};
      clusters_at_once(whole, plan) == 0)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                "instance_id=%" PRId32 ": %s needs clusters of %" PRId32 " CTAs, %s", args.instance_id,
                instance.name, cluster, why_no_clusters(whole, cluster).get());
  if (const size_t needed = workspace_bytes(problem, plan); workspace < needed)
    return fail(DUALGEMM_STATUS_WORKSPACE_TOO_SMALL,
                "instance_id=%" PRId32 ": %s needs workspace_size=%zu, not workspace_size=%zu",
                args.instance_id, instance.name, needed, workspace);
  const int64_t at_once = clusters_at_once(machine_of(args, device), plan);
  const int64_t needed = plan.tile.split_k > 1 ? tile_bound(problem, plan.tile) : 1;
  const bool limited = args.max_sms > 0 && args.max_sms < device.sm_count;
  if (limited && needed > at_once)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                "instance_id=%" PRId32 ": %s runs %s%" PRId64 " CTAs at once, max_sms=%" PRId32
                " allows %" PRId64,
                args.instance_id, instance.name, plan.tile.split_k > 1 ? "" : "at least ", needed * cluster,
                args.max_sms, at_once * cluster);
  return DUALGEMM_STATUS_SUCCESS;
}

// All but NVFP4 by NVFP4 needs an architecture whose kernels expand the weights before they multiply.
dualgemm_status_t check_operands(const Problem& problem, const dualgemm_device_t& device, Arch arch) {
  if (problem.packed_a() || limits_of(arch).multiplies_16_bits) return DUALGEMM_STATUS_SUCCESS;
  const int32_t a_dtype = problem.args.a_dtype, b_dtype = problem.args.b_dtype;
  if (problem.b_type == CType::kMxfp4)
    return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
                "b_dtype=%" PRId32 " (%s): must be %d (%s) on compute capability %" PRId32 ".%" PRId32
                "; dualgemm_import_mxfp4_host makes NVFP4 of MXFP4 without loss",
                b_dtype, dtype_name(b_dtype), DUALGEMM_DTYPE_NVFP4, dtype_name(DUALGEMM_DTYPE_NVFP4),
                device.cc_major, device.cc_minor);
  return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
              "a_dtype=%" PRId32 " (%s): must be %d (%s) on compute capability %" PRId32 ".%" PRId32
              ", whose tensor cores multiply NVFP4 with nothing else",
              a_dtype, dtype_name(a_dtype), DUALGEMM_DTYPE_NVFP4, dtype_name(DUALGEMM_DTYPE_NVFP4),
              device.cc_major, device.cc_minor);
}

// Reports that no instance of this kind takes the problem. The only reason may be the clusters that the
// instances need.
dualgemm_status_t fail_none(const Problem& problem, const InstanceKind& kind, const Machine& machine) {
  const dualgemm_args_t& args = problem.args;
  Text<256> asked;
  asked.add("c_dtype=%" PRId32 " (%s), %s, group_mode=%" PRId32 " (%s): ", args.c_dtype,
            dtype_name(args.c_dtype),
            problem.general()       ? "general epilogue"
            : problem.products == 1 ? "plain product"
                                    : "plain SwiGLU",
            args.group_mode, group_mode_name(args.group_mode));
  const char* const capability = limits_of(kind.arch).capability;
  const bool any = !instances_of(kind, problem.grouped()).empty();
  const int32_t cluster = any ? smallest_cluster(kind, problem.grouped()) : 1;
  if (clusters_at_once(machine, kind.arch, cluster) == 0)
    return fail(
        DUALGEMM_STATUS_NOT_SUPPORTED,
        "%severy kernel for compute capability %s that computes this needs clusters of at least %" PRId32
        " CTAs, %s",
        asked.get(), capability, cluster, why_no_clusters(machine, cluster).get());
  return fail(DUALGEMM_STATUS_NOT_SUPPORTED,
              "%sno kernel for compute capability %s computes this on %" PRId32 " SMs", asked.get(),
              capability, machine.sms);
}

// Returns an activation of two products that costs as much as this activation of one product: its gate is the
// same function, or one that is as cheap.
ActivationKind function_of(LinearActivation activation) {
  switch (activation) {
    case LinearActivation::kSilu: return ActivationKind::kSwiglu;
    case LinearActivation::kGeluTanh: return ActivationKind::kGegluTanh;
    case LinearActivation::kGeluErf: return ActivationKind::kGegluErf;
    case LinearActivation::kNone:
    case LinearActivation::kRelu:
    case LinearActivation::kRelu2: return ActivationKind::kReglu;
  }
  return ActivationKind::kReglu;  // there is no other activation
}

// Returns whether a launch may go by a tuning file. The file's times were measured on all SMs, and without
// EXACT_ACT. Under BATCH_INVARIANT the instance must not depend on M, nor split K.
bool may_be_tuned(const Problem& problem, const Machine& machine) {
  return !machine.limited &&
         (problem.args.flags & (DUALGEMM_FLAG_EXACT_ACT | DUALGEMM_FLAG_BATCH_INVARIANT)) == 0;
}

// Returns the rows by which a tuning file is asked, of all problems together.
int64_t tuned_rows(const Problem& problem, const Shape& shape) {
  if (problem.group_offsets() && problem.args.expected_rows == 0) return problem.args.m;
  return int64_t{shape.m} * shape.problems;
}

}  // namespace

size_t workspace_for(const Problem& problem, const Instance& instance) {
  const size_t own = workspace_bytes(problem, instance.plan);
  if (!instance.plan.tile.stream_k || problem.args.instance_id > 0) return own;
  return room_for_parts(problem, kind_for(instance.plan.arch, problem));
}

Shape shape_of(const Problem& problem) {
  const dualgemm_args_t& args = problem.args;
  Shape shape = {args.m,
                 args.n,
                 args.k,
                 problem.problems,
                 problem.grouped(),
                 problem.c_type,
                 problem.products == 1 ? function_of(problem.linear_activation) : problem.activation};
  const Tensor &d1 = problem.outputs[kD1], &d2 = problem.outputs[kD2];
  shape.d_bits = (d1.given() ? d1.bits : 0) + (d2.given() ? d2.bits : 0);
  shape.c_add = args.c_add != nullptr;
  shape.biases = (args.bias1 ? 1 : 0) + (args.bias2 ? 1 : 0);
  shape.a_row_scale = args.a_row_scale != nullptr;
  shape.c_row_scale = args.c_row_scale != nullptr;
  shape.amax = args.amax_out != nullptr;
  shape.exact = (args.flags & DUALGEMM_FLAG_EXACT_ACT) != 0;
  if (problem.grouped()) {
    if (problem.group_offsets()) {
      shape.problems = problem.groups_with_rows();
      shape.m = static_cast<int32_t>(ceil_div(args.m, shape.problems));
    }
    if (args.expected_rows > 0) shape.m = std::min(args.expected_rows, args.m);
  }
  return shape;
}

dualgemm_status_t choose(const Problem& problem, const dualgemm_device_t& device, size_t workspace,
                         IndexedInstance* choice) {
  *choice = kNoInstance;
  if (auto status = check_device(device)) return status;
  const dualgemm_args_t& args = problem.args;
  if (args.k == 0) return DUALGEMM_STATUS_SUCCESS;
  const Architecture& architecture = *served_architecture(device);
  if (args.instance_id > 0) {
    const int32_t index = args.instance_id - 1;
    *choice = {&instance(index), index};
    return check_forced(problem, device, architecture.arch, workspace, *choice->instance);
  }
  if (auto status = check_operands(problem, device, architecture.arch)) return status;
  const bool room = workspace >= prepared_a_bytes(problem);
  const InstanceKind kind = kind_for(architecture.arch, problem);
  const Machine machine = machine_of(args, device);
  Shape shape = shape_of(problem);
  Allowed allowed{
      .split_k = true, .prepared_a = room, .stream_k = room && workspace >= room_for_parts(problem, kind)};
  if (args.flags & DUALGEMM_FLAG_BATCH_INVARIANT) {
    // Whether split-K or stream-K is faster depends on M, and M must not change a bit; so neither is allowed.
    // Where the tile could change bits, it must not depend on M, either.
    allowed.split_k = allowed.stream_k = false;
    if (!architecture.tiles_agree) {
      allowed.prepared_a = false;
      shape.m = kInvariantM;
      shape.problems = 1;
    }
  }
  Question question{kind, shape, machine, allowed};
  if (may_be_tuned(problem, machine)) question.tuning = tuning_for(device);
  if (question.tuning) {
    question.problems = problem.problems;
    question.rows = tuned_rows(problem, shape);
  }
  *choice = answer(question);
  // If no plain instance runs on the device, a general instance computes the same.
  if (!choice->instance && !kind.general) {
    question.kind.general = true;
    *choice = answer(question);
  }
  return choice->instance ? check_tiles(problem, *choice->instance) : fail_none(problem, kind, machine);
}

}  // namespace dualgemm
