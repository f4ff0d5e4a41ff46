// call.cpp -- see call.h.

#include "host/torch/call.h"

#include <algorithm>

namespace dualgemm::torch_ops {

Tensor new_matrix(Call& call, const char* name, const Tensor& beside, int32_t type,
                  std::optional<int64_t> problems, int64_t rows, int64_t columns) {
  constexpr int64_t kRowBytes = 16;  // rows and problems begin at multiples of it
  const int64_t elements = kRowBytes / element_bytes(type);
  const int64_t pitch = std::max<int64_t>(1, (columns + elements - 1) / elements * elements);
  const int64_t sizes[] = {problems.value_or(1), rows, columns};
  const int64_t strides[] = {pitch * std::max<int64_t>(1, rows), pitch, 1};
  const int skip = problems ? 0 : 1;
  return call.result(name, beside, type, 3 - skip, sizes + skip, strides + skip);
}

Tensor new_array(Call& call, const char* name, const Tensor& beside, int32_t type,
                 std::initializer_list<int64_t> sizes) {
  int64_t strides[3] = {1, 1, 1};
  const int64_t dims = static_cast<int64_t>(sizes.size());
  for (int64_t i = dims - 1; i > 0; --i) strides[i - 1] = strides[i] * std::max<int64_t>(1, sizes.begin()[i]);
  return call.result(name, beside, type, dims, sizes.begin(), strides);
}

}  // namespace dualgemm::torch_ops
