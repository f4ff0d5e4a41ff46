// contenders.h -- kernels of others (contender.h), loaded at run time and timed in turns with the library.
#pragma once

#include <string>
#include <vector>

#include "contender.h"
#include "measure.h"
#include "operands.h"

namespace bench {

// What a shared object defines.
struct ContenderFunctions {
  decltype(&contender_name) name = nullptr;
  decltype(&contender_is_exact) is_exact = nullptr;
  decltype(&contender_create) create = nullptr;
  decltype(&contender_multiply) multiply = nullptr;
  decltype(&contender_destroy) destroy = nullptr;
  decltype(&contender_takes_one_product) takes_one_product = nullptr;  // optional
};

// Throws std::runtime_error where the file is none, or lacks a function.
ContenderFunctions load_contender(const std::string& path);

struct Contender {
  std::string name;
  bool exact;
  Launch launch = {};
  std::string error = {};  // why there is no launch
};

struct ContenderTime {
  std::string name;
  bool exact;  // else it multiplies other numbers, and is not verified
  Timing stream{}, graph{};
  std::string error = {};  // why there is no time
};

// Prepares each to compute the input sets of `workload`, whose operands these are, and verifies those that
// are exact. What goes wrong is said in the result.
std::vector<Contender> prepare_contenders(const std::vector<ContenderFunctions>& all, Workload* workload,
                                          SharedOperands* operands, int samples);

}  // namespace bench
