// one_kernel.h -- the PTX of one kernel, taken out of a module as nvcc writes it.
#pragma once

#include <string>

namespace sim::shim {

// Takes every other kernel out of the text, each with the functions behind it, which are those that it calls;
// lines keep their numbers. Returns false, and does not change the text, if it has no such kernel.
bool keep_kernel(std::string& text, const std::string& name);

// Returns whether the kernels of a module share only functions, and no variables in memory.
bool kernels_stand_alone(const std::string& text);

}  // namespace sim::shim
