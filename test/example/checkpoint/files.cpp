// files.cpp -- the index is that of transformers: {"metadata": {...}, "weight_map": {TENSOR: FILE, ...}}, and
// shards are named as it names them, of GGUF as llama.cpp's gguf-split does.

#include "example/checkpoint/files.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "example/checkpoint/gguf.h"
#include "example/checkpoint/safetensors.h"

namespace checkpoint {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// What the function says of a file, with its path in front.
template <typename Function>
void about(const std::string& path, Function function) {
  try {
    function();
  } catch (const FormatError& e) {
    const std::string what = e.what();
    throw what.starts_with(path) ? e : FormatError(path + ": " + what);
  }
}

std::vector<std::string> files_in(const std::string& folder, const std::string& end) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (const std::string name = entry.path().filename(); entry.is_regular_file() && name.ends_with(end))
      names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

// BEGIN-NUMBER-of-ALL.END, each number of up to nine digits.
struct Shard {
  std::string begin, end;  // with the dashes around the number
  unsigned long number, all;
};

// A text of 1 to 9 digits as a number.
std::optional<unsigned long> number_of(const std::string& text) {
  constexpr size_t kMostDigits = 9;
  if (text.empty() || text.size() > kMostDigits || text.find_first_not_of("0123456789") != text.npos)
    return {};
  return std::stoul(text);
}

// By the last place in the name that fits.
std::optional<Shard> shard_of(const std::string& name) {
  static const std::string kOf = "-of-";
  for (size_t of = name.rfind(kOf); of != name.npos && of > 0; of = name.rfind(kOf, of - 1)) {
    const size_t dash = name.rfind('-', of - 1), second = of + kOf.size(), dot = name.find('.', second);
    if (dash == name.npos || dot == name.npos) continue;
    const auto number = number_of(name.substr(dash + 1, of - dash - 1));
    const auto all = number_of(name.substr(second, dot - second));
    if (number && all) return Shard{name.substr(0, dash + 1), name.substr(of), *number, *all};
  }
  return {};
}

}  // namespace

std::map<std::string, std::string> parse_index(Bytes file) {
  const json index = parse_json(file);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    throw FormatError("has no \"weight_map\": of JSON the index of a checkpoint alone is read");
  if (index["weight_map"].empty()) throw FormatError("its \"weight_map\" names no tensor");
  std::map<std::string, std::string> files;
  for (const auto& [tensor, name] : index["weight_map"].items()) {
    if (!name.is_string()) throw FormatError(printable(tensor) + ": has no name of a file");
    const std::string text = name.get<std::string>();
    if (text.empty() || text == "." || text == ".." || text.find('/') != std::string::npos)
      throw FormatError(printable(tensor) + ": \"" + printable(text) + "\" is no file beside the index");
    files[tensor] = text;
  }
  return files;
}

void check_shards(const std::vector<std::string>& names) {
  std::map<std::pair<std::string, std::string>, std::set<unsigned long>> sets;  // what a set's names share
  std::map<std::string, unsigned long> sizes;                                   // by the end of a set's names
  for (const std::string& name : names)
    if (const auto shard = shard_of(name)) {
      sets[{shard->begin, shard->end}].insert(shard->number);
      sizes[shard->end] = shard->all;
    }
  for (const auto& [set, numbers] : sets) {
    for (unsigned long number = 1; number <= sizes[set.second]; ++number)
      if (!numbers.contains(number))
        throw FormatError("has files " + printable(set.first) + "*" + printable(set.second) +
                          ", but none of the number " + std::to_string(number));
  }
}

std::vector<StoredTensor> Files::read_file(const std::string& path) {
  Contents contents;
  about(path, [&] {
    mapped.push_back(std::make_unique<MappedFile>(path));
    const Bytes bytes = mapped.back()->bytes();
    contents = is_gguf(bytes) ? read_gguf(bytes) : read_safetensors(bytes);
    tensors.add(contents);
  });
  return contents.tensors;
}

std::set<std::string> Files::read_index(const std::string& path) {
  std::map<std::string, std::string> files;
  about(path, [&] { files = parse_index(MappedFile(path).bytes()); });
  std::map<std::string, std::set<std::string>> found;
  const fs::path folder = fs::path(path).parent_path();
  for (const auto& [tensor, name] : files) {
    if (!found.contains(name))
      for (const StoredTensor& stored : read_file(folder / name)) found[name].insert(stored.name);
    if (!found[name].contains(tensor))
      throw FormatError(path + ": " + printable(tensor) + " is not in " + printable(name));
  }
  std::set<std::string> names;
  for (const auto& [name, _] : found) names.insert(name);
  return names;
}

void Files::read_folder(const std::string& path) {
  const std::vector<std::string> indices = files_in(path, ".safetensors.index.json");
  std::vector<std::string> names = files_in(path, ".safetensors");
  const std::vector<std::string> ggufs = files_in(path, ".gguf");
  if (indices.size() > 1)
    throw FormatError(path + ": has the indices " + printable(indices[0]) + " and " + printable(indices[1]) +
                      ": name one of them");
  if (names.empty()) names = ggufs;
  else unread.insert(unread.end(), ggufs.begin(), ggufs.end());
  if (names.empty()) throw FormatError(path + ": has neither .safetensors nor .gguf files");
  if (indices.empty()) {
    about(path, [&] { check_shards(names); });
    for (const std::string& name : names) read_file(fs::path(path) / name);
  } else {
    const std::set<std::string> read = read_index(fs::path(path) / indices[0]);
    std::copy_if(names.begin(), names.end(), std::back_inserter(unread),
                 [&](const std::string& name) { return !read.contains(name); });
  }
}

void Files::read(const std::string& path) {
  const bool is_folder = fs::is_directory(path), is_index = !is_folder && path.ends_with(".json");
  if (is_folder) read_folder(path);
  else if (is_index) read_index(path);
  else read_file(path);
  if (!is_folder && !is_index) return;
  const fs::path folder = is_folder ? fs::path(path) : fs::path(path).parent_path();
  for (const char* name :
       {"config.json", "hf_quant_config.json", "quantize_config.json", "quant_config.json"})
    if (const std::string file = folder / name; fs::is_regular_file(file))
      about(file, [&] {
        const bool whole = std::string(name).starts_with("quant");
        (whole ? read_quantisation : read_config)(MappedFile(file).bytes(), config);
      });
}

}  // namespace checkpoint
