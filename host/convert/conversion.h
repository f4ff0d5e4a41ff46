// conversion.h -- the arguments of moving factors and of quantising, as the rules, the launches and the twins
// on the host see them: the caller's structure, of whichever release, with defaults resolved and each tensor
// described once.
#pragma once

#include "host/common/problem.h"
#include "host/common/rows.h"
#include "kernel/convert/params.h"

namespace dualgemm {

struct FactorConversion {
  dualgemm_sf_args_t args;
  Rows rows;
  bool empty;  // nothing to do: no rule about tensors was looked at
  Tensor linear, atoms;
  int32_t tiles_of_band;  // of the kernel
};

struct Quantization {
  dualgemm_quantize_args_t args;
  Rows rows;
  bool empty;
  Tensor x, q, sf, global_scale_dev, tensor_scales, row_scale, row_index;
  int32_t tiles_of_band;    // of the kernel
  int32_t tiles_of_search;  // of the kernel before it, which looks for the largest magnitude

  bool in_fp8() const { return args.q_dtype == DUALGEMM_DTYPE_FP8_E4M3; }
  bool has_short_rows() const { return x.bytes(args.k) <= kShortRowBytes; }
};

// Return the structures as dualgemm_sf_args_init and dualgemm_quantize_args_init set them.
dualgemm_sf_args_t default_sf_args();
dualgemm_quantize_args_t default_quantize_args();

// Check all rules except the one about the device, in the order of the manual.
dualgemm_status_t validate(const dualgemm_sf_args_t* args, bool to_atoms, FactorConversion* conversion);
dualgemm_status_t validate(const dualgemm_quantize_args_t* args, Quantization* quantization);

}  // namespace dualgemm
