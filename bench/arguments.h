// arguments.h -- a shape as the library's arguments.
#pragma once

#include "dualgemm.h"
#include "shapes.h"

namespace bench {

// Returns everything that the library is told in numbers: no pointers yet. A usual group is said to have the
// mean of all.
dualgemm_args_t sizes_of(const Shape& shape, const Epilogue& epilogue);

// The same with addresses, which nothing follows: distinct and aligned, as the checks of a launch ask for.
// There is all the workspace that a launch may make use of, as inputs.h has it, and with an A in FP8 there
// are factors of its rows and exponents of the weights' rows.
dualgemm_args_t described_args(const Shape& shape, const Epilogue& epilogue);

// Throws std::runtime_error with the library's own words unless `status` is SUCCESS.
void check(dualgemm_status_t status, const char* what);

}  // namespace bench
