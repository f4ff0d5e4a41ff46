// models_test.cpp -- layers of published models: their activations with their parameters, their N and K, few
// rows. N is that of gate and up (the intermediate size), K the hidden size. Where all of a layer would take
// too long here, there stands a part of it: of N, of the experts, as one of several GPUs has it, or less.
//
// The numbers are those of each model's config.json as its publisher or those who serve it give them. The
// numbers of rows, factors for them, and NVFP4 as the type of C, are this test's choice.
#include <algorithm>
#include <vector>

#include "kernel/extras.h"

using namespace dualgemm_test;

namespace {

struct Model {
  int32_t n, k;
  dualgemm_activation_t activation;
  ref::Parameters parameters;
  void (*give)(Problem&, Rng&);
};

void nothing(Problem&, Rng&) {}
void both_row_factors(Problem& p, Rng& rng) {
  give_row_scale(p, rng);
  give_c_row_scale(p, rng);
}

// hidden_size and intermediate_size 2880, biases of gate and up in bf16, swiglu_limit 7; 1.702 and the 1 that
// is added to up stand in the model's code.
const Model kGptOss = {2880, 2880, DUALGEMM_ACTIVATION_SWIGLU, {1.702f, 1, 7}, give_biases};
// intermediate_size of an expert and hidden_size, 128 experts, swiglu_alpha 1.702, swiglu_limit 7.
const Model kMiniMaxM3 = {3072, 6144, DUALGEMM_ACTIVATION_SWIGLU, {1.702f, 1, 7}, nothing};
// moe_intermediate_size and hidden_size, swiglu_limit 10, 256 and 384 experts. Activations quantised row by
// row have factors for the rows of A; for Pro the weights of the router go on C.
const Model kDeepSeekV4Flash = {2048, 4096, DUALGEMM_ACTIVATION_SWIGLU, {1, 0, 10}, give_row_scale};
const Model kDeepSeekV4Pro = {3072, 7168, DUALGEMM_ACTIVATION_SWIGLU, {1, 0, 10}, both_row_factors};
// 26B-A4B: moe_intermediate_size and hidden_size, 128 experts, gelu_pytorch_tanh.
const Model kGemma4 = {704, 2816, DUALGEMM_ACTIVATION_GEGLU_TANH, {}, nothing};
// The experts work on 3584 elements, to which the hidden 7168 are projected; 896 of them. 4 and 25 are the
// two betas of SiTU.
const Model kKimiK3 = {3072, 3584, DUALGEMM_ACTIVATION_SITU, {1, 0, 1, 4, 25}, nothing};
// moe_intermediate_size and hidden_size of 3.7 Flash, 288 experts, a limit of 7 behind silu.
const Model kStep37 = {1280, 4096, DUALGEMM_ACTIVATION_SWIGLU_STEP, {1, 0, 7}, nothing};
// GLM-4.5-Air: moe_intermediate_size 1408, hidden_size 4096, 128 experts. An eighth of N is 176.
const Model kGlm45Air = {1408, 4096, DUALGEMM_ACTIVATION_SWIGLU, {}, nothing};
// Qwen3-30B-A3B: moe_intermediate_size 768, hidden_size 2048, 128 experts.
const Model kQwen3 = {768, 2048, DUALGEMM_ACTIVATION_SWIGLU, {}, nothing};

struct Layer {
  const char* name;
  const Model& model;
  int32_t parts;              // of N, of which this is one
  int32_t experts;            // 1: a launch without groups
  std::vector<int32_t> rows;  // of the experts that have any, which are spread over all
  dualgemm_group_mode_t mode;
  dualgemm_dtype_t dtype;
};

constexpr auto kDense = DUALGEMM_GROUP_NONE;
constexpr auto kOffsets = DUALGEMM_GROUP_OFFSETS, kMasked = DUALGEMM_GROUP_MASKED;
constexpr auto kBf16 = DUALGEMM_DTYPE_BF16, kNvfp4 = DUALGEMM_DTYPE_NVFP4;

const std::vector<Layer>& layers() {
  static const std::vector<Layer> all = {
      {"gpt-oss-120b, one expert", kGptOss, 1, 1, {16}, kDense, kBf16},
      {"gpt-oss-20b, all 32 experts", kGptOss, 4, 32, {5, 1, 9, 2}, kOffsets, kNvfp4},
      {"MiniMax-M3, one expert", kMiniMaxM3, 4, 1, {5}, kDense, kBf16},
      {"MiniMax-M3, 8 of 128 experts", kMiniMaxM3, 8, 8, {3, 1, 4, 2}, kMasked, kBf16},
      {"DeepSeek-V4-Flash, one expert", kDeepSeekV4Flash, 4, 1, {8}, kDense, kBf16},
      {"DeepSeek-V4-Flash, 16 of 256 experts", kDeepSeekV4Flash, 8, 16, {2, 6, 1}, kOffsets, kBf16},
      {"DeepSeek-V4-Pro, one expert", kDeepSeekV4Pro, 4, 1, {4}, kDense, kNvfp4},
      {"DeepSeek-V4-Pro, 24 of 384 experts", kDeepSeekV4Pro, 16, 24, {2, 6, 1}, kOffsets, kNvfp4},
      {"Gemma 4 26B-A4B, 16 of 128 experts", kGemma4, 1, 16, {7, 1, 12}, kMasked, kBf16},
      {"Kimi K3, all 896 experts", kKimiK3, 192, 896, std::vector<int32_t>(16, 2), kMasked, kNvfp4},
      {"Kimi K3, one expert", kKimiK3, 4, 1, {12}, kDense, kBf16},
      {"Kimi K3, one expert for the next launch", kKimiK3, 4, 1, {3}, kDense, kNvfp4},
      {"Step 3.7 Flash, 36 of 288 experts", kStep37, 4, 36, {1, 8, 3}, kOffsets, kBf16},
      {"Step 3.7 Flash, one expert", kStep37, 4, 1, {4}, kDense, kNvfp4},
      {"GLM-4.5-Air, all 128 experts", kGlm45Air, 8, 128, {11, 2, 1, 30}, kOffsets, kNvfp4},
      {"Qwen3-30B-A3B, 16 of 128 experts", kQwen3, 1, 16, {4, 4}, kMasked, kNvfp4},
      {"Qwen3-30B-A3B, one expert", kQwen3, 1, 1, {16}, kDense, kNvfp4},
  };
  return all;
}

// Spreads the rows of the busy experts over all experts.
std::vector<int32_t> rows_of(const Layer& layer) {
  std::vector<int32_t> out(static_cast<size_t>(layer.experts), 0);
  for (size_t i = 0; i < layer.rows.size(); ++i) {
    const size_t expert = (2 * i + 1) * out.size() / (2 * layer.rows.size());
    out.at(expert) = layer.rows[i];
  }
  return out;
}

ProblemSet problems_of(const Layer& layer) {
  const Model& model = layer.model;
  const int32_t n = model.n / layer.parts;
  ProblemSet set;
  set.mode = layer.mode;
  set.n = n;
  set.k = model.k;
  Rng rng(1);
  const Problem idle = make_problem(Data::kFullRange, 0, n, model.k, 2);  // the weights of all without rows
  for (const int32_t m : rows_of(layer)) {
    Problem p = m == 0 ? idle : make_problem(Data::kFullRange, m, n, model.k, 3 + set.problems.size());
    model.give(p, rng);
    p.parameters = model.parameters;
    p.encode = 9;
    set.m = layer.mode == kOffsets ? set.m + m : std::max(set.m, m);
    set.problems.push_back(std::move(p));
  }
  return set;
}

}  // namespace

TEST_CASE("layers of published models give the reference's result", "[models]") {
  for (const Layer& layer : layers()) {
    DYNAMIC_SECTION(layer.name) {
      REQUIRE(layer.model.n % layer.parts == 0);
      SetOptions options;
      options.activation = layer.model.activation;
      options.dtype = layer.dtype;
      check_launch(problems_of(layer), options);
    }
  }
}
