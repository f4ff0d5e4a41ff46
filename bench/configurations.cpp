// configurations.cpp -- see configurations.h.
#include "configurations.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "projections.h"

namespace bench {
namespace {

constexpr Configuration kConfigurations[] = {{"Llama-3.2-1B", 2048, 8192, 32, 64, 8},
                                             {"Llama-3.2-3B", 3072, 8192, 24, 128, 8},
                                             {"Llama-3.1-8B", 4096, 14336, 32, 128, 8},
                                             {"Llama-3.3-70B", 8192, 28672, 64, 128, 8},
                                             {"Llama-3.1-405B", 16384, 53248, 128, 128, 8},
                                             {"Llama-4-Scout", 5120, 8192, 40, 128, 8, true},
                                             {"Qwen2.5-7B", 3584, 18944, 28, 128, 4},
                                             {"Qwen2.5-72B", 8192, 29568, 64, 128, 8},
                                             {"Qwen3-4B", 2560, 9728, 32, 128, 8},
                                             {"Qwen3-14B", 5120, 17408, 40, 128, 8},
                                             {"Qwen3-32B", 5120, 25600, 64, 128, 8},
                                             {"Qwen3-30B-A3B", 2048, 768, 32, 128, 4, true},
                                             {"Qwen3-235B-A22B", 4096, 1536, 64, 128, 4, true},
                                             {"Qwen3-Coder-480B", 6144, 2560, 96, 128, 8, true},
                                             {"Gemma-2-9B", 3584, 14336, 16, 256, 8},
                                             {"Phi-4", 5120, 17920, 40, 128, 10},
                                             {"Phi-3.5-MoE", 4096, 6400, 32, 128, 8, true},
                                             {"Mistral-Small-24B", 5120, 32768, 32, 128, 8},
                                             {"Mistral-Large-123B", 12288, 28672, 96, 128, 8},
                                             {"Mixtral-8x22B", 6144, 16384, 48, 128, 8, true},
                                             {"gpt-oss-120b", 2880, 2880, 64, 64, 8, true},
                                             {"GLM-4.5", 5120, 1536, 96, 128, 8, true},
                                             {"GLM-4.5-Air", 4096, 1408, 96, 128, 8, true},
                                             {"DeepSeek-V3", 7168, 2048, 128, 128, 0, true},
                                             {"MiniMax-M2", 3072, 1536, 48, 128, 8, true}};

// Numbers of tokens: of decoding, of small batches, of prefill; powers of two and others.
constexpr int32_t kRowsOfModels[] = {1,   2,   3,   5,   8,   16,  24,   32,   48,   64,   96,   100,  128,
                                     192, 256, 300, 384, 512, 768, 1000, 1024, 1500, 2048, 3000, 4096, 8192};
constexpr auto kNumberOfRows = static_cast<int32_t>(std::size(kRowsOfModels));

constexpr int32_t kProblems = 400;
// Models with larger weights run on several GPUs.
constexpr int64_t kMostWeights = int64_t{1} << 28;

class WeightList {
 public:
  explicit WeightList(int32_t products) : products_(products) {}

  // Adds them, unless they are there or the benchmark does not take such sizes (N % 8, K % 32).
  void add(const Shape& shape) {
    const auto same = [&](const Shape& x) { return x.n == shape.n && x.k == shape.k; };
    if (shape.n % 8 != 0 || shape.k % 32 != 0 || int64_t{shape.n} * shape.k > kMostWeights ||
        std::any_of(all_.begin(), all_.end(), same))
      return;
    all_.push_back(shape);
    all_.back().products = products_;
  }
  const std::vector<Shape>& all() const { return all_; }

 private:
  int32_t products_;
  std::vector<Shape> all_;
};

std::vector<Shape> weights_of_models(int32_t products) {
  const std::vector<Projection> layers =
      products == 2 ? std::vector{Projection::kGateUp}
                    : std::vector{Projection::kQkv, Projection::kO, Projection::kDown};
  WeightList weights(products);
  for (const Projection layer : layers)
    for (const Configuration& model : kConfigurations)
      for (const int32_t gpus : {1, 2, 4, 8})
        if (const std::optional<Shape> shape = projection_of(model, layer, gpus)) weights.add(*shape);
  return weights.all();
}

// Returns how many rows weights get in their turn. Steps of the golden ratio, 377 of 610, spread the numbers
// of rows evenly over every stretch of the list, such as all o.
int32_t rows_of(size_t weights, int32_t turn) {
  const auto place = static_cast<int32_t>(weights * 377 % 610) * kNumberOfRows / 610;
  return kRowsOfModels[(place + 9 * turn) % kNumberOfRows];
}

// Returns so many problems: the weights in turns, each with other rows than before.
std::vector<Shape> with_spread_rows(const std::vector<Shape>& weights, size_t problems) {
  std::vector<Shape> out;
  for (size_t i = 0; i < problems; ++i) {
    out.push_back(weights[i % weights.size()]);
    out.back().m = rows_of(i % weights.size(), static_cast<int32_t>(i / weights.size()));
  }
  return out;
}

}  // namespace

std::vector<Shape> layers_of_models(int32_t products) {
  const std::vector<Shape> one = weights_of_models(1);
  if (products == 1) return with_spread_rows(one, one.size());
  return with_spread_rows(weights_of_models(2), kProblems - one.size());
}

}  // namespace bench
