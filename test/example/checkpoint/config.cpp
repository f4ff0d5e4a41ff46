// config.cpp -- by what ModelOpt, compressed-tensors and transformers write: quant_algo and
// quantized_layers are ModelOpt's, format, config_groups and transform_config are those of
// compressed-tensors, whose quantization/quant_args.py defines the arguments of a group.

#include "example/checkpoint/config.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

namespace checkpoint {
namespace {

using nlohmann::json;

// Values that a key may have, or none: then any. Null, which says nothing, always goes.
using Values = std::vector<json>;
using Rules = std::map<std::string, Values>;

const Values kAnything;
const Values kNothing = {false};  // besides empty objects, arrays and texts

// These say what the tensors say, how calibration was done, or what was left as it was.
const Rules kQuantisation = {
    {"quant_method", {"modelopt", "modelopt_fp4", "modelopt_mixed", "compressed-tensors", "nvfp4", "mxfp4"}},
    {"quant_algo", {"NVFP4", "W4A16_NVFP4", "MXFP4", "MIXED_PRECISION"}},
    {"format", {"nvfp4-pack-quantized", "mxfp4-pack-quantized", "mixed-precision"}},
    {"group_size", {16, 32}},
    {"quantization_status", {"compressed"}},
    {"version", kAnything},
    {"producer", kAnything},
    {"ignore", kAnything},
    {"exclude_modules", kAnything},
    {"modules_to_not_convert", kAnything},
    {"global_compression_ratio", kAnything},
    {"kv_cache_scheme", kAnything},
    {"kv_cache_quant_algo", kAnything},
    {"config_groups", kAnything},
    {"quantized_layers", kAnything},
    {"transform_config", kNothing},
    {"sparsity_config", kNothing},
    {"has_zero_point", kNothing},
    {"zero_point", kNothing},
    {"desc_act", kNothing},
    {"pre_quant_scale", kNothing}};

// Of one group of compressed-tensors.
const Rules kGroup = {{"format", {"nvfp4-pack-quantized", "mxfp4-pack-quantized"}},
                      {"targets", kAnything},
                      {"weights", kAnything},
                      {"input_activations", kAnything},
                      {"output_activations", kNothing}};
// What it says of weights, or of activations. "weight" and "static" order columns for calibration alone.
const Rules kArguments = {{"num_bits", {4}},
                          {"type", {"float"}},
                          {"group_size", {16, 32}},
                          {"symmetric", {true}},
                          {"strategy", {"tensor_group", "group"}},
                          {"dynamic", kAnything},
                          {"actorder", {false, "weight", "static"}},
                          {"block_structure", kNothing},
                          {"scale_dtype", {"torch.float8_e4m3fn", "torch.uint8"}},
                          {"zp_dtype", kAnything},
                          {"observer", kAnything},
                          {"observer_kwargs", kAnything}};
// Of one layer of ModelOpt's.
const Rules kLayer = {{"quant_algo", {"NVFP4", "W4A16_NVFP4", "MXFP4"}},
                      {"group_size", {16, 32}},
                      {"has_zero_point", kNothing},
                      {"pre_quant_scale", kNothing}};

[[noreturn]] void refuse(const std::string& where, const std::string& key, const json& value,
                         const std::string& why) {
  throw FormatError(printable(where) + ": has \"" + printable(key) + "\": " + printable(value.dump()) + ", " +
                    why);
}

bool is_nothing(const json& value) {
  return value == false || value.empty() || value == "" ||
         (value.is_object() && value.contains("format") && value["format"] == "dense");
}

void check(const std::string& where, const json& object, const Rules& rules) {
  if (!object.is_object())
    throw FormatError(printable(where) + ": " + printable(object.dump()) + " is not an object");
  for (const auto& [key, value] : object.items()) {
    const auto rule = rules.find(key);
    if (rule == rules.end()) refuse(where, key, value, "which is not known here and may change the weights");
    const Values& allowed = rule->second;
    if (value.is_null() || allowed.empty()) continue;
    if (allowed == kNothing && !is_nothing(value)) refuse(where, key, value, "which is not done here");
    if (allowed == kNothing || std::find(allowed.begin(), allowed.end(), value) != allowed.end()) continue;
    std::string list;
    for (const json& one : allowed) list += (list.empty() ? "" : ", ") + one.dump();
    refuse(where, key, value, "of which is read: " + list);
  }
}

// What a check says, or nothing.
template <typename Function>
std::string error_of(Function function) {
  try {
    function();
  } catch (const FormatError& e) {
    return e.what();
  }
  return "";
}

void check_group(const std::string& where, const json& group) {
  check(where, group, kGroup);
  for (const char* key : {"weights", "input_activations"})
    if (group.contains(key) && !group[key].is_null()) check(where + "." + key, group[key], kArguments);
}

std::vector<std::string> targets_of(const json& group) {
  std::vector<std::string> targets;
  if (group.is_object() && group.contains("targets") && group["targets"].is_array())
    for (const json& target : group["targets"])
      if (target.is_string()) targets.push_back(target.get<std::string>());
  if (targets.empty()) targets.emplace_back("Linear");  // whatever layer it is
  return targets;
}

// Some entries are about some layers alone. They are kept until it is known which one is read.
void check_quantisation(const std::string& where, const json& quantisation, Config& config) {
  if (is_nothing(quantisation)) return;
  check(where, quantisation, kQuantisation);
  for (const char* key : {"config_groups", "quantized_layers"}) {
    if (!quantisation.contains(key) || is_nothing(quantisation[key])) continue;
    const json& entries = quantisation[key];
    const std::string path = where + "." + key;
    if (!entries.is_object()) throw FormatError(printable(path) + ": is not an object");
    std::vector<Config::Layers>& layers = config.layers.emplace_back();
    for (const auto& [name, entry] : entries.items()) {
      const std::string here = path + "." + name;
      if (std::string(key) == "config_groups")
        layers.push_back({targets_of(entry), error_of([&, &entry = entry] { check_group(here, entry); })});
      else layers.push_back({{name}, error_of([&, &entry = entry] { check(here, entry, kLayer); })});
    }
  }
}

// Numbers and words of their own are no such entry: a codec's "num_quantizers", a tokeniser's
// "quantizer_type".
bool is_about_quantisation(const std::string& key) {
  const std::string low = lower(key);
  for (const char* begin : {"quantiz", "quantis", "quant_", "compression"})
    if (low.starts_with(begin) && !low.starts_with("quantizer")) return true;
  return false;
}

void find_quantisation(const std::string& where, const json& value, Config& config) {
  for (const auto& [key, inner] : value.items()) {
    const std::string path = where.empty() ? key : where + "." + key;
    if (key == "transform_config" || key == "sparsity_config") {
      if (!is_nothing(inner)) refuse(where.empty() ? "it" : where, key, inner, "which is not done here");
    } else if (is_about_quantisation(key)) {
      check_quantisation(path, inner, config);
    } else if (inner.is_structured()) {
      find_quantisation(path, inner, config);
    }
  }
}

bool is_gpt_oss(const json& model) {
  if (model.contains("model_type") && model["model_type"] == "gpt_oss") return true;
  if (!model.contains("architectures") || !model["architectures"].is_array()) return false;
  return std::any_of(model["architectures"].begin(), model["architectures"].end(), [](const json& name) {
    return name.is_string() && name.get<std::string>().starts_with("GptOss");
  });
}

// The activation of the model, or of the one of its parts that is a language model.
void read_activation(const std::string& where, const json& model, Config& config) {
  config.gpt_oss |= is_gpt_oss(model);
  static const Values kSilu = {"silu", "swish", "swiglu"};
  for (const auto& [key, value] : model.items()) {
    const bool activation = key == "hidden_act" || key == "hidden_activation" || key == "activation_function";
    if (value.is_null()) continue;
    if (activation && std::find(kSilu.begin(), kSilu.end(), value) == kSilu.end())
      refuse(where, key, value, "and of activations silu alone is done here, and that of gpt-oss");
    if (key.starts_with("swiglu_")) {
      const bool limit = key == "swiglu_limit" && value.is_number() && value > 0;
      if (!config.gpt_oss || (!limit && !(key == "swiglu_alpha" && value == 1.702)))
        refuse(where, key, value, "an activation that is not known here");
      if (limit) config.swiglu_limit = value.get<float>();
    }
    if ((key == "text_config" || key == "llm_config" || key == "language_config" ||
         key == "thinker_config") &&
        value.is_object())
      read_activation(where + "." + key, value, config);
  }
}

// How closely a target fits: 2 by its name, 1 by its class, of which every layer may be.
int fit(const std::string& target, const std::string& stem) {
  if (target.starts_with("re:")) {
    constexpr size_t kLongest = 512;  // of either: matching takes time and stack
    if (target.size() > kLongest || stem.size() > kLongest) return 2;
    try {
      return std::regex_search(stem, std::regex(target.substr(3)), std::regex_constants::match_continuous)
                 ? 2
                 : 0;
    } catch (const std::regex_error&) {
      return 2;  // Python may understand it, and then it may fit
    }
  }
  const std::string name = target.substr(0, target.find('*'));
  if (name.size() != target.size() ? stem.starts_with(name) : stem == name || stem.starts_with(name + "."))
    return 2;
  if (stem.ends_with("." + name) || name.ends_with("." + stem)) return 2;
  return name.find('.') == std::string::npos ? 1 : 0;
}

}  // namespace

json parse_json(Bytes file) {
  constexpr int kDeepest = 32;
  try {
    return json::parse(file.begin(), file.end(), [](int depth, json::parse_event_t, json&) {
      if (depth > kDeepest) throw FormatError("is nested deeper than 32");
      return true;
    });
  } catch (const json::exception& e) {
    throw FormatError("is not JSON: " + printable(e.what()));
  }
}

void read_config(Bytes file, Config& config) {
  const json text = parse_json(file);
  if (!text.is_object()) throw FormatError("is not an object");
  find_quantisation("", text, config);
  read_activation("the model", text, config);
}

void read_quantisation(Bytes file, Config& config) { check_quantisation("it", parse_json(file), config); }

void check_layer(const Config& config, const std::string& stem) {
  for (const std::vector<Config::Layers>& file : config.layers) {
    if (std::all_of(file.begin(), file.end(), [](const auto& layers) { return layers.error.empty(); }))
      continue;
    std::vector<int> fits;
    for (const Config::Layers& layers : file) {
      fits.push_back(0);
      for (const std::string& target : layers.targets) fits.back() = std::max(fits.back(), fit(target, stem));
    }
    // Names go before classes. Where no entry is about the layer, each may be, under another name.
    const int best = *std::max_element(fits.begin(), fits.end());
    for (size_t i = 0; i < file.size(); ++i)
      if (fits[i] == best && !file[i].error.empty())
        throw FormatError(printable(stem) +
                          ": by the model's configuration it is not what is read here: " + file[i].error);
  }
}

}  // namespace checkpoint
