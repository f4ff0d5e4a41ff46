// extras.h -- what only the instances with the general epilogue compute, as tests ask for it: activations,
// output types, and what a launch may have beside its operands, given to problems at random.
#pragma once

#include <functional>
#include <vector>

#include "support/problem_set.h"
#include "support/rng.h"

namespace dualgemm_test {

inline constexpr dualgemm_activation_t kActivations[] = {
    DUALGEMM_ACTIVATION_SWIGLU, DUALGEMM_ACTIVATION_GEGLU_TANH, DUALGEMM_ACTIVATION_GEGLU_ERF,
    DUALGEMM_ACTIVATION_REGLU,  DUALGEMM_ACTIVATION_GLU,        DUALGEMM_ACTIVATION_SWIGLU_STEP,
    DUALGEMM_ACTIVATION_SITU};
inline constexpr dualgemm_dtype_t kOutputs[] = {DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP16, DUALGEMM_DTYPE_FP32,
                                                DUALGEMM_DTYPE_NVFP4, DUALGEMM_DTYPE_FP8_E4M3};
inline constexpr dualgemm_dtype_t kBeforeActivation[] = {DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP16,
                                                         DUALGEMM_DTYPE_FP32};

// One thing that a launch may have, given to a problem.
struct Extra {
  const char* name;
  std::function<void(Problem&, Rng&)> give;
};

inline float uniform(Rng& rng, float low, float high) {
  return low + (high - low) * static_cast<float>(rng.unit());
}

// Numbers that bf16 has, of both signs; as fp32 they get more bits than bf16 has.
inline std::vector<float> bias(const Problem& p, Rng& rng) {
  const float more = p.bias_dtype == DUALGEMM_DTYPE_FP32 ? 1.0009765625f : 1;
  std::vector<float> out;
  for (int32_t i = 0; i < p.n; ++i) out.push_back(static_cast<float>(rng.between(-128, 128)) / 32 * more);
  return out;
}

inline void give_row_scale(Problem& p, Rng& rng) {
  p.row_scale.clear();
  for (int32_t i = 0; i < p.m; ++i) p.row_scale.push_back(uniform(rng, 0.25f, 3));
}
// Weights of the router, and a negative one, which turns signs but no magnitude.
inline void give_c_row_scale(Problem& p, Rng& rng) {
  for (int32_t i = 0; i < p.m; ++i) p.c_row_scale.push_back(i % 7 == 3 ? -0.75f : uniform(rng, 0.05f, 1));
}
inline void give_biases(Problem& p, Rng& rng) {
  p.bias1 = bias(p, rng);
  p.bias2 = bias(p, rng);
}
inline void give_everything(Problem& p, Rng& rng) {
  give_row_scale(p, rng);
  give_biases(p, rng);
  give_c_row_scale(p, rng);
  p.parameters = {-0.75, -2, 1.5, 0.5, 3};
}

inline const std::vector<Extra>& extras() {
  static const std::vector<Extra> all = {
      {"row factors", give_row_scale},
      {"bias1 alone, bf16", [](Problem& p, Rng& rng) { p.bias1 = bias(p, rng); }},
      {"bias2 alone, fp32",
       [](Problem& p, Rng& rng) {
         p.bias_dtype = DUALGEMM_DTYPE_FP32;
         p.bias2 = bias(p, rng);
       }},
      {"gpt-oss: both biases, 1.702, 1, 7",
       [](Problem& p, Rng& rng) {
         give_biases(p, rng);
         p.parameters = {1.702f, 1, 7};
       }},
      {"DeepSeek-V4 with row factors: 1, 0, 10",
       [](Problem& p, Rng& rng) {
         give_row_scale(p, rng);
         p.parameters = {1, 0, 10};
       }},
      {"factors of the rows of C", give_c_row_scale},
      {"everything", give_everything},
  };
  return all;
}

// Takes away the second product, and with it what the reference of two would need.
inline void leave_one_product(ProblemSet& set, dualgemm_linear_activation_t activation) {
  for (Problem& p : set.problems) {
    p.products = 1;
    p.linear_activation = activation;
    p.bias2.clear();
    p.parameters = {};
  }
}
// Numbers of both signs that every type of 16 bits has.
inline void give_c_add(ProblemSet& set, uint64_t seed) {
  Rng rng(seed);
  for (Problem& p : set.problems)
    for (int64_t i = 0; i < int64_t{p.m} * p.n; ++i)
      p.c_add.push_back(static_cast<float>(rng.between(-128, 128)) / 32);
}

// Gives the same kind of extra to all problems, and each its own numbers.
inline void give_all(ProblemSet& set, const Extra& extra, uint64_t seed) {
  Rng rng(seed);
  for (Problem& p : set.problems) extra.give(p, rng);
}

// An encode scale that makes good use of an output type for results of some tens, another for every problem.
inline void give_encode(ProblemSet& set, dualgemm_dtype_t dtype) {
  const float first = dtype == DUALGEMM_DTYPE_NVFP4 ? 12.0f : 5.0f;
  for (size_t i = 0; i < set.problems.size(); ++i) set.problems[i].encode = first * (1 + i % 6 * 0.125f);
}

}  // namespace dualgemm_test
