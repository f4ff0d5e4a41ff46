// arguments.cpp -- see arguments.h.
#include "arguments.h"

#include <stdexcept>
#include <string>

namespace bench {

constexpr size_t kMuchWorkspace = size_t{1} << 40;

void check(dualgemm_status_t status, const char* what) {
  if (status == DUALGEMM_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string(what) + ": " + dualgemm_status_name(status) + ": " +
                           dualgemm_last_error());
}

dualgemm_args_t sizes_of(const Shape& shape, const Epilogue& epilogue) {
  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.m = shape.m;
  args.n = shape.n;
  args.k = shape.k;
  args.lda = args.ldb1 = (shape.k + 31) / 32 * 32;
  args.products = shape.products;
  if (shape.products == 2) args.ldb2 = args.ldb1;
  args.ldc = epilogue.pitch(shape.n);
  args.a_dtype = shape.a_dtype;
  args.b_dtype = shape.b_dtype();
  args.c_dtype = epilogue.dtype;
  if (shape.products == 2) args.activation = epilogue.activation;
  else args.linear_activation = epilogue.linear_activation;
  if (shape.grouped()) {
    args.group_mode = shape.mode;
    args.groups = shape.problems();
    args.expected_rows = static_cast<int32_t>((shape.rows() + args.groups - 1) / args.groups);
  } else {
    args.batch = shape.batch;
  }
  return args;
}

dualgemm_args_t described_args(const Shape& shape, const Epilogue& epilogue) {
  dualgemm_args_t args = sizes_of(shape, epilogue);
  uintptr_t address = uintptr_t{1} << 40;
  for (const void** input : {&args.a, &args.b1, &args.b2, &args.sfa, &args.sfb1, &args.sfb2})
    *input = reinterpret_cast<const void*>(address += uintptr_t{1} << 40);
  args.c = reinterpret_cast<void*>(address += uintptr_t{1} << 40);
  if (!shape.packed_a()) args.sfa = nullptr;
  if (shape.products == 1) args.b2 = args.sfb2 = nullptr;
  if (shape.fp8_a()) {
    args.a_row_scale = reinterpret_cast<const float*>(address += uintptr_t{1} << 40);
    args.b1_row_exponent = reinterpret_cast<const int16_t*>(address += uintptr_t{1} << 40);
    if (shape.products == 2)
      args.b2_row_exponent = reinterpret_cast<const int16_t*>(address += uintptr_t{1} << 40);
  }
  args.workspace = reinterpret_cast<void*>(uintptr_t{1} << 56);  // behind the largest C
  args.workspace_size = kMuchWorkspace;
  if (args.c_dtype == DUALGEMM_DTYPE_NVFP4)
    args.sfc = reinterpret_cast<void*>(address + (uintptr_t{1} << 40));
  if (args.group_mode != DUALGEMM_GROUP_NONE)
    args.group_rows = reinterpret_cast<const int32_t*>(uintptr_t{1} << 40);
  return args;
}

}  // namespace bench
