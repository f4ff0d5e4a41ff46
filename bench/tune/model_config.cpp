// model_config.cpp -- see model_config.h.
#include "model_config.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "bench/projections.h"

namespace bench {
namespace {

using nlohmann::json;

// The number that the first of these names has; 0 where none has one. Models call the same by several names.
int32_t number_of(const json& config, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const auto found = config.find(name); found != config.end() && found->is_number_integer()) {
      const auto value = found->get<int64_t>();
      if (value < 0 || value > (1 << 24))
        throw std::runtime_error(std::string(name) + " is " + std::to_string(value));
      return static_cast<int32_t>(value);
    }
  return 0;
}

int32_t needed(const json& config, const char* name) {
  const int32_t value = number_of(config, {name});
  if (value == 0) throw std::runtime_error(std::string("the configuration has no ") + name);
  return value;
}

// The layers that a model has, each for one row; experts with what a launch of all of them needs.
struct Layers {
  struct Layer {
    Configuration model;
    Projection projection;
  };
  std::vector<Layer> dense, of_experts;
  int32_t experts = 0, choices = 0;  // choices: of a token
};

Configuration attention_of(const json& config, const std::string& name) {
  Configuration model{name, needed(config, "hidden_size"), 0, needed(config, "num_attention_heads"), 0, 0};
  const bool latent = number_of(config, {"kv_lora_rank"}) > 0;
  model.kv_heads = latent ? 0 : number_of(config, {"num_key_value_heads"});
  if (!latent && model.kv_heads == 0) model.kv_heads = model.heads;
  model.head_size = number_of(config, {latent ? "v_head_dim" : "head_dim"});
  if (model.head_size == 0) model.head_size = model.hidden / model.heads;
  return model;
}

Layers layers_of(const json& config, const std::string& name) {
  const Configuration model = attention_of(config, name);
  Layers out;
  out.dense = {{model, Projection::kQkv}, {model, Projection::kO}};
  const auto add = [&](std::vector<Layers::Layer>* to, int32_t intermediate, bool experts) {
    if (intermediate == 0) return;
    Configuration of_mlp = model;
    of_mlp.intermediate = intermediate;
    of_mlp.experts = experts;
    for (const Projection projection : {Projection::kGateUp, Projection::kDown})
      to->push_back({of_mlp, projection});
  };
  out.experts =
      number_of(config, {"num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts"});
  const int32_t of_dense = number_of(config, {"intermediate_size"});
  if (out.experts == 0) {
    add(&out.dense, needed(config, "intermediate_size"), false);
    return out;
  }
  if (out.experts > DUALGEMM_MAX_GROUPS)
    throw std::runtime_error(std::to_string(out.experts) + " experts are too many");
  out.choices = number_of(config, {"num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k"});
  if (out.choices == 0) throw std::runtime_error("the configuration has no num_experts_per_tok");
  const int32_t own = number_of(config, {"moe_intermediate_size"});
  const int32_t of_expert = own > 0 ? own : of_dense;
  add(&out.of_experts, of_expert, true);
  if (out.of_experts.empty()) throw std::runtime_error("the configuration has no moe_intermediate_size");
  // Some of these models begin with dense layers, and some have an expert that every token takes.
  if (own > 0 && number_of(config, {"first_k_dense_replace"}) > 0) add(&out.dense, of_dense, false);
  const int32_t shared = number_of(config, {"n_shared_experts", "num_shared_experts"});
  add(&out.dense, shared > 0 ? shared * of_expert : number_of(config, {"shared_expert_intermediate_size"}),
      false);
  return out;
}

bool fits(const Shape& shape) { return shape.n % 8 == 0 && shape.k % 32 == 0; }

bool is_there(const std::vector<Shape>& all, const Shape& shape) {
  for (const Shape& x : all)
    if (x.products == shape.products && x.m == shape.m && x.n == shape.n && x.k == shape.k &&
        x.group_rows == shape.group_rows)
      return true;
  return false;
}

}  // namespace

std::vector<Shape> shapes_of_model(const std::string& config_json, const std::string& name, int32_t gpus,
                                   const std::vector<int32_t>& tokens, std::vector<std::string>* left_out) {
  const json whole = json::parse(config_json, nullptr, false);
  if (!whole.is_object()) throw std::runtime_error("it is no JSON object");
  // Models that see or hear have their language model's numbers apart.
  const auto text = whole.find("text_config");
  const json& config = text != whole.end() && text->is_object() ? *text : whole;
  const Layers layers = layers_of(config, name);
  std::vector<Shape> out;
  const auto add = [&](const Layers::Layer& layer, bool experts) {
    const std::optional<Shape> one = projection_of(layer.model, layer.projection, gpus);
    if (!one || !fits(*one)) {
      static constexpr const char* kNames[] = {"gate and up", "qkv", "o", "down"};
      left_out->push_back(std::string(kNames[static_cast<int>(layer.projection)]) +
                          (experts ? " of experts" : "") +
                          (one ? ": N = " + std::to_string(one->n) + ", K = " + std::to_string(one->k)
                           : layer.projection == Projection::kQkv && layer.model.kv_heads == 0
                               ? ": attention is latent"
                               : ": does not divide by " + std::to_string(gpus)));
      return;
    }
    for (const int32_t count : tokens) {
      Shape shape = *one;
      if (experts) {
        const int64_t rows = int64_t{count} * layers.choices;
        shape = groups(DUALGEMM_GROUP_OFFSETS, skewed_rows(layers.experts, rows), one->n, one->k, one->label);
        shape.products = one->products;
      }
      shape.m = experts ? shape.m : count;
      if (!is_there(out, shape)) out.push_back(shape);
    }
  };
  for (const Layers::Layer& layer : layers.dense) add(layer, false);
  for (const Layers::Layer& layer : layers.of_experts) add(layer, true);
  if (out.empty()) throw std::runtime_error("no layer of it has sizes that a launch takes");
  return out;
}

}  // namespace bench
