// held.cpp -- see held.h.
#include "sim/shim/held.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/exec/policy.h"
#include "sim/shim/judging.h"
#include "sim/shim/state.h"
#include "sim/text.h"

namespace sim::shim {

constexpr size_t kMostHeld = 128;  // as many grids can be resident on a device

static cudaError_t error_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::kBounds: return cudaErrorIllegalAddress;
    case FaultKind::kMisaligned:
    case FaultKind::kAlignment: return cudaErrorMisalignedAddress;
    case FaultKind::kDeadlock:
    case FaultKind::kGivenUp: return cudaErrorLaunchTimeout;
    case FaultKind::kLaunch: return cudaErrorInvalidConfiguration;
    case FaultKind::kUnsupported: return cudaErrorInvalidDeviceFunction;
    case FaultKind::kAssert: return cudaErrorAssert;
    case FaultKind::kSyntax: return cudaErrorInvalidPtx;
    case FaultKind::kPoison:
    case FaultKind::kProtocol:
    case FaultKind::kTrap: return cudaErrorLaunchFailure;
  }
  return cudaErrorLaunchFailure;
}

// Launches that are not held any more are complete. A programmatic launch depends on the launch right before
// it; the launches that this earlier one depends on also stand in `after`, because the stream has not come
// past them.
static void put_in_order(Launch& launch, const WorkInProgress& work,
                         const std::vector<std::unique_ptr<Launch>>& held) {
  std::vector<const Launch*>& before = work.programmatic ? launch.preceding : launch.after;
  for (const auto& other : held)
    if (contains(work.after, other->work)) before.push_back(other.get());
  if (!work.programmatic) return;
  const std::vector<const Launch*> all = before;
  for (const Launch* other : all)
    for (const Launch* theirs : other->preceding) std::erase(before, theirs);
}

void fail_launch(Runtime& runtime, const Fault& fault, bool began) {
  judge_fault(runtime, fault.kind(), fault.what());
  throw Failure(error_of(fault.kind()), with_short_kernel(fault.what()), began);
}

void hold(Runtime& runtime, std::unique_ptr<Launch> launch) {
  put_in_order(*launch, *runtime.order.current, runtime.held);
  runtime.held.push_back(std::move(launch));
  const Policy* const policy = launch_options(runtime).policy;
  if (policy == nullptr || !policy->overlaps_grids() || runtime.held.size() == kMostHeld) run_held(runtime);
}

void run_held(Runtime& runtime) {
  if (runtime.held.empty()) return;
  const std::vector<std::unique_ptr<Launch>> held = std::exchange(runtime.held, {});
  std::vector<Launch*> launches;
  for (const auto& launch : held) launches.push_back(launch.get());
  try {
    run(launches, runtime.memory, launch_options(runtime));
  } catch (const Fault& fault) {
    fail_launch(runtime, fault, fault.kind() != FaultKind::kLaunch);
  }
  runtime.launch_stats = held.back()->stats;
}

void run_held_quietly(Runtime& runtime, const char* function) {
  try {
    run_held(runtime);
  } catch (...) {
    record_failure(runtime, function);
  }
}

}  // namespace sim::shim
