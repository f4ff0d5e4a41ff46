// suites.cpp -- the shapes that the benchmark knows by name.
#include "configurations.h"
#include "shapes.h"

namespace bench {
namespace {

constexpr dualgemm_group_mode_t kOffsets = DUALGEMM_GROUP_OFFSETS, kMasked = DUALGEMM_GROUP_MASKED;

struct Weights {
  int32_t n, k;
  const char* label;
};

// Returns weights with numbers of tokens from one to thousands.
std::vector<Shape> with_tokens(const std::vector<Weights>& all, int32_t products = 2) {
  std::vector<Shape> shapes;
  for (const Weights& weights : all) {
    Shape shape{1, weights.n, weights.k, weights.label};
    shape.products = products;
    shapes.push_back(shape);
  }
  return with_rows(shapes, {1, 8, 16, 32, 64, 128, 256, 512, 2048, 4096});
}

// Returns qkv, o and down, whole and as tensor parallelism divides them among two GPUs: qkv by its columns, o
// and down by K. What two models have in common stands here once. The sizes are those of the models' public
// configurations:
//
//     model          hidden   query and key heads         intermediate
//     Qwen3-32B      5120     64 and 8 of 128             25600
//     Qwen3.6-27B    5120     24 and 4 of 256, gated      17408
//     Llama-3.3-70B  8192     64 and 8 of 128             28672
//
// The queries of Qwen3.6 have gates, as many columns as they. Three of four of its layers have linear
// attention, with 16 key heads and 48 value heads of 128: one product gives queries, keys, values and the
// gates of the values ("in"), and o is that of the other layers.
std::vector<Weights> linear_layers() {
  return {{10240, 5120, "Qwen3-32B qkv"},        {5120, 5120, "Qwen3-32B qkv, 1/2"},
          {5120, 8192, "Qwen3-32B o"},  // and half of qkv of Llama-70B
          {5120, 4096, "Qwen3-32B o, 1/2"},      {5120, 25600, "Qwen3-32B down"},
          {5120, 12800, "Qwen3-32B down, 1/2"},  {14336, 5120, "Qwen3.6-27B qkv"},
          {7168, 5120, "Qwen3.6-27B qkv, 1/2"},  {16384, 5120, "Qwen3.6-27B in"},
          {8192, 5120, "Qwen3.6-27B in, 1/2"},   {5120, 6144, "Qwen3.6-27B o"},
          {5120, 3072, "Qwen3.6-27B o, 1/2"},    {5120, 17408, "Qwen3.6-27B down"},
          {5120, 8704, "Qwen3.6-27B down, 1/2"}, {10240, 8192, "Llama-70B qkv"},
          {8192, 8192, "Llama-70B o"},           {8192, 4096, "Llama-70B o, 1/2"},
          {8192, 28672, "Llama-70B down"},       {8192, 14336, "Llama-70B down, 1/2"}};
}

}  // namespace

const std::vector<Suite>& suites() {
  static const std::vector<Suite> all = {
      {"contest",
       "the four timed shapes of the public NVFP4 dual-GEMM contest",
       {{256, 4096, 7168, "contest 1"},
        {512, 4096, 7168, "contest 2"},
        {256, 3072, 4096, "contest 3"},
        {512, 3072, 7168, "contest 4"}}},
      {"decode",
       "few tokens: weights are streamed once and bandwidth is everything",
       {{1, 3584, 8192, "Llama-70B, 1/8"},
        {16, 3584, 8192, "Llama-70B, 1/8"},
        {128, 3584, 8192, "Llama-70B, 1/8"},
        {1, 2048, 7168, "DeepSeek-V3 expert"},
        {128, 2048, 7168, "DeepSeek-V3 expert"},
        {16, 1536, 4096, "Qwen3-235B expert"}}},
      {"prefill",
       "many tokens: the tensor cores are the limit",
       {{2048, 3584, 8192, "Llama-70B, 1/8"},
        {4096, 14336, 4096, "Llama-8B"},
        {4096, 2048, 7168, "DeepSeek-V3 expert"},
        {4096, 12288, 5120, "GLM-4.5 dense"}}},
      {"rows", "one pair of weights, one token to many: how the time rises with M",
       [] {
         std::vector<Shape> shapes;
         for (const int32_t m : {1, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 4096})
           shapes.push_back({m, 4096, 7168, "contest weights"});
         return shapes;
       }()},
      {"hopper", "weights of models in use, from one token to many",
       with_tokens({{4096, 7168, "contest weights"},
                    {14336, 4096, "Llama-8B"},
                    {2048, 7168, "DeepSeek-V3 expert"},
                    {28672, 8192, "Llama-70B"},
                    {2880, 2880, "gpt-oss"}})},
      {"ragged",
       "sizes that are no multiple of a tile",
       {{300, 720, 2880, "gpt-oss-120b, 1/4"},
        {513, 1408, 4096, "GLM-4.5-Air expert"},
        {77, 360, 2880, "gpt-oss-120b, 1/8"}}},
      {"batch",
       "problems of one shape in one launch",
       {{16, 720, 2880, "gpt-oss-120b, 1/4", 8},
        {128, 768, 2048, "Qwen3-30B experts", 32},
        {256, 4096, 7168, "contest 1, twice", 2},
        {512, 2048, 7168, "DeepSeek-V3 experts", 8}}},
      // The sizes of the contest's groups are those of its group GEMM, which has one product per group.
      {"grouped",
       "groups with weights of their own, whose sizes the device knows: experts, some without a row",
       {groups(kOffsets, {80, 176, 128, 72, 64, 248, 96, 160}, 4096, 7168, "contest sizes 1"),
        groups(kOffsets, {40, 76, 168, 72, 164, 148, 196, 160}, 7168, 2048, "contest sizes 2"),
        groups(kOffsets, {192, 248}, 3072, 4096, "contest sizes 3"),
        groups(kOffsets, {128, 40}, 4096, 1536, "contest sizes 4"),
        groups(kOffsets, skewed_rows(256, 256 * 8), 2048, 7168, "DeepSeek-V3"),
        groups(kMasked, skewed_rows(256, 256 * 8), 2048, 7168, "DeepSeek-V3"),
        groups(kMasked, skewed_rows(64, 64 * 32), 2048, 7168, "DeepSeek-V3, 1/4"),
        groups(kOffsets, skewed_rows(128, 128 * 64), 1536, 4096, "Qwen3-235B"),
        groups(kMasked, skewed_rows(128, 128 * 8), 1536, 4096, "Qwen3-235B"),
        groups(kOffsets, skewed_rows(32, 32 * 256), 2880, 2880, "gpt-oss-20b")}},
      {"gate-up", "gate and up of dense models, whole and on each of two GPUs",
       with_tokens({{25600, 5120, "Qwen3-32B"},
                    {12800, 5120, "Qwen3-32B, 1/2"},
                    {17408, 5120, "Qwen3.6-27B"},
                    {8704, 5120, "Qwen3.6-27B, 1/2"},
                    {28672, 8192, "Llama-70B"},
                    {14336, 8192, "Llama-70B, 1/2"}})},
      {"linear", "all other linear layers of these models", with_tokens(linear_layers(), 1)},
      {"models-gate-up", "gate and up of 25 models or an expert of theirs, on 1 to 8 GPUs",
       layers_of_models(2)},
      {"models-linear", "qkv, o and down of these models", layers_of_models(1)},
  };
  return all;
}

}  // namespace bench
