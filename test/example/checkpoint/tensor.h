// tensor.h -- a tensor as a file of weights holds it, whichever format the file has.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace checkpoint {

using Bytes = std::span<const uint8_t>;

// A file that cannot be used, in words that begin with the name of the tensor, where it is one tensor's
// fault.
struct FormatError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct StoredTensor {
  std::string name;
  std::string dtype;            // the spelling of safetensors: U8, F8_E4M3, F32; and NVFP4, which is GGUF's.
                                // It may be one that nobody here knows: who uses the bytes looks at it
  std::vector<uint64_t> shape;  // row-major: elements along the last dimension follow each other
  Bytes bytes;                  // inside the file
  std::optional<uint32_t> ggml_type = {};  // of a GGUF's tensor
};

// "U8 [352, 128]"
std::string describe(const StoredTensor& tensor);

// What a file says besides its tensors: keys and texts, of safetensors its
// `__metadata__`, of GGUF its pairs.
using Metadata = std::vector<std::pair<std::string, std::string>>;

struct Contents {
  std::vector<StoredTensor> tensors;
  Metadata metadata = {};
};

// The tensors of one checkpoint, which may be several files.
class Tensors {
 public:
  void add(const Contents& file);
  const StoredTensor* find(const std::string& name) const;
  const StoredTensor& need(const std::string& name) const;  // throws if there is none
  const std::map<std::string, StoredTensor>& all() const { return tensors_; }
  const Metadata& metadata() const { return metadata_; }  // of all files, without what several have alike

 private:
  std::map<std::string, StoredTensor> tensors_;
  Metadata metadata_;
};

// A name out of a file, fit for a terminal: at most 120 bytes, nothing but printable ASCII.
std::string printable(std::string_view name);

// The text with a to z for A to Z.
std::string lower(std::string text);

// The product of all dimensions. Throws, with the tensor's name, if it does not fit 64 bits.
uint64_t element_count(const std::string& name, const std::vector<uint64_t>& shape);

// A file in memory, read page by page as its bytes are touched.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  Bytes bytes() const { return {static_cast<const uint8_t*>(base_), size_}; }

 private:
  void* base_ = nullptr;
  size_t size_ = 0;
};

}  // namespace checkpoint
