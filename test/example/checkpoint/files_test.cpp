// files_test.cpp -- a folder or an index is the whole checkpoint, or is refused with what it lacks.
#include "example/checkpoint/files.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/catch.hpp"

using namespace checkpoint;
using dualgemm_test::contains;
namespace fs = std::filesystem;

namespace {

Bytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// A folder that is gone afterwards.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("checkpoint_files_" + std::to_string(getpid()));

  Folder() { fs::remove_all(path), fs::create_directory(path); }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  void write(const std::string& name, const std::string& text) {
    std::ofstream(path / name, std::ios::binary) << text;
  }
  // A .safetensors file with one byte.
  void tensor(const std::string& file, const std::string& name) {
    const std::string header = "{\"" + name + "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}";
    std::string text;
    for (int i = 0; i < 8; ++i) text += static_cast<char>(header.size() >> (8 * i));
    write(file, text + header + "x");
  }
  std::string said() const {
    Files files;
    try {
      files.read(path);
    } catch (const FormatError& e) {
      return e.what();
    }
    std::string all;
    for (const auto& [name, _] : files.tensors.all()) all += name + " ";
    for (const std::string& name : files.unread) all += "not " + name + " ";
    return all;
  }
};

}  // namespace

TEST_CASE("files: all of a folder, but what its index does not name", "[checkpoint][files]") {
  Folder folder;
  folder.tensor("model-00001-of-00002.safetensors", "a");
  folder.tensor("model-00002-of-00002.safetensors", "b");
  folder.write("readme.txt", "no weights");
  SECTION("without an index") { CHECK(folder.said() == "a b "); }
  SECTION("and a GGUF of the same model") {
    folder.write("model.gguf", "not looked at");
    CHECK(folder.said() == "a b not model.gguf ");
  }
  SECTION("with an index") {
    folder.write("model.safetensors.index.json",
                 R"({"weight_map": {"a": "model-00001-of-00002.safetensors"}})");
    CHECK(folder.said() == "a not model-00002-of-00002.safetensors ");
  }
  SECTION("a shard is missing") {
    fs::remove(folder.path / "model-00001-of-00002.safetensors");
    CHECK(folder.said() ==
          folder.path.string() + ": has files model-*-of-00002.safetensors, but none of the number 1");
  }
  SECTION("one name in two files") {
    folder.tensor("other.safetensors", "a");
    CHECK(folder.said() == (folder.path / "other.safetensors").string() + ": a: two files have this name");
  }
}

TEST_CASE("files: an index that promises more than there is", "[checkpoint][files]") {
  Folder folder;
  folder.tensor("x.safetensors", "a");
  const std::string index = (folder.path / "model.safetensors.index.json").string();
  SECTION("a tensor") {
    folder.write("model.safetensors.index.json",
                 R"({"weight_map": {"a": "x.safetensors", "b": "x.safetensors"}})");
    CHECK(folder.said() == index + ": b is not in x.safetensors");
  }
  SECTION("a file") {
    folder.write("model.safetensors.index.json", R"({"weight_map": {"a": "y.safetensors"}})");
    CHECK_THAT(folder.said(), contains("y.safetensors: No such file"));
  }
  SECTION("two indices") {
    folder.write("model.safetensors.index.json", "{}");
    folder.write("other.safetensors.index.json", "{}");
    CHECK_THAT(folder.said(), contains("has the indices model.safetensors.index.json and other"));
  }
  SECTION("no file of weights") {
    fs::remove(folder.path / "x.safetensors");
    CHECK_THAT(folder.said(), contains("has neither .safetensors nor .gguf files"));
  }
}

TEST_CASE("files: an index is JSON with a map of names beside it", "[checkpoint][files]") {
  const auto [text, what] = GENERATE(table<std::string, std::string>(
      {{"", "is not JSON"},
       {"{\"weight_map\": {}", "is not JSON"},
       {"[]", "has no \"weight_map\""},
       {"{\"architectures\": []}", "has no \"weight_map\": of JSON the index of a checkpoint alone is read"},
       {"{\"weight_map\": []}", "has no \"weight_map\""},
       {"{\"weight_map\": {}}", "its \"weight_map\" names no tensor"},
       {"{\"weight_map\": {\"a\": 1}}", "a: has no name of a file"},
       {"{\"weight_map\": {\"a\": \"../b\"}}", "a: \"../b\" is no file beside the index"},
       {"{\"weight_map\": {\"a\": \"/etc/passwd\"}}", "a: \"/etc/passwd\" is no file beside the index"},
       {"{\"weight_map\": {\"a\": \"..\"}}", "a: \"..\" is no file beside the index"},
       {"{\"weight_map\": {\"a\": \"\"}}", "a: \"\" is no file beside the index"},
       {std::string(100, '['), "is nested deeper than 32"}}));
  CHECK_THROWS_AS(parse_index(bytes_of(text)), FormatError);
  CHECK_THROWS_WITH(parse_index(bytes_of(text)), contains(what));
  CHECK(parse_index(bytes_of("{\"metadata\": {}, \"weight_map\": {\"a\": \"b\"}}")).at("a") == "b");
}

TEST_CASE("files: shards are counted by their names", "[checkpoint][files]") {
  CHECK_NOTHROW(
      check_shards({"a.safetensors", "m-2-of-2.gguf", "m-1-of-2.gguf", "m-00001-of-00001.safetensors"}));
  CHECK_THROWS_WITH(check_shards({"m-00001-of-00003.safetensors", "m-00003-of-00003.safetensors"}),
                    contains("but none of the number 2"));
  CHECK_THROWS_WITH(check_shards({"m-1-of-2.gguf", "n-2-of-2.gguf"}), contains("m-*-of-2.gguf"));
  CHECK_THROWS_WITH(check_shards({"m-1-of-999999999.gguf"}), contains("none of the number 2"));
}

TEST_CASE("files: what lies beside the tensors says how they are quantised", "[checkpoint][files]") {
  Folder folder;
  folder.tensor("x.safetensors", "a");
  const std::string name =
      GENERATE("config.json", "hf_quant_config.json", "quantize_config.json", "quant_config.json");
  const bool whole = name.starts_with("quant");
  const std::string awq = R"({"quant_method": "awq"})", nvfp4 = R"({"quant_method": "modelopt"})";
  folder.write(name, whole ? awq : "{\"quantization_config\": " + awq + "}");
  CHECK_THAT(folder.said(), contains(name + ": ") && contains("has \"quant_method\": \"awq\""));
  folder.write(name, whole ? nvfp4 : "{\"quantization_config\": " + nvfp4 + "}");
  CHECK(folder.said() == "a ");
}
