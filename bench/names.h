// names.h -- the outputs and the activations, in the order and by the names that the tables of the benchmark
// have for them.
#pragma once

#include "host/common/names.h"
#include "host/include/dualgemm.h"

namespace bench {

template <class Number>
struct Named {
  Number number;
  const char* name;
};

constexpr Named<dualgemm_dtype_t> named(dualgemm_dtype_t dtype) {
  return {dtype, dualgemm::dtype_name(dtype)};
}
constexpr Named<dualgemm_activation_t> named(dualgemm_activation_t activation) {
  return {activation, dualgemm::activation_name(activation)};
}

inline constexpr Named<dualgemm_dtype_t> kOutputs[] = {
    named(DUALGEMM_DTYPE_BF16), named(DUALGEMM_DTYPE_FP16), named(DUALGEMM_DTYPE_FP32),
    named(DUALGEMM_DTYPE_FP8_E4M3), named(DUALGEMM_DTYPE_NVFP4)};

inline constexpr Named<dualgemm_activation_t> kActivations[] = {
    named(DUALGEMM_ACTIVATION_SWIGLU),    named(DUALGEMM_ACTIVATION_GEGLU_TANH),
    named(DUALGEMM_ACTIVATION_GEGLU_ERF), named(DUALGEMM_ACTIVATION_REGLU),
    named(DUALGEMM_ACTIVATION_GLU),       named(DUALGEMM_ACTIVATION_SWIGLU_STEP),
    named(DUALGEMM_ACTIVATION_SITU)};

constexpr Named<dualgemm_linear_activation_t> named(dualgemm_linear_activation_t activation) {
  return {activation, dualgemm::linear_activation_name(activation)};
}
inline constexpr Named<dualgemm_linear_activation_t> kLinearActivations[] = {
    named(DUALGEMM_LINEAR_ACTIVATION_NONE),      named(DUALGEMM_LINEAR_ACTIVATION_SILU),
    named(DUALGEMM_LINEAR_ACTIVATION_GELU_TANH), named(DUALGEMM_LINEAR_ACTIVATION_GELU_ERF),
    named(DUALGEMM_LINEAR_ACTIVATION_RELU),      named(DUALGEMM_LINEAR_ACTIVATION_RELU2)};

}  // namespace bench
