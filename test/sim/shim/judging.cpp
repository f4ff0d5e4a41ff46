// judging.cpp -- see judging.h.
#include "sim/shim/judging.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "sim/judge/judge.h"
#include "sim/shim/held.h"
#include "sim/shim/shim.h"
#include "sim/shim/state.h"

namespace sim::shim {
namespace {

// The judge of a program that knows nothing of it. It is made at the program's first work and reports when
// the process ends.
Judge* from_environment = nullptr;

// Returns the program as it was started, for the replay line.
std::string command_line() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::string out, word;
  while (std::getline(in, word, '\0')) out += (out.empty() ? "" : " ") + shell_word(word);
  return out;
}

// `dualgemm-sim` sets SIM_QUIET: it prints what it reads from SIM_JSON.
void print_findings(Judge& judge) {
  const std::string text = judge.take_text();
  if (std::getenv("SIM_QUIET") == nullptr) std::fputs(text.c_str(), stderr);
}

void at_exit() {
  std::lock_guard lock(runtime().mutex);
  run_held_quietly(runtime(), "exit");
  print_findings(*from_environment);
  try {
    from_environment->write_json(true);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "simulated CUDA: %s\n", error.what());
  }
}

// A program that should be judged but cannot be must not look as if it had been judged.
[[noreturn]] void refuse(const std::exception& error) {
  std::fprintf(stderr, "simulated CUDA: %s\n", error.what());
  std::fflush(nullptr);
  std::_Exit(2);
}

void ask_environment(Runtime& runtime) {
  runtime.environment_read = true;
  try {
    JudgeOptions options;
    if (!options_from_environment(options)) return;
    options.program = command_line();
    options.machine = runtime.machine.name;
    from_environment = new Judge(std::move(options), runtime.memory);
    runtime.judge = from_environment;
    std::atexit(at_exit);
  } catch (const std::exception& error) {
    refuse(error);
  }
}

}  // namespace

LaunchOptions launch_options(Runtime& runtime) {
  if (!runtime.environment_read) ask_environment(runtime);
  LaunchOptions options = runtime.launch_options;
  options.machine = runtime.machine;
  Judge* const judge = runtime.judge;
  if (judge == nullptr) return options;
  options.go_on = judge->options().go_on;
  options.align_as_declared = judge->options().align_as_declared;
  options.elect_lowest = judge->options().elect_lowest;
  options.patience = judge->options().patience;
  if (options.policy == nullptr) options.policy = &judge->policy();
  if (options.observer == nullptr) {
    options.observer = &judge->observer();
  } else {
    runtime.watchers = Observers();
    runtime.watchers.add(judge->observer());
    runtime.watchers.add(*options.observer);
    options.observer = &runtime.watchers;
  }
  return options;
}

void judge_fault(Runtime& runtime, FaultKind kind, const std::string& text) {
  launch_options(runtime);
  if (runtime.judge == nullptr) return;
  runtime.judge->fault(kind, text);
  if (runtime.judge == from_environment) print_findings(*runtime.judge);
}

void set_judge(Judge* judge) {
  std::lock_guard lock(runtime().mutex);
  run_held_quietly(runtime(), "set_judge");
  runtime().environment_read = true;
  runtime().judge = judge;
  if (judge == nullptr) runtime().registry.forget_retired();
}

}  // namespace sim::shim
