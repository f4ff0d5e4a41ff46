// names.cpp -- which names a checkpoint gives to gate, up and down, and to their scales:
//
//     ModelOpt             STEM.weight         [n, k/2]            e.g. nvidia/Llama-3.3-70B-Instruct-FP4
//                          STEM.weight_scale   [n, k/16]
//                          STEM.weight_scale_2 F32 []              decode: largest |weight| / (6 * 448)
//                          STEM.input_scale    F32 []              decode, the same of the activations
//     ComfyUI              the same names with another layout (comfy.h)
//     compressed-tensors   STEM.weight_packed, weight_scale        e.g. RedHatAI/Qwen3-32B-NVFP4
//                          STEM.weight_global_scale F32 [1]        encode: its reciprocal is ModelOpt's
//                          STEM.input_global_scale  F32 [1]        encode
//     experts in one       STEM, STEM_weight_scale, STEM_weight_scale_2, STEM_input_scale, STEM_bias: a
//     (ModelOpt)           parameter of the module and not a Linear, hence "_"; [e, rows, k/2], or
//                          [e, k/2, rows] where the model multiplies from the other side, as Llama 4 does
//     the same, as vLLM    w13_weight or w13_weight_packed, w13_weight_scale, ...: w1 (gate), then w3 (up)
//     and SGLang hold it
//     gpt-oss as shipped   STEM_blocks [e, rows, k/32, 16], STEM_scales [e, rows, k/32], STEM_bias: MXFP4
//     GGUF                 STEM.weight NVFP4 [n, k] or [e, n, k]; STEM.scale, STEM.input_scale F32 [1] or
//                          [e], both decode; shared experts (_shexp) are one dense MLP; ffn_gate_up_exps
//                          has gate's rows, then up's
//
// Scales of a fused tensor may be two, gate's and up's: [e, 2], or [2]. layout.cpp has the types of elements
// and factors. The sources: the loaders of vLLM and SGLang (modelopt.py, modelopt_quant.py: alpha =
// input_scale * weight_scale_2; compressed_tensors_w4a4_nvfp4.py: the global scales are divisors), of
// TensorRT-LLM for Llama 4 (it transposes), of transformers for gpt-oss (mxfp4.py), and llama.cpp, which
// multiplies by `.scale` and views ffn_gate_up_exps in halves. Which rows of a fused tensor are gate's stands
// in no file: Llama 4 and Phi have gate's first, gpt-oss has them in turns.

#include "example/checkpoint/names.h"

#include <algorithm>
#include <map>
#include <optional>

namespace checkpoint {

constexpr Spelling kSpellings[] = {{"gate_proj", "up_proj", "down_proj"},
                                   {"w1", "w3", "w2"},
                                   {"gate_up_proj", nullptr, "down_proj"},
                                   {"w13", nullptr, "w2"},
                                   {"ffn_gate", "ffn_up", "ffn_down"},
                                   {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"},
                                   {"ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp"},
                                   {"ffn_gate_up_exps", nullptr, "ffn_down_exps"}};

constexpr Names kModelOpt = {Convention::kModelOpt, ".weight",      ".weight_scale",
                             ".weight_scale_2",     ".input_scale", ".bias"};
constexpr Names kCompressedTensors = {Convention::kCompressedTensors, ".weight_packed",      ".weight_scale",
                                      ".weight_global_scale",         ".input_global_scale", ".bias"};
// Parameters of a module that has all experts. The last has no word for its elements, so it comes last.
constexpr Names kParameters[] = {
    {Convention::kCompressedTensors, "_weight_packed", "_weight_scale", "_weight_global_scale",
     "_input_global_scale", "_bias"},
    {Convention::kModelOpt, "_weight", "_weight_scale", "_weight_scale_2", "_input_scale", "_bias"},
    {Convention::kGptOss, "_blocks", "_scales", nullptr, nullptr, "_bias"},
    {Convention::kModelOpt, "", "_weight_scale", "_weight_scale_2", "_input_scale", "_bias"}};
constexpr Names kGguf = {Convention::kGguf, ".weight", nullptr, ".scale", ".input_scale", ".bias"};

// Formats that a name gives away and that are not read.
constexpr std::pair<const char*, const char*> kOthers[] = {
    {".qweight", "has the name of GPTQ's and AWQ's integers of four bits, or of Nunchaku's"},
    {"mlp1_weight.blocks", "is gpt-oss's in its original names: take its files with gate_up_proj_blocks"},
    {".weight:_qdata", "has the name of torchao's tensors of several parts"},
    {".weight._data", "has the name of optimum-quanto's tensors of several parts"}};

// "m.experts.12." becomes "m.experts." with "." behind the number.
static void split_expert(Gate& gate) {
  const std::string& path = gate.before;
  const size_t digits = path.find_last_not_of("0123456789", path.size() - 2) + 1;
  constexpr std::string_view kExperts = "experts.";
  if (path.size() < 2 || digits + 1 >= path.size() || path.size() - digits > 5 || digits < kExperts.size() ||
      path.compare(digits - kExperts.size(), kExperts.size(), kExperts) != 0)
    return;
  gate.first_expert = std::stoul(path.substr(digits));
  gate.end_expert = gate.first_expert + 1;
  gate.after = ".";
  gate.before.resize(digits);
}

// The tensor as elements, by the end of its name: first what is likelier.
static std::vector<Weight> weights_of(const StoredTensor& tensor) {
  std::vector<const Names*> all = {&kCompressedTensors, tensor.ggml_type ? &kGguf : &kModelOpt};
  for (const Names& names : kParameters) all.push_back(&names);
  std::vector<Weight> weights;
  for (const Names* names : all)
    if (tensor.name.ends_with(names->elements))
      weights.push_back(
          {tensor.name.substr(0, tensor.name.size() - std::string(names->elements).size()), names});
  return weights;
}

// The tensor as a gate, or as the up of one: *is_up says which.
static std::optional<Gate> parse(const StoredTensor& tensor, bool* is_up) {
  for (const auto& [stem, names] : weights_of(tensor)) {
    const size_t leaf = stem.rfind('.') + 1;  // 0 where there is no '.'
    for (const Spelling& spelling : kSpellings) {
      *is_up = spelling.up && stem.substr(leaf) == spelling.up;
      if (stem.substr(leaf) != spelling.gate && !*is_up) continue;
      if (names >= std::begin(kParameters) && names < std::end(kParameters) && spelling.up) continue;
      Gate gate{stem.substr(0, leaf), "", &spelling, names, &tensor};
      split_expert(gate);
      return gate;
    }
  }
  return std::nullopt;
}

static std::vector<Gate> find_gates(const Tensors& tensors) {
  std::vector<Gate> gates, ups;
  std::map<std::string, size_t> known;
  for (const auto& [_, tensor] : tensors.all()) {
    bool is_up = false;
    const std::optional<Gate> gate = parse(tensor, &is_up);
    if (!gate) continue;
    if (is_up) ups.push_back(*gate);
    else if (known.emplace(gate->label(), gates.size()).second) gates.push_back(*gate);
    else ups.push_back(*gate);
  }
  // Experts of a gate or of an up belong to the gate of that label, whose reader misses what is not there.
  for (const Gate& other : ups)
    if (const auto at = known.find(other.label()); at != known.end()) {
      Gate& gate = gates[at->second];
      gate.first_expert = std::min(gate.first_expert, other.first_expert);
      gate.end_expert = std::max(gate.end_expert, other.end_expert);
    }
  return gates;
}

static bool has_four_bits(const StoredTensor& tensor) {
  for (const char* dtype : {"U8", "I8", "F4", "NVFP4"})
    if (tensor.dtype == dtype) return true;
  return false;
}

const char* name_of(Convention convention) {
  switch (convention) {
    case Convention::kModelOpt: return "ModelOpt";
    case Convention::kCompressedTensors: return "compressed-tensors";
    case Convention::kComfyUi: return "ComfyUI";
    case Convention::kGptOss: return "gpt-oss as shipped";
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

Weight choose_weight(const Tensors& tensors, const std::string& name) {
  return weights_of(tensors.need(name)).front();  // the last of all names ends in ""
}

Gate choose_gate(const Tensors& tensors, const std::string& wanted) {
  const std::vector<Gate> gates = find_gates(tensors);
  for (const Gate& gate : gates)
    if (wanted.empty() ? has_four_bits(*gate.first) : gate.label() == wanted) return gate;
  if (!wanted.empty()) throw FormatError(printable(wanted) + ": there is no such gate");
  if (!gates.empty()) return gates[0];  // what is wrong with it, its reader says
  for (const auto& [_, tensor] : tensors.all())
    for (const auto& [end, what] : kOthers)
      if (tensor.name.ends_with(end)) refuse(tensor, std::string(what) + ", which is not read here");
  for (const auto& [_, tensor] : tensors.all())
    if (tensor.name.find("gate") != std::string::npos)
      refuse(tensor, "belongs to no format that is known here");
  if (tensors.all().empty()) throw FormatError("there are no tensors");
  refuse(tensors.all().begin()->second,
         "is the first of " + std::to_string(tensors.all().size()) + " tensors, of which none is a gate");
}

}  // namespace checkpoint
