// comfy.cpp -- by the page QUANTIZATION.md of ComfyUI, and by its package comfy-kitchen 0.2.40, which writes
// and reads the layout (quantize_nvfp4: pack_uint4 with the high nibble first; to_blocked: the atoms).

#include "example/checkpoint/comfy.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace checkpoint {
namespace {

using nlohmann::json;

constexpr char kMetadata[] = "_quantization_metadata";

json parse(const std::string& where, Bytes text) {
  constexpr int kDeepest = 8;
  try {
    return json::parse(text.begin(), text.end(), [&](int depth, json::parse_event_t, json&) {
      if (depth > kDeepest) throw FormatError(where + ": is nested deeper than 8");
      return true;
    });
  } catch (const json::exception& e) {
    throw FormatError(where + ": is not JSON: " + printable(e.what()));
  }
}

[[noreturn]] void refuse_entry(const std::string& where, const std::string& key, const json& value,
                               const char* why) {
  throw FormatError(where + ": has \"" + printable(key) + "\": " + printable(value.dump()) + ", " + why);
}

// What is said of one layer. `full_precision_matrix_mult` is about A, which a launch takes as it is given.
void check_layer(const std::string& where, const json& layer) {
  if (!layer.is_object()) throw FormatError(where + ": is not an object");
  if (!layer.contains("format")) throw FormatError(where + ": has no \"format\"");
  for (const auto& [key, value] : layer.items()) {
    if (key == "format") {
      if (value != "nvfp4") refuse_entry(where, key, value, "of ComfyUI's formats nvfp4 alone is read");
    } else if (key == "group_size") {
      if (value != 16) refuse_entry(where, key, value, "where NVFP4 has 16");
    } else if (key == "convrot") {
      if (value != false) refuse_entry(where, key, value, "a rotation of the activations: not done here");
    } else if (key != "full_precision_matrix_mult") {
      refuse_entry(where, key, value, "which is not known here and may change what the layer means");
    }
  }
}

// The layer's entry: by its whole name, or else by the end of it, since files are read under a model's
// prefix. An end has to be that of one entry and of one tensor.
const json* entry_of(const Tensors& tensors, const json& layers, const std::string& stem) {
  if (const auto exact = layers.find(stem); exact != layers.end()) return &*exact;
  std::vector<std::string> ends;
  for (const auto& [key, _] : layers.items())
    if (stem.ends_with("." + key)) ends.push_back(key);
  if (ends.empty()) return nullptr;
  if (ends.size() > 1)
    throw FormatError(printable(stem) + ": may be either of " + kMetadata + "'s layers \"" +
                      printable(ends[0]) + "\" and \"" + printable(ends[1]) + "\"");
  for (const auto& [name, _] : tensors.all())
    if (name.ends_with("." + ends[0] + ".weight") && name != stem + ".weight")
      throw FormatError(printable(stem) + ": " + kMetadata + "'s layer \"" + printable(ends[0]) +
                        "\" may be this one, or " + printable(name));
  return &layers[ends[0]];
}

// The texts of `_quantization_metadata` in all files.
std::vector<json> read_metadata(const Tensors& tensors) {
  std::vector<json> all;
  for (const auto& [key, text] : tensors.metadata()) {
    if (key != kMetadata) continue;
    const json& one =
        all.emplace_back(parse(kMetadata, {reinterpret_cast<const uint8_t*>(text.data()), text.size()}));
    if (!one.is_object() || !one.contains("layers") || !one["layers"].is_object())
      throw FormatError(std::string(kMetadata) + ": has no \"layers\"");
    for (const auto& [name, value] : one.items())
      if (name != "layers" && name != "format_version")
        refuse_entry(kMetadata, name, value, "which is not known here");
  }
  return all;
}

}  // namespace

bool is_comfy(const Tensors& tensors, const std::string& stem) {
  const StoredTensor* const mark = tensors.find(stem + ".comfy_quant");
  bool marked = mark != nullptr;
  if (mark) {
    const std::string where = printable(mark->name);
    if (mark->dtype != "U8") throw FormatError(where + ": " + describe(*mark) + " is not bytes of JSON");
    check_layer(where, parse(where, mark->bytes));
  }
  const std::vector<json> metadata = read_metadata(tensors);
  for (const json& one : metadata)
    if (const json* layer = entry_of(tensors, one["layers"], stem)) {
      check_layer(std::string(kMetadata) + ", " + printable(stem), *layer);
      marked = true;
    }
  if (!metadata.empty() && !marked)
    throw FormatError(printable(stem) + ": is not among the layers of " + kMetadata +
                      ", so its elements have not four bits");
  return marked;
}

std::vector<uint8_t> swap_nibbles(Bytes elements) {
  std::vector<uint8_t> swapped(elements.size());
  std::transform(elements.begin(), elements.end(), swapped.begin(),
                 [](uint8_t two) { return static_cast<uint8_t>(two << 4 | two >> 4); });
  return swapped;
}

// An atom has 128 rows of 4 factors in 512 bytes: line i has the rows i, i + 32, i + 64, i + 96.
std::vector<uint8_t> rows_of_atoms(Bytes atoms, uint64_t n, uint64_t k) {
  const uint64_t blocks = k / 16, atoms_of_row = (blocks + 3) / 4;
  std::vector<uint8_t> rows(n * blocks);
  for (uint64_t row = 0; row < n; ++row)
    for (uint64_t block = 0; block < blocks; ++block)
      rows[row * blocks + block] = atoms[(row / 128 * atoms_of_row + block / 4) * 512 + row % 32 * 16 +
                                         row % 128 / 32 * 4 + block % 4];
  return rows;
}

}  // namespace checkpoint
