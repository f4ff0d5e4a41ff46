// names.h -- what messages and tables call the enumerators of the interface: their names without the prefix
// that all enumerators of a type have in common.
#pragma once

#include <cstdint>

#include "host/include/dualgemm.h"

namespace dualgemm {

constexpr const char* dtype_name(int32_t dtype) {
  switch (dtype) {
    case DUALGEMM_DTYPE_BF16: return "BF16";
    case DUALGEMM_DTYPE_FP16: return "FP16";
    case DUALGEMM_DTYPE_FP32: return "FP32";
    case DUALGEMM_DTYPE_NVFP4: return "NVFP4";
    case DUALGEMM_DTYPE_FP8_E4M3: return "FP8_E4M3";
    case DUALGEMM_DTYPE_MXFP4: return "MXFP4";
    default: return "unknown";
  }
}

constexpr const char* activation_name(int32_t activation) {
  switch (activation) {
    case DUALGEMM_ACTIVATION_SWIGLU: return "SWIGLU";
    case DUALGEMM_ACTIVATION_GEGLU_TANH: return "GEGLU_TANH";
    case DUALGEMM_ACTIVATION_GEGLU_ERF: return "GEGLU_ERF";
    case DUALGEMM_ACTIVATION_REGLU: return "REGLU";
    case DUALGEMM_ACTIVATION_GLU: return "GLU";
    case DUALGEMM_ACTIVATION_SWIGLU_STEP: return "SWIGLU_STEP";
    case DUALGEMM_ACTIVATION_SITU: return "SITU";
    default: return "unknown";
  }
}

constexpr const char* linear_activation_name(int32_t activation) {
  switch (activation) {
    case DUALGEMM_LINEAR_ACTIVATION_NONE: return "NONE";
    case DUALGEMM_LINEAR_ACTIVATION_SILU: return "SILU";
    case DUALGEMM_LINEAR_ACTIVATION_GELU_TANH: return "GELU_TANH";
    case DUALGEMM_LINEAR_ACTIVATION_GELU_ERF: return "GELU_ERF";
    case DUALGEMM_LINEAR_ACTIVATION_RELU: return "RELU";
    case DUALGEMM_LINEAR_ACTIVATION_RELU2: return "RELU2";
    default: return "unknown";
  }
}

constexpr const char* group_mode_name(int32_t mode) {
  switch (mode) {
    case DUALGEMM_GROUP_NONE: return "NONE";
    case DUALGEMM_GROUP_OFFSETS: return "OFFSETS";
    case DUALGEMM_GROUP_MASKED: return "MASKED";
    default: return "unknown";
  }
}

}  // namespace dualgemm
