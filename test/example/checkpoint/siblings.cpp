#include "example/checkpoint/siblings.h"

#include <algorithm>

#include "example/checkpoint/names.h"

namespace checkpoint {
namespace {

// Parts of names, and what such a tensor is for. None of it is done here.
constexpr std::pair<const char*, const char*> kMeanings[] = {
    {"pre_quant_scale",
     "is AWQ's: activations would have to be multiplied by it, each k by its own, before they "
     "are quantised"},
    {"smooth", "is of a smoothing: activations would have to be multiplied or divided by it"},
    {"lora", "is of a low-rank branch, whose product would have to be added to that of the weight"},
    {"proj_down", "is of a low-rank branch, whose product would have to be added to that of the weight"},
    {"proj_up", "is of a low-rank branch, whose product would have to be added to that of the weight"},
    {"g_idx", "is an order of columns: groups of 16 would not be those of neighbours"},
    {"perm", "is an order of columns: activations would have to be brought into it"},
    {"zero", "is of zero points, which NVFP4 and MXFP4 do not have"},
    {"rot", "is of a rotation, which activations would have to go through"},
    {"hadamard", "is of a rotation, which activations would have to go through"},
    {"transform", "is of a transform, which activations would have to go through"},
    {"quip", "is of a rotation, which activations would have to go through"},
    {"codebook", "is of elements that are numbers of a codebook, not E2M1"}};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  return text;
}

std::string meaning(const std::string& rest) {
  const std::string low = lower(rest);
  for (const auto& [part, what] : kMeanings)
    if (low.find(part) != std::string::npos) return std::string(what) + ", which is not done here";
  return "belongs to a weight, and is not known here: it may change what the weight means";
}

// Is the name the stem's own? GGUF joins by '.' alone: "ffn_gate_inp" is no part of "ffn_gate".
bool is_under(const std::string& stem, const std::string& name, bool gguf) {
  if (name.size() <= stem.size() || !name.starts_with(stem)) return false;
  const char next = name[stem.size()];
  return next == '.' || next == ':' || (next == '_' && !gguf);
}

}  // namespace

void check_siblings(const Tensors& tensors, const std::vector<std::string>& stems,
                    const std::set<std::string>& used) {
  for (const std::string& stem : stems)
    for (auto at = tensors.all().lower_bound(stem); at != tensors.all().end(); ++at) {
      const auto& [name, tensor] = *at;
      if (!name.starts_with(stem)) break;
      if (is_under(stem, name, tensor.ggml_type.has_value()) && !used.contains(name))
        refuse(tensor, meaning(name.substr(stem.size())));
    }
  for (const auto& [key, value] : tensors.metadata()) {
    const auto about = [&key = key](const std::string& stem) {
      return key == stem || is_under(stem, key, false);
    };
    if (key == "_quantization_metadata") continue;  // comfy.cpp reads it
    if (lower(key).find("quant") != std::string::npos || std::any_of(stems.begin(), stems.end(), about))
      throw FormatError("__metadata__: has \"" + printable(key) + "\": \"" + printable(value) +
                        "\", which is about quantisation and is not known here");
  }
}

std::vector<std::string> others(const Tensors& tensors, const std::string& before,
                                const std::set<std::string>& used) {
  std::vector<std::string> names;
  for (auto at = tensors.all().lower_bound(before); at != tensors.all().end(); ++at) {
    if (!at->first.starts_with(before)) break;
    if (!used.contains(at->first)) names.push_back(printable(at->first));
  }
  for (const auto& [key, value] : tensors.metadata())
    if (key != "_quantization_metadata") names.push_back("__metadata__ \"" + printable(key) + "\"");
  return names;
}

}  // namespace checkpoint
