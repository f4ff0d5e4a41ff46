// names.h -- the outputs and the activations, in the order and by the names that the tables of the benchmark
// have for them, and the types as the options of programs call them.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

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

// What --dtype calls the types of C.
inline constexpr Named<dualgemm_dtype_t> kTypes[] = {{DUALGEMM_DTYPE_FP16, "fp16"},
                                                     {DUALGEMM_DTYPE_BF16, "bf16"},
                                                     {DUALGEMM_DTYPE_FP32, "fp32"},
                                                     {DUALGEMM_DTYPE_FP8_E4M3, "fp8"},
                                                     {DUALGEMM_DTYPE_NVFP4, "nvfp4"}};

// What --a-dtype calls the types of A, and what reports call those of the weights.
inline constexpr Named<dualgemm_dtype_t> kTypesOfA[] = {{DUALGEMM_DTYPE_NVFP4, "nvfp4"},
                                                        {DUALGEMM_DTYPE_BF16, "bf16"},
                                                        {DUALGEMM_DTYPE_FP16, "fp16"},
                                                        {DUALGEMM_DTYPE_FP8_E4M3, "fp8"}};
inline constexpr Named<dualgemm_dtype_t> kTypesOfB[] = {{DUALGEMM_DTYPE_NVFP4, "nvfp4"},
                                                        {DUALGEMM_DTYPE_MXFP4, "mxfp4"}};

// Return the names of such a list, the number of one of its names, and the name of one of its numbers.
template <class List>
std::vector<std::string> names_of(const List& list) {
  std::vector<std::string> out;
  for (const auto& entry : list) out.push_back(entry.name);
  return out;
}
template <class List>
auto number_of(const List& list, const std::string& name) {
  return std::find_if(std::begin(list), std::end(list), [&](const auto& entry) { return entry.name == name; })
      ->number;
}
template <class List, class Number>
const char* name_in(const List& list, Number number) {
  return std::find_if(std::begin(list), std::end(list),
                      [&](const auto& entry) { return entry.number == number; })
      ->name;
}

}  // namespace bench
