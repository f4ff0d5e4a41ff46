#include "example/checkpoint/tensor.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

namespace checkpoint {

std::string printable(std::string_view name) {
  constexpr size_t kMost = 120;
  std::string text(name.substr(0, kMost));
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return name.size() > kMost ? text + "..." : text;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  return text;
}

std::string describe(const StoredTensor& tensor) {
  std::string text = printable(tensor.dtype) + " [";
  for (size_t i = 0; i < tensor.shape.size(); ++i) text += (i ? ", " : "") + std::to_string(tensor.shape[i]);
  return text + "]";
}

uint64_t element_count(const std::string& name, const std::vector<uint64_t>& shape) {
  uint64_t count = 1;
  for (const uint64_t extent : shape) {
    if (extent != 0 && count > std::numeric_limits<uint64_t>::max() / extent)
      throw FormatError(printable(name) + ": the product of its shape does not fit 64 bits");
    count *= extent;
  }
  return count;
}

void Tensors::add(const Contents& file) {
  for (const StoredTensor& tensor : file.tensors)
    if (!tensors_.emplace(tensor.name, tensor).second)
      throw FormatError(printable(tensor.name) + ": two files have this name");
  for (const auto& entry : file.metadata)
    if (std::find(metadata_.begin(), metadata_.end(), entry) == metadata_.end()) metadata_.push_back(entry);
}

const StoredTensor* Tensors::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

const StoredTensor& Tensors::need(const std::string& name) const {
  const StoredTensor* tensor = find(name);
  if (!tensor) throw FormatError(printable(name) + ": is missing");
  return *tensor;
}

MappedFile::MappedFile(const std::string& path) {
  const auto failed = [&](int file) {
    const std::string why = std::strerror(errno);
    if (file >= 0) close(file);
    return FormatError(path + ": " + why);
  };
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw failed(file);
  struct stat status;
  if (fstat(file, &status) != 0) throw failed(file);
  size_ = static_cast<size_t>(status.st_size);
  // A mapping of no bytes is an error to mmap; to the parsers it is a file that is too short.
  if (size_ > 0) {
    base_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
    if (base_ == MAP_FAILED) throw failed(file);
  }
  close(file);
}

MappedFile::~MappedFile() {
  if (base_) munmap(base_, size_);
}

}  // namespace checkpoint
