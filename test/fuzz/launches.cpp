// launches.cpp -- a launch and the questions about it: whoever is asked, the answer is the same, and what is
// launched is what was announced.

#include <algorithm>
#include <cstring>
#include <iterator>

#include "fuzz/answer.h"
#include "fuzz/block.h"
#include "fuzz/problems.h"
#include "fuzz/targets.h"
#include "kernel/instance.h"

namespace dualgemm_fuzz {

using Claim = Claimed<dualgemm_args_t>;

constexpr int32_t kUntouched = -77;

static dualgemm_args_t whole(const dualgemm_args_t* args) {
  dualgemm_args_t defaults;
  dualgemm_args_init(&defaults);
  return whole(args, defaults);
}

// A refusal of these arguments, which may be NULL, names one of them.
static void require_argument(const Answer& answer, const dualgemm_args_t* args,
                             const dualgemm_device_t* device) {
  if (!args) return require_named(answer, fields_of(dualgemm_args_t{}), nullptr, device);
  const dualgemm_args_t all = whole(args);
  require_named(answer, fields_of(all), &all, device);
}

// Asks both questions about a device that is described; they agree. The id is 0 where there is none.
static Answer ask_about(const dualgemm_args_t* args, const dualgemm_device_t& described, int32_t* id) {
  std::vector<char> block(std::clamp<size_t>(described.struct_size, sizeof described.struct_size, 4096));
  std::memcpy(block.data(), &described, std::min(block.size(), sizeof described));
  const auto* const device = reinterpret_cast<const dualgemm_device_t*>(block.data());
  const Answer answer = steady_answer([&] { return dualgemm_can_implement_on(args, device); });
  *id = kUntouched;
  require_same(answer, steady_answer([&] { return dualgemm_select_instance(args, device, id); }),
               "can_implement_on and select_instance");
  require(answer.good() ? *id >= 0 && *id <= dualgemm_instance_count() : *id == kUntouched,
          "%s \"%s\" gives id %d", dualgemm_status_name(answer.status), answer.text.c_str(), *id);
  if (!answer.good()) *id = 0;
  return answer;
}

// What asks about no device is refused for the arguments alone, and then everybody refuses it.
static void require_workspace(const dualgemm_args_t* args, const Answer& answer) {
  size_t size = 77;
  const Answer workspace = steady_answer([&] { return dualgemm_workspace_size(args, &size); });
  require(workspace.good() ? size != 77 : size == 77, "workspace_size gives %zu", size);
  if (answer.good() || !workspace.good())
    require_same(workspace, answer, "workspace_size and can_implement_on");
}

// The grid keeps to the instance and to what the caller allows.
static void require_grid(const dualgemm_args_t& args, const dualgemm_device_t& device, int32_t id) {
  dualgemm_instance_info_t info = blank_info();
  require(answer_of(dualgemm_instance_info(id, &info)).good(), "instance %d is not known", id);
  const dualgemm_test::StubWork& work = dualgemm_test::stub_work();
  const auto cluster = static_cast<unsigned>(info.cta_group * info.split_k);
  require(work.cluster == cluster && work.smem_bytes == static_cast<size_t>(info.smem_bytes) &&
              work.block.x == static_cast<unsigned>(info.threads),
          "%s is launched with clusters of %u, %zu bytes, %u threads", info.name, work.cluster,
          work.smem_bytes, work.block.x);
  const bool limited = args.max_sms > 0 && args.max_sms < device.sm_count;
  const int32_t to_an_sm = dualgemm::instance(id - 1).plan.ctas_per_sm;
  const auto most = static_cast<unsigned>(limited ? args.max_sms : device.sm_count * to_an_sm);
  const unsigned grid = work.grid.x;
  const bool whole =
      grid > 0 && grid <= INT32_MAX && grid % cluster == 0 && work.grid.y == 1 && work.grid.z == 1;
  require(whole && (grid <= most || (info.split_k > 1 && !limited)),
          "%s is launched with %u CTAs, max_sms=%d", info.name, grid, args.max_sms);
}

// Does the launch have a pointer to memory that the driver does not know? Without K inputs are not looked at.
static bool has_unknown_memory(const dualgemm_args_t& args) {
  const auto unknown = [](const void* at) {
    return reinterpret_cast<uintptr_t>(at) >= dualgemm_test::kStubMemoryEnd;
  };
  const void* const inputs[] = {args.a,
                                args.b1,
                                args.b2,
                                args.sfa,
                                args.sfb1,
                                args.sfb2,
                                args.alpha1_dev,
                                args.alpha2_dev,
                                args.a_row_scale,
                                args.bias1,
                                args.bias2,
                                args.c_row_scale,
                                args.c_add,
                                args.c_global_scale_dev,
                                args.group_rows,
                                args.b1_row_exponent,
                                args.b2_row_exponent};
  const void* const others[] = {args.c, args.sfc, args.d1, args.d2, args.amax_out, args.workspace};
  return (args.k > 0 && std::any_of(std::begin(inputs), std::end(inputs), unknown)) ||
         std::any_of(std::begin(others), std::end(others), unknown);
}

// The question about the current device has the answer of the one about a device that is described alike, but
// that CHECK_POINTERS asks the driver for once, about memory.
static Answer ask_current(const dualgemm_args_t* args, const Answer& described) {
  const Answer answer = steady_answer([&] { return dualgemm_can_implement(args); });
  const bool asks =
      described.good() && args->m > 0 && args->n > 0 && (args->flags & DUALGEMM_FLAG_CHECK_POINTERS) != 0;
  if (!asks || !has_unknown_memory(*args)) {
    require_same(described, answer, "can_implement_on and can_implement");
    return answer;
  }
  require(answer.status == DUALGEMM_STATUS_INVALID_VALUE &&
              answer.text.find("is no memory that device 0 sees") != std::string::npos,
          "CHECK_POINTERS with memory that nobody knows: %s \"%s\"", dualgemm_status_name(answer.status),
          answer.text.c_str());
  require_argument(answer, args, nullptr);
  return answer;
}

static void launch(const dualgemm_args_t* args, const dualgemm_device_t& device, const Answer& announced,
                   int32_t id, bool bad_stream) {
  const cudaStream_t stream = bad_stream ? dualgemm_test::stub_bad_stream() : nullptr;
  const Work work;
  const Answer answer = answer_of(dualgemm_launch_ex(args, stream));
  if (!announced.good()) {
    require_same(announced, answer, "can_implement and launch_ex");
    require(work.none(), "a refused launch runs something: \"%s\"", answer.text.c_str());
    return;
  }
  const bool empty = args->m == 0 || args->n == 0, fill = !empty && args->k == 0;
  require((id == 0) == (empty || fill), "m=%d, n=%d, k=%d has instance %d", args->m, args->n, args->k, id);
  require(work.launches() == (id > 0 ? 1 : 0), "%zu launches", static_cast<size_t>(work.launches()));
  require((work.fills() > 0) == fill, "%zu fills", static_cast<size_t>(work.fills()));
  if (bad_stream && !empty) {
    require(answer.status == DUALGEMM_STATUS_CUDA_ERROR &&
                dualgemm_last_cuda_error() == cudaErrorInvalidResourceHandle,
            "a bad stream: \"%s\"", answer.text.c_str());
  } else {
    require_same(announced, answer, "can_implement and launch_ex");
  }
  require(cudaPeekAtLastError() == cudaSuccess, "an error stays in the runtime");
  if (id > 0) require_grid(*args, device, id);
}

// A try is the question for the workspace and the launch. Where it has less room than it would use, it
// launches nothing.
static void try_launch(const dualgemm_args_t* args, const Answer& announced) {
  size_t usable = 77, bytes = 77;
  const Answer size = answer_of(dualgemm_workspace_size(args, &usable));
  const Work work;
  const Answer answer = answer_of(dualgemm_try_launch(args, &bytes, nullptr));
  require(bytes == usable, "workspace_size gives %zu and try_launch %zu", usable, bytes);
  if (size.good() && whole(args).workspace_size < usable)
    require(answer.status == DUALGEMM_STATUS_WORKSPACE_TOO_SMALL, "a launch with too little room: \"%s\"",
            answer.text.c_str());
  else require_same(announced, answer, "can_implement and try_launch");
  require(answer.good() || work.none(), "a refused launch runs something: \"%s\"", answer.text.c_str());
}

// To ask for the instance that the library chooses changes nothing.
static void ask_for_chosen(dualgemm_args_t args, const dualgemm_device_t& device, int32_t id) {
  args.struct_size = sizeof args;
  args.instance_id = id;
  int32_t again;
  const Answer answer = ask_about(&args, device, &again);
  require(answer.good() && again == id, "instance %d was chosen, and asked for it is refused: \"%s\"", id,
          answer.text.c_str());
}

static void ask_about_another(Bytes& bytes, const dualgemm_args_t* args) {
  const dualgemm_device_t device = some_device(bytes);
  int32_t id;
  const Answer answer = ask_about(args, device, &id);
  require_argument(answer, args, &device);
  require_workspace(args, answer);
  if (id > 0 && args->instance_id == 0) ask_for_chosen(whole(args), device, id);
}

// Who has no device to ask about, or no room for the answer, is told so once the arguments are right.
static void ask_with_null(const dualgemm_args_t* args, const dualgemm_device_t& device, bool legal) {
  int32_t id = kUntouched;
  const Answer answers[] = {answer_of(dualgemm_can_implement_on(args, nullptr)),
                            answer_of(dualgemm_select_instance(args, nullptr, &id)),
                            answer_of(dualgemm_select_instance(args, &device, nullptr)),
                            answer_of(dualgemm_workspace_size(args, nullptr)),
                            answer_of(dualgemm_try_launch(args, nullptr, nullptr))};
  require(id == kUntouched, "a refusal gives instance %d", id);
  for (const Answer& answer : answers)
    require(legal ? answer.status == DUALGEMM_STATUS_NULL_POINTER : !answer.good(), "NULL is taken");
}

void ask_and_launch(Bytes& bytes) {
  const bool bad_stream = bytes.one_in(16);
  const dualgemm_device_t device = current_device();
  const Claim claim(bytes, some_launch(bytes));
  const dualgemm_args_t* const args = claim.get();

  int32_t id;
  const Answer answer = ask_about(args, device, &id);
  require_argument(answer, args, &device);
  require_workspace(args, answer);
  const Answer announced = ask_current(args, answer);
  launch(args, device, announced, id, bad_stream);
  launch(args, device, announced, id, bad_stream);
  try_launch(args, announced);
  if (id > 0 && args->instance_id == 0) ask_for_chosen(whole(args), device, id);
  if (bytes.one_in(64)) ask_with_null(args, device, answer.good());
  ask_about_another(bytes, args);
}

void launch_plainly(Bytes& bytes) {
  const dualgemm_args_t from = some_launch(bytes);
  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.m = from.m, args.n = from.n, args.k = from.k;
  args.a = from.a, args.b1 = from.b1, args.b2 = from.b2;
  args.sfa = from.sfa, args.sfb1 = from.sfb1, args.sfb2 = from.sfb2;
  args.c = from.c;
  args.alpha1 = from.alpha1, args.alpha2 = from.alpha2;
  args.c_dtype = from.c_dtype;
  const Answer expected = answer_of(dualgemm_launch_ex(&args, nullptr));
  const Work work;
  require_same(expected,
               answer_of(dualgemm_launch(args.a, args.b1, args.b2, args.sfa, args.sfb1, args.sfb2, args.c,
                                         args.m, args.n, args.k, args.alpha1, args.alpha2,
                                         static_cast<dualgemm_dtype_t>(args.c_dtype), nullptr)),
               "launch_ex and launch");
  require(expected.good() || work.none(), "a refused launch runs something: \"%s\"", expected.text.c_str());
}

}  // namespace dualgemm_fuzz
