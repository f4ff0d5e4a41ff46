// layer.cpp -- see layer.h.
#include "layer.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <regex>
#include <stdexcept>
#include <utility>

namespace bench {

std::string Layer::text() const {
  if (experts())
    return std::to_string(tokens) + "," + std::to_string(up.problems()) + "," + std::to_string(top_k) + "x" +
           std::to_string(up.n) + "x" + std::to_string(up.k);
  return std::to_string(up.m) + "x" + std::to_string(up.n) + "x" + std::to_string(up.k);
}

Layer dense_layer(int32_t m, int32_t intermediate, int32_t k, std::string label) {
  Layer out{{m, intermediate, k, label}, {m, k, intermediate, std::move(label)}};
  out.down.products = 1;
  return out;
}

Layer expert_layer(int32_t tokens, int32_t experts, int32_t top_k, int32_t intermediate, int32_t k,
                   std::string label) {
  const int64_t choices = int64_t{tokens} * top_k;
  const std::vector<int32_t> rows = skewed_rows(experts, choices);
  Layer out{groups(DUALGEMM_GROUP_OFFSETS, rows, intermediate, k, label),
            groups(DUALGEMM_GROUP_OFFSETS, rows, k, intermediate, label), tokens, top_k};
  out.down.products = 1;
  out.ids.resize(static_cast<size_t>(choices));
  // Rows of an expert go to tokens that are far apart; each token has a choice of every round.
  int32_t step = std::max(1, static_cast<int32_t>(tokens * 0.618));
  while (std::gcd(step, tokens) != 1) ++step;
  int64_t row = 0;
  for (int32_t expert = 0; expert < experts; ++expert)
    for (int32_t i = 0; i < rows[static_cast<size_t>(expert)]; ++i, ++row)
      out.ids[static_cast<size_t>(row * step % tokens * top_k + row / tokens)] = expert;
  return out;
}

Layer parse_expert_layer(const std::string& text) {
  static const std::regex form(R"((\d{1,9}),(\d{1,4}),(\d{1,3})x(\d{1,9})x(\d{1,9}))");
  std::smatch part;
  const auto refuse = [&text](const char* why) { throw std::runtime_error("--shape " + text + ": " + why); };
  if (!std::regex_match(text, part, form)) refuse("--chain moe takes T,E,topkxIxK");
  const auto number = [&part](size_t i) { return std::stoi(part[i]); };
  for (size_t i = 1; i <= 5; ++i)
    if (number(i) < 1) refuse("numbers must be positive");
  if (number(2) > DUALGEMM_MAX_GROUPS) refuse("too many experts");
  if (int64_t{number(1)} * number(3) > INT32_MAX - 1024) refuse("too many choices");
  return expert_layer(number(1), number(2), number(3), number(4), number(5), "command line");
}

std::vector<Layer> expert_layers() {
  return with_rows({expert_layer(1, 128, 8, 768, 2048, "Qwen3-30B-A3B")},
                   {1, 8, 16, 32, 64, 128, 256, 512, 2048, 4096});
}

Layer parse_dense_layer(const std::string& text) {
  const Shape shape = parse_shape(text);
  if (shape.grouped() || shape.problems() > 1)
    throw std::runtime_error("--shape " + text + ": --chain ffn takes MxIxK");
  return dense_layer(shape.m, shape.n, shape.k, shape.label);
}

std::vector<Layer> dense_layers() {
  return with_rows({dense_layer(1, 25600, 5120, "Qwen3-32B"), dense_layer(1, 12800, 5120, "Qwen3-32B, 1/2"),
                    dense_layer(1, 28672, 8192, "Llama-70B"), dense_layer(1, 14336, 8192, "Llama-70B, 1/2")},
                   {1, 8, 16, 32, 64, 128, 256, 512, 2048, 4096});
}

std::vector<Layer> with_rows(const std::vector<Layer>& layers, const std::vector<int32_t>& rows) {
  std::vector<Layer> out;
  for (const Layer& layer : layers)
    for (const int32_t m : rows) {
      const Shape& up = layer.up;
      Layer one = layer.experts() ? expert_layer(m, up.problems(), layer.top_k, up.n, up.k, up.label)
                                  : dense_layer(m, up.n, up.k, up.label);
      const auto same = [&one](const Layer& other) { return other.text() == one.text(); };
      if (std::none_of(out.begin(), out.end(), same)) out.push_back(std::move(one));
    }
  return out;
}

}  // namespace bench
