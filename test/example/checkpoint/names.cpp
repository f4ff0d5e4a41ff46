// names.cpp -- which names a checkpoint gives to gate and up, and to their scales:
//
//     ModelOpt             STEM.weight         U8      [n, k/2]    e.g. nvidia/Llama-3.3-70B-Instruct-FP4
//                          STEM.weight_scale   F8_E4M3 [n, k/16]
//                          STEM.weight_scale_2 F32     []          decode: largest |weight| / (6 * 448)
//                          STEM.input_scale    F32     []          decode, the same of the activations
//                          STEM.pre_quant_scale        [k]         AWQ: refused
//     compressed-tensors   STEM.weight_packed, weight_scale        e.g. RedHatAI/Qwen3-32B-NVFP4
//                          STEM.weight_global_scale F32 [1]        encode: its reciprocal is ModelOpt's
//                          STEM.input_global_scale  F32 [1]        encode
//     experts in one       STEM, STEM_weight_scale, STEM_weight_scale_2, STEM_input_scale, STEM_bias: a
//     (ModelOpt)           parameter of the module and not a Linear, hence "_"; [e, rows, k/2], or
//                          [e, k/2, rows] where the model multiplies from the other side, as Llama 4 does
//     GGUF                 STEM.weight NVFP4 [n, k] or [e, n, k]; STEM.scale, STEM.input_scale F32 [1] or
//                          [e], both decode; shared experts (_shexp) are one dense MLP
//
// The sources: the loaders of vLLM and SGLang (modelopt.py, modelopt_quant.py: alpha = input_scale *
// weight_scale_2; compressed_tensors_w4a4_nvfp4.py: the global scales are divisors), of TensorRT-LLM for
// Llama 4 (it transposes), and llama.cpp, which multiplies by `.scale`. Which rows of a fused tensor are
// gate's stands in no file: Llama 4 and Phi have gate's first, gpt-oss has them in turns.

#include "example/checkpoint/names.h"

#include <algorithm>
#include <map>
#include <optional>

namespace checkpoint {
namespace {

constexpr Spelling kSpellings[] = {{"gate_proj", "up_proj"},         {"w1", "w3"},
                                   {"gate_up_proj", nullptr},        {"ffn_gate", "ffn_up"},
                                   {"ffn_gate_exps", "ffn_up_exps"}, {"ffn_gate_shexp", "ffn_up_shexp"}};

constexpr Names kModelOpt = {Convention::kModelOpt, ".weight", ".weight_scale",   ".weight_scale_2",
                             ".input_scale",        ".bias",   ".pre_quant_scale"};
constexpr Names kModelOptParameter = {Convention::kModelOpt, "",      "_weight_scale",   "_weight_scale_2",
                                      "_input_scale",        "_bias", "_pre_quant_scale"};
constexpr Names kCompressedTensors = {
    Convention::kCompressedTensors, ".weight_packed", ".weight_scale",   ".weight_global_scale",
    ".input_global_scale",          ".bias",          ".pre_quant_scale"};
constexpr Names kGguf = {Convention::kGguf, ".weight", nullptr,           ".scale",
                         ".input_scale",    ".bias",   ".pre_quant_scale"};

// "m.experts.12." becomes "m.experts." with "." behind the number.
void split_expert(Gate& gate) {
  const std::string& path = gate.before;
  const size_t digits = path.find_last_not_of("0123456789", path.size() - 2) + 1;
  constexpr std::string_view kExperts = "experts.";
  if (path.size() < 2 || digits + 1 >= path.size() || path.size() - digits > 5 || digits < kExperts.size() ||
      path.compare(digits - kExperts.size(), kExperts.size(), kExperts) != 0)
    return;
  gate.experts = std::stoul(path.substr(digits)) + 1;
  gate.after = ".";
  gate.before.resize(digits);
}

std::optional<Gate> parse_gate(const StoredTensor& tensor) {
  for (const Names* names : {&kCompressedTensors, &kModelOpt, &kModelOptParameter}) {
    if (!tensor.name.ends_with(names->elements)) continue;
    const std::string stem = tensor.name.substr(0, tensor.name.size() - std::string(names->elements).size());
    const size_t leaf = stem.rfind('.') + 1;  // 0 where there is no '.'
    for (const Spelling& spelling : kSpellings) {
      if (stem.substr(leaf) != spelling.gate) continue;
      if (names == &kModelOptParameter && spelling.up) continue;
      Gate gate{stem.substr(0, leaf), "", &spelling, tensor.ggml_type ? &kGguf : names, &tensor};
      split_expert(gate);
      return gate;
    }
  }
  return std::nullopt;
}

std::vector<Gate> find_gates(const Tensors& tensors) {
  std::vector<Gate> gates;
  std::map<std::string, size_t> known;
  for (const auto& [_, tensor] : tensors.all())
    if (const std::optional<Gate> gate = parse_gate(tensor)) {
      const auto [at, is_new] = known.emplace(gate->label(), gates.size());
      if (is_new) gates.push_back(*gate);
      else gates[at->second].experts = std::max(gates[at->second].experts, gate->experts);
    }
  return gates;
}

}  // namespace

const char* name_of(Convention convention) {
  switch (convention) {
    case Convention::kModelOpt: return "ModelOpt";
    case Convention::kCompressedTensors: return "compressed-tensors";
    case Convention::kGguf: return "GGUF";
  }
  return "";
}

std::vector<std::string> list_gates(const Tensors& tensors) {
  std::vector<std::string> names;
  for (const Gate& gate : find_gates(tensors)) names.push_back(printable(gate.label()));
  return names;
}

void refuse(const StoredTensor& tensor, const std::string& why) {
  throw FormatError(printable(tensor.name) + ": " + describe(tensor) + " " + why);
}

Gate choose_gate(const Tensors& tensors, const std::string& wanted) {
  const std::vector<Gate> gates = find_gates(tensors);
  for (const Gate& gate : gates)
    if (wanted.empty() ? gate.first->dtype == "U8" || gate.first->dtype == "NVFP4" : gate.label() == wanted)
      return gate;
  if (!wanted.empty()) throw FormatError(printable(wanted) + ": there is no such gate");
  if (!gates.empty()) return gates[0];  // what is wrong with it, its reader says
  for (const auto& [_, tensor] : tensors.all())
    if (tensor.name.find("gate") != std::string::npos)
      refuse(tensor, "belongs to no format that is known here");
  if (tensors.all().empty()) throw FormatError("there are no tensors");
  refuse(tensors.all().begin()->second,
         "is the first of " + std::to_string(tensors.all().size()) + " tensors, of which none is a gate");
}

}  // namespace checkpoint
