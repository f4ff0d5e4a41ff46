// block.cpp -- see block.h.

#include "fuzz/block.h"

namespace dualgemm_fuzz {

// The first bytes come from the input, the others from a generator that the input seeds.
Buffer::Buffer(Bytes& bytes, size_t size, size_t shift) : shift_(shift), was_(size + shift) {
  uint32_t state = bytes.raw<uint16_t>();
  for (uint8_t& byte : was_) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<uint8_t>(state >> 24);
  }
  const size_t own = std::min<size_t>(was_.size(), bytes.raw<uint8_t>());
  bytes.copy(was_.data(), own);
  now_ = was_;
}

}  // namespace dualgemm_fuzz
