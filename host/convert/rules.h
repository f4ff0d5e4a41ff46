// rules.h -- the rules that all conversions share: ranges, pointers, and tensors as tensor_rules.h has them.
#pragma once

#include <limits>

#include "host/common/rows.h"
#include "host/common/tensor_rules.h"

namespace dualgemm {

// Kernels compute rows and columns in 32 bits, up to the end of the last tile.
inline constexpr int32_t kMaxExtent = std::numeric_limits<int32_t>::max() - 1023;

dualgemm_status_t check_range(const char* name, int32_t value, int32_t last);
dualgemm_status_t check_count(const char* name, int32_t value);
dualgemm_status_t check_pdl_flag(uint32_t flags);
dualgemm_status_t check_given(const char* name, const void* pointer);
// `rule` says when the pointer has to be NULL.
dualgemm_status_t check_absent(const char* name, const void* pointer, const char* rule);

// Checks that rows and columns are few enough, and the tiles of all bands, which have 31-bit numbers.
dualgemm_status_t check_size(const Rows& rows, int32_t k, int32_t tiles_of_band);

// Describe tensors, with their pitches and strides resolved. In `matrix`, `t` has everything except the
// parameters before it. The other two describe vectors, one for each problem, or one for all problems.
Tensor matrix(int32_t row_elements, int32_t bits, int32_t alignment, Tensor t);
Tensor floats(const char* name, const char* stride_name, const float* base, int32_t count, int32_t problems,
              int64_t stride);
Tensor integers(const char* name, const int32_t* base, int32_t count);

// Checks all rules of tensors. A tensor that is not given breaks no rule.
dualgemm_status_t check_tensors(Tensors inputs, Tensors outputs, const char* columns);

}  // namespace dualgemm
