// projections.cpp -- see projections.h.
#include "projections.h"

#include <algorithm>
#include <string>

namespace bench {

std::optional<Shape> projection_of(const Configuration& model, Projection layer, int32_t gpus) {
  const auto shape = [&](int32_t n, int32_t k, const char* what) {
    Shape out{1, n, k, std::string(model.name) + what + (gpus > 1 ? ", 1/" + std::to_string(gpus) : "")};
    out.products = layer == Projection::kGateUp ? 2 : 1;
    return out;
  };
  if (layer == Projection::kGateUp || layer == Projection::kDown) {
    if (model.intermediate % gpus != 0) return {};
    const int32_t intermediate = model.intermediate / gpus;
    if (layer == Projection::kGateUp)
      return shape(intermediate, model.hidden, model.experts ? " expert" : "");
    return shape(model.hidden, intermediate, model.experts ? " expert down" : " down");
  }
  const bool latent = model.kv_heads == 0, copies = !latent && gpus % model.kv_heads == 0;
  if (model.heads % gpus != 0 || (model.kv_heads % gpus != 0 && !copies)) return {};
  const int32_t heads = model.heads / gpus, kv_heads = std::max(1, model.kv_heads / gpus);
  if (layer == Projection::kO) return shape(model.hidden, heads * model.head_size, " o");
  if (latent) return {};
  return shape((heads + 2 * kv_heads) * model.head_size, model.hidden, " qkv");
}

}  // namespace bench
