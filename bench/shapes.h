// shapes.h -- the problems the benchmark knows by name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

struct Shape {
  int32_t m, n, k;
  std::string label;
};

struct Suite {
  std::string name, what;
  std::vector<Shape> shapes;
};

inline const std::vector<Suite>& suites() {
  static const std::vector<Suite> all = {
      {"contest",
       "the four timed shapes of the public NVFP4 dual-GEMM contest",
       {{256, 4096, 7168, "contest 1"},
        {512, 4096, 7168, "contest 2"},
        {256, 3072, 4096, "contest 3"},
        {512, 3072, 7168, "contest 4"}}},
      {"decode",
       "few tokens: the weights are streamed once and bandwidth is everything",
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
      {"ragged",
       "sizes that are no multiple of a tile",
       {{300, 720, 2880, "gpt-oss-120b, 1/4"},
        {513, 1408, 4096, "GLM-4.5-Air expert"},
        {77, 360, 2880, "gpt-oss-120b, 1/8"}}},
  };
  return all;
}

}  // namespace bench
