// memory.cpp -- see memory.h.

#include "fuzz/memory.h"

namespace dualgemm_fuzz {

uint8_t* Memory::block(size_t size) {
  fits_ = fits_ && size <= kMostBytes;
  const size_t shift = bytes_.one_in(64) ? bytes_.raw<uint8_t>() % 17 : 0;
  // A vector without bytes has no address.
  return buffers_.emplace_back(bytes_, size <= kMostBytes ? std::max<size_t>(size, 1) : 16, shift).get();
}

void Memory::give_rows(const int32_t** group_rows, int32_t mode, int32_t groups, int32_t rows) {
  if (mode == DUALGEMM_GROUP_NONE) return;
  const bool offsets = mode == DUALGEMM_GROUP_OFFSETS;
  const size_t size = bytes_of(Wide{int64_t{groups} + (offsets ? 1 : 0)} * sizeof(int32_t));
  give(group_rows, size);
  if (!fits_) return;
  int32_t last = 0;
  for (size_t i = 0; i < size / sizeof last; ++i) {
    const int32_t some = bytes_.below(1 + std::clamp(rows, 0, 999));
    last = offsets ? std::min(last, 1 << 20) + some / 2 : some;
    if (bytes_.one_in(32)) last = static_cast<int32_t>(notable_integer(bytes_, last));
    buffers_.back().set(i, last);
  }
}

bool Memory::unchanged() const {
  return std::all_of(buffers_.begin(), buffers_.end(), [](const Buffer& b) { return b.unchanged(); });
}

void Memory::restore() {
  for (Buffer& buffer : buffers_) buffer.restore();
}

std::vector<std::vector<uint8_t>> Memory::contents() const {
  std::vector<std::vector<uint8_t>> all;
  for (const Buffer& buffer : buffers_) all.push_back(buffer.content());
  return all;
}

}  // namespace dualgemm_fuzz
