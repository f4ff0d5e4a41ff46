#include "example/checkpoint/siblings.h"

#include <algorithm>

#include "example/checkpoint/names.h"

namespace checkpoint {
namespace {

constexpr char kLowRank[] =
    "is of a low-rank branch, whose product would have to be added to that of the weight";
constexpr char kRotation[] = "is of a rotation, which activations would have to go through";

// Parts of names, and what such a tensor is for. None of it is done here.
constexpr std::pair<const char*, const char*> kMeanings[] = {
    {"pre_quant_scale",
     "is AWQ's: activations would have to be multiplied by it, each k by its own, before they "
     "are quantised"},
    {"awq", "is AWQ's: activations would have to be multiplied by scales before they are quantised"},
    {"smooth", "is of a smoothing: activations would have to be multiplied or divided by it"},
    {"act_scale", "is of a smoothing: activations would have to be multiplied or divided by it"},
    {"ffn_act.", "is of a smoothing: activations would have to be multiplied or divided by it"},
    {"lora", kLowRank},
    {"svd", kLowRank},
    {"proj_down", kLowRank},
    {"proj_up", kLowRank},
    {"g_idx", "is an order of columns: groups of 16 would not be those of neighbours"},
    {"actorder", "is an order of columns: groups of 16 would not be those of neighbours"},
    {"perm", "is an order of columns: activations would have to be brought into it"},
    {"zero", "is of zero points, which NVFP4 and MXFP4 do not have"},
    {"rotat", kRotation},
    {"convrot", kRotation},
    {"hadamard", kRotation},
    {"quip", kRotation},
    {"transform", "is of a transform, which activations would have to go through"},
    {"codebook", "is of elements that are numbers of a codebook, not E2M1"},
    {"adapter", "is of an adapter, which would change the weight"}};

// Names that contain such a part, and mean something else: ranks of DeepSeek's attention, libraries,
// layers; who made a GGUF, with which version of its types and by which calibration.
constexpr const char* kHarmless[] = {"lora_rank", "transformer",          "quantize.imatrix.",
                                     "rotary",    "general.quantized_by", "general.quantization_version"};

std::string without_harmless(std::string text) {
  text = lower(std::move(text));
  for (const std::string part : kHarmless)
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part))
      text.replace(at, part.size(), "/");
  return text;
}

// "" where no part of the name is known.
std::string meaning(const std::string& name) {
  const std::string low = without_harmless(name);
  for (const auto& [part, what] : kMeanings)
    if (low.find(part) != std::string::npos) return std::string(what) + ", which is not done here";
  return "";
}

// Is the name the stem's own? GGUF joins by '.' alone: "ffn_gate_inp" is no part of "ffn_gate".
bool is_under(const std::string& stem, const std::string& name, bool gguf) {
  if (name.size() <= stem.size() || !name.starts_with(stem)) return false;
  const char next = name[stem.size()];
  return next == '.' || next == ':' || (next == '_' && !gguf);
}

// "model.layers.3.mlp." of "model.layers.3.mlp.experts."
std::string module_of(const std::string& before) {
  constexpr std::string_view kExperts = "experts.";
  return before.ends_with("." + std::string(kExperts)) ? before.substr(0, before.size() - kExperts.size())
                                                       : before;
}

// The layers that are read, by what their names have in common with those of others.
class Layers {
 public:
  explicit Layers(const std::vector<std::string>& stems) {
    for (const std::string& stem : stems) {
      for (size_t dot = stem.find('.'); dot != std::string::npos; dot = stem.find('.', dot + 1))
        modules_.insert(stem.substr(0, dot + 1));
      tails_.insert(tail(stem));
      if (stem == stems[0]) own_ = module_of(stem.substr(0, first_of_experts(stem)));
    }
  }
  // What another tensor does to them by its name, or "". A parameter of a module that they are in is about
  // them. So is one of a module beside them, if the word is in that module's own name: what down_proj has
  // is down_proj's.
  std::string done_by(const std::string& name) const {
    if (const std::string what = meaning(name); what.empty() || is_adapter(name)) return what;
    size_t at = 0;
    for (size_t dot = name.find('.'); dot != std::string::npos && modules_.contains(name.substr(0, dot + 1));
         dot = name.find('.', dot + 1))
      at = dot + 1;
    const size_t dot = name.find('.', at);
    if (dot == std::string::npos) return meaning(name.substr(at));
    if (!name.starts_with(own_)) return "";
    const std::string module = name.substr(at, dot - at);
    for (const char* leaf : {"gate_proj", "up_proj", "gate_up_proj", "w1", "w3", "w13"})
      if (module == leaf) return meaning(name.substr(dot));
    return meaning(module + ".");
  }

 private:
  static size_t first_of_experts(const std::string& stem) {
    const size_t experts = stem.find("experts.");
    return experts == std::string::npos ? stem.rfind('.') + 1 : experts + std::string("experts.").size();
  }
  // "layers_0_mlp_gate_proj" of "model.layers.0.mlp.gate_proj": adapters have other beginnings, and join by
  // '_', too.
  static std::string tail(std::string stem) {
    const size_t digit = stem.find_first_of("0123456789");
    const size_t before = digit == std::string::npos || digit < 2 ? 0 : stem.rfind('.', digit - 2) + 1;
    stem.erase(0, digit == std::string::npos ? 0 : before);
    std::replace(stem.begin(), stem.end(), '.', '_');
    return stem;
  }
  bool is_adapter(const std::string& name) const {
    const std::string low = without_harmless(name);
    if (low.find("lora") == std::string::npos && low.find("adapter") == std::string::npos) return false;
    std::string joined = name;
    std::replace(joined.begin(), joined.end(), '.', '_');
    return std::any_of(tails_.begin(), tails_.end(), [&joined](const std::string& tail) {
      const size_t at = joined.find(tail);
      return at != std::string::npos && (at == 0 || joined[at - 1] == '_') && joined[at + tail.size()] == '_';
    });
  }

  std::set<std::string> modules_, tails_;
  std::string own_;  // the module that has gate, up and what is beside them
};

void check_entry(const std::string& key, const std::string& value, const std::vector<std::string>& stems) {
  if (key == "_quantization_metadata") return;  // comfy.cpp reads it
  const std::string low = without_harmless(key);
  bool refused = !meaning(key).empty();
  for (const char* part : {"quant", "compression", "modelopt", "gptq"})
    refused |= low.find(part) != std::string::npos;
  for (const std::string& stem : stems) refused |= key == stem || is_under(stem, key, false);
  if (refused)
    throw FormatError("metadata: has \"" + printable(key) + "\": \"" + printable(value) +
                      "\", which is about quantisation and is not known here");
}

}  // namespace

void check_siblings(const Tensors& tensors, const std::vector<std::string>& stems,
                    const std::set<std::string>& used) {
  for (const std::string& stem : stems)
    for (auto at = tensors.all().lower_bound(stem); at != tensors.all().end(); ++at) {
      const auto& [name, tensor] = *at;
      if (!name.starts_with(stem)) break;
      if (!is_under(stem, name, tensor.ggml_type.has_value()) || used.contains(name)) continue;
      const std::string what = meaning(name.substr(stem.size()));
      refuse(tensor, what.empty()
                         ? "belongs to a weight, and is not known here: it may change what the weight means"
                         : what);
    }
  const Layers layers(stems);
  for (const auto& [name, tensor] : tensors.all())
    if (!used.contains(name))
      if (const std::string what = layers.done_by(name); !what.empty()) refuse(tensor, what);
  for (const auto& [key, value] : tensors.metadata()) check_entry(key, value, stems);
}

std::vector<std::string> others(const Tensors& tensors, const std::string& before,
                                const std::set<std::string>& used) {
  std::vector<std::string> names;
  const std::string module = module_of(before);
  for (auto at = tensors.all().lower_bound(module); at != tensors.all().end(); ++at) {
    if (!at->first.starts_with(module)) break;
    if (!used.contains(at->first)) names.push_back(printable(at->first));
  }
  for (const auto& [key, value] : tensors.metadata())
    if (key != "_quantization_metadata") names.push_back("metadata \"" + printable(key) + "\"");
  return names;
}

}  // namespace checkpoint
