// state.cpp -- errors: which are remembered, for how long, and what is printed.
#include "sim/shim/state.h"

#include <cstdio>
#include <new>
#include <utility>

#include "sim/shim/held.h"
#include "sim/shim/shim.h"

namespace sim::shim {
namespace {
// The last error is kept per thread, as in CUDA. It is constant-initialised, so it is safe before and after
// static objects live.
thread_local cudaError_t last_error = cudaSuccess;

struct Described {
  cudaError_t code;
  std::string text;
  bool sticky = false;
};

Described describe_in_flight() {
  try {
    throw;
  } catch (const Failure& failure) {
    return {failure.code(), failure.what(), failure.sticky()};
  } catch (const Fault& fault) {
    // Outside a launch the machine faults only on addresses and arguments the host passed.
    return {cudaErrorInvalidValue, fault.what()};
  } catch (const std::bad_alloc&) {
    return {cudaErrorMemoryAllocation, "the host has no memory left"};
  } catch (const std::exception& error) {
    return {cudaErrorUnknown, error.what()};
  }
}
}  // namespace

void fail(cudaError_t code, const std::string& why) { throw Failure(code, why); }

void require(bool holds, const char* why) {
  if (!holds) fail(cudaErrorInvalidValue, why);
}

Runtime& runtime() {
  static Runtime* const instance = new Runtime;
  return *instance;
}

cudaError_t record_failure(Runtime& runtime, const char* function) {
  const Described failure = describe_in_flight();
  runtime.fault_text = failure.text;
  if (failure.sticky) runtime.sticky = failure.code;
  last_error = failure.code;
  std::fprintf(stderr, "simulated CUDA: %s: %s: %s\n", function, cudaGetErrorName(failure.code),
               failure.text.c_str());
  return failure.code;
}

cudaError_t refuse_after_fault(const Runtime& runtime) {
  last_error = runtime.sticky;
  return runtime.sticky;
}

std::string last_fault_text() {
  std::lock_guard lock(runtime().mutex);
  return runtime().fault_text;
}

void clear_fault() {
  std::lock_guard lock(runtime().mutex);
  runtime().sticky = cudaSuccess;
  runtime().fault_text.clear();
  last_error = cudaSuccess;
}

void set_launch_options(const LaunchOptions& options) {
  std::lock_guard lock(runtime().mutex);
  run_held_quietly(runtime(), "set_launch_options");
  runtime().launch_options = options;
}

LaunchStats last_launch_stats() {
  std::lock_guard lock(runtime().mutex);
  return runtime().launch_stats;
}

void set_module_editor(ModuleEditor edit, std::function<void(std::string&)> cut) {
  std::lock_guard lock(runtime().mutex);
  runtime().registry.set_editor(std::move(edit), std::move(cut));
}

void reload_modules() {
  std::lock_guard lock(runtime().mutex);
  run_held_quietly(runtime(), "reload_modules");
  runtime().registry.reload();
}

std::vector<std::string> loaded_kernels(int device) {
  std::lock_guard lock(runtime().mutex);
  return runtime().registry.loaded_kernels(device);
}

GlobalMemory& memory() { return runtime().memory; }

}  // namespace sim::shim

extern "C" {

cudaError_t cudaPeekAtLastError() {
  sim::shim::Runtime& runtime = sim::shim::runtime();
  std::lock_guard lock(runtime.mutex);
  return runtime.sticky != cudaSuccess ? runtime.sticky : sim::shim::last_error;
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  sim::shim::last_error = cudaSuccess;
  return error;
}

}  // extern "C"
