// arguments.h -- a shape as the library's arguments.
#pragma once

#include "dualgemm.h"
#include "shapes.h"

namespace bench {

// Returns everything that the library is told in numbers: no pointers yet. A usual group is said to have the
// mean of all.
dualgemm_args_t sizes_of(const Shape& shape, const Epilogue& epilogue);

// The same with addresses, which nothing follows: distinct and aligned, as the checks of a launch ask for. An
// A of 16 bits comes with all the workspace that a launch may make use of, as inputs.h has it.
dualgemm_args_t described_args(const Shape& shape, const Epilogue& epilogue);

// Throws std::runtime_error with the library's own words unless `status` is SUCCESS.
void check(dualgemm_status_t status, const char* what);

}  // namespace bench
