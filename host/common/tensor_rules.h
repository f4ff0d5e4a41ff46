// tensor_rules.h -- the rules about each tensor of a launch or of a conversion (pitch, stride, alignment, the
// bytes that it takes), and about two tensors (overlap). Texts start with the argument and its value.
#pragma once

#include <initializer_list>

#include "host/common/problem.h"

namespace dualgemm {

// All problems of a tensor together take fewer than 2^kProblemsBytes bytes. No GPU has that much memory, and
// with this limit the arithmetic of bytes stays within 64 bits.
inline constexpr int kProblemsBytes = 48;

// Fills in what a pitch or a stride of 0 stands for. The stride of a single problem is not looked at. A pitch
// that no rule has checked yet may be so large that the product below wraps; such a pitch is refused before
// anything looks at the stride.
inline Tensor resolved(Tensor t) {
  t.compact = t.pitch == 0;
  if (t.compact) t.pitch = t.row_elements;
  if (t.problems == 1 || t.stride == 0)
    t.stride = static_cast<int64_t>(static_cast<uint64_t>(t.rows) * static_cast<uint64_t>(t.pitch));
  t.most_rows = t.rows;
  return t;
}

// Checks the pitch, and that the rows of a problem take less than 2^log2_bytes bytes. `columns` is the
// argument that says how many elements a row has, for the text of an error.
dualgemm_status_t check_pitch(const Tensor& t, const char* columns, int log2_bytes = kProblemsBytes);
// Checks the step from one problem to the next.
dualgemm_status_t check_stride(const Tensor& t);
dualgemm_status_t check_alignment(const Tensor& t);
// The next two check addresses, after the rules above. check_end checks that all bytes of the tensor have
// addresses of 64 bits, and sets *last to the address of the last byte. check_overlap checks that two tensors
// share no byte.
dualgemm_status_t check_end(const Tensor& t, uintptr_t* last);
dualgemm_status_t check_overlap(const Tensor& output, const Tensor& other);

// Checks the ends of all tensors, then that each output overlaps neither an input nor an output that follows
// it in the list. A tensor that is not given breaks no rule.
using Tensors = std::initializer_list<const Tensor*>;
dualgemm_status_t check_places(Tensors inputs, Tensors outputs);

// A matrix in host memory, and factors in atoms, as functions without a structure take them: no address has
// to be aligned.
Tensor host_matrix(const char* name, const char* pitch_name, const void* base, int32_t rows,
                   int64_t row_elements, int32_t bits, int64_t pitch);
Tensor host_factors(const char* name, const void* base, int32_t rows, int32_t k);
// Returns the matrix with the gaps behind its rows as parts of it, for a function that writes them, too.
Tensor with_gaps(const Tensor& matrix);

}  // namespace dualgemm
