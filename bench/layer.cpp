// layer.cpp -- see layer.h.
#include "layer.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace bench {

std::string Layer::text() const {
  return std::to_string(up.m) + "x" + std::to_string(up.n) + "x" + std::to_string(up.k);
}

Layer dense_layer(int32_t m, int32_t intermediate, int32_t k, std::string label) {
  Layer out{{m, intermediate, k, label}, {m, k, intermediate, std::move(label)}};
  out.down.products = 1;
  return out;
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
      Layer one = dense_layer(m, layer.up.n, layer.up.k, layer.up.label);
      const auto same = [&one](const Layer& other) { return other.text() == one.text(); };
      if (std::none_of(out.begin(), out.end(), same)) out.push_back(std::move(one));
    }
  return out;
}

}  // namespace bench
