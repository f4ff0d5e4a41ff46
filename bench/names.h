// names.h -- what the tables of the benchmark call the outputs and the activations.
#pragma once

#include "host/dualgemm.h"

namespace bench {

template <class Number>
struct Named {
  Number number;
  const char* name;
};

inline constexpr Named<dualgemm_dtype_t> kOutputs[] = {{DUALGEMM_DTYPE_BF16, "BF16"},
                                                       {DUALGEMM_DTYPE_FP16, "FP16"},
                                                       {DUALGEMM_DTYPE_FP32, "FP32"},
                                                       {DUALGEMM_DTYPE_FP8_E4M3, "FP8_E4M3"},
                                                       {DUALGEMM_DTYPE_NVFP4, "NVFP4"}};

inline constexpr Named<dualgemm_activation_t> kActivations[] = {
    {DUALGEMM_ACTIVATION_SWIGLU, "SWIGLU"},
    {DUALGEMM_ACTIVATION_GEGLU_TANH, "GEGLU_TANH"},
    {DUALGEMM_ACTIVATION_GEGLU_ERF, "GEGLU_ERF"},
    {DUALGEMM_ACTIVATION_REGLU, "REGLU"},
    {DUALGEMM_ACTIVATION_GLU, "GLU"},
    {DUALGEMM_ACTIVATION_SWIGLU_STEP, "SWIGLU_STEP"},
    {DUALGEMM_ACTIVATION_SITU, "SITU"},
};

}  // namespace bench
