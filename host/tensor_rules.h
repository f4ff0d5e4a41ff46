// tensor_rules.h -- the rules about one tensor of a conversion: its pitch, its stride, its alignment, and
// which bytes it takes. Texts start with the argument and its value.
#pragma once

#include "host/problem.h"
#include "host/region.h"

namespace dualgemm {

// Fills in what a pitch or a stride of 0 stands for.
Tensor resolved(Tensor t);

// `columns` is what the caller calls the elements of a row.
dualgemm_status_t check_pitch(const Tensor& t, const char* columns);
dualgemm_status_t check_stride(const Tensor& t);
dualgemm_status_t check_alignment(const Tensor& t);
dualgemm_status_t check_overlap(const Tensor& output, const Tensor& other);

}  // namespace dualgemm
