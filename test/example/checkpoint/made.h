// made.h -- the tensors of a checkpoint that exists in a test alone.
#pragma once

#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "example/checkpoint/checkpoint.h"

namespace checkpoint {

// Tensors without a file. Their bytes are zero where nothing else is said.
struct Made {
  std::deque<std::vector<uint8_t>> memory;
  std::vector<StoredTensor> tensors;
  Metadata metadata;

  Made() = default;
  Made(Made&&) = default;  // a copy's tensors would be in the memory of the first

  Made& add(const std::string& name, const std::string& dtype, std::vector<uint64_t> shape, size_t element) {
    size_t bytes = element;
    for (const uint64_t extent : shape) bytes *= extent;
    tensors.push_back({name, dtype, std::move(shape), memory.emplace_back(bytes)});
    return *this;
  }
  Made& scale(const std::string& name, std::vector<float> values, std::vector<uint64_t> shape) {
    add(name, "F32", std::move(shape), 4);
    std::memcpy(memory.back().data(), values.data(), values.size() * 4);
    return *this;
  }
  Made& modelopt(const std::string& stem, uint64_t n, uint64_t k, float scale_2, float input) {
    add(stem + ".weight", "U8", {n, k / 2}, 1).add(stem + ".weight_scale", "F8_E4M3", {n, k / 16}, 1);
    return scale(stem + ".weight_scale_2", {scale_2}, {}).scale(stem + ".input_scale", {input}, {});
  }
  Made& compressed(const std::string& stem, float global) {
    add(stem + ".weight_packed", "U8", {8, 16}, 1).add(stem + ".weight_scale", "F8_E4M3", {8, 2}, 1);
    return scale(stem + ".weight_global_scale", {global}, {1});
  }
  Made& gguf(const std::string& stem) {
    add(stem + ".weight", "NVFP4", {8, 128}, 0);
    tensors.back().ggml_type = 40;
    tensors.back().bytes = memory.back() = std::vector<uint8_t>(8 * 128 / 64 * 36);
    return *this;
  }
  // One expert's gate and up in [e, rows, k / 2].
  Made& stacked(std::vector<uint64_t> elements, std::vector<uint64_t> factors, std::vector<float> scale_2) {
    const std::string stem = "m.experts.gate_up_proj";
    add(stem, "U8", std::move(elements), 1).add(stem + "_weight_scale", "F8_E4M3", std::move(factors), 1);
    const uint64_t count = scale_2.size();
    return scale(stem + "_weight_scale_2", std::move(scale_2), {count});
  }
  Made& set(const std::string& name, const void* bytes, size_t count, size_t at = 0) {
    for (std::vector<uint8_t>& owner : memory)
      if (owner.data() == (*this)[name].bytes.data()) std::memcpy(&owner.at(at), bytes, count);
    return *this;
  }
  StoredTensor& operator[](const std::string& name) {
    for (StoredTensor& tensor : tensors)
      if (tensor.name == name) return tensor;
    throw std::out_of_range(name);
  }
  Tensors all() const {
    Tensors result;
    result.add({tensors, metadata});
    return result;
  }
  Mlp find(const Choice& choice = {}) const { return find_mlp(all(), choice); }
};

inline Made plain() {
  Made made;
  made.modelopt("l.0.mlp.gate_proj", 32, 64, 0.5f, 0.25f).modelopt("l.0.mlp.up_proj", 32, 64, 2, 0.25f);
  return made;
}

}  // namespace checkpoint
