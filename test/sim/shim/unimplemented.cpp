// unimplemented.cpp -- the rest of the runtime API: programs that link against it must link here too, but
// calling a function that is not simulated stops the process with its name, because any answer would be made
// up. The symbols are weak, so that a program or a later file of this folder may define them; the CUDA
// headers are not included, because one signature stands for all. The build lists the functions by
// list_unimplemented.sh.
#include <cstdio>
#include <cstdlib>

namespace {
[[noreturn]] void stop(const char* function) {
  std::fprintf(stderr, "simulated CUDA: %s is not simulated\n", function);
  std::abort();
}
}  // namespace

#define SIM_UNIMPLEMENTED(function) \
  extern "C" __attribute__((weak)) void function() { stop(#function); }
#include "unimplemented.inc"
