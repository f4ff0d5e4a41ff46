// projections.h -- the linear layers of a model, as tensor parallelism divides them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "shapes.h"

namespace bench {

// What a model's public configuration says. Where a model has experts, `intermediate` is that of one of them.
struct Configuration {
  std::string_view name;
  int32_t hidden, intermediate;
  int32_t heads, head_size;  // of the queries
  int32_t kv_heads;          // of the keys, and as many of the values; none: attention is latent
  bool experts = false;
};

enum class Projection { kGateUp, kQkv, kO, kDown };

// Returns a layer for one row: gate, up, queries, keys and values are divided by columns, o and down by K. Of
// a key and value head that several GPUs need, each has a copy. There is none where the numbers do not
// divide, or for the queries, keys and values of latent attention.
std::optional<Shape> projection_of(const Configuration& model, Projection layer, int32_t gpus);

}  // namespace bench
