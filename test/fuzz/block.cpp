// block.cpp -- see block.h.

#include "fuzz/block.h"

namespace dualgemm_fuzz {

// The first bytes come from the input, the others from a generator that the input seeds.
Buffer::Buffer(Bytes& bytes, size_t size, size_t shift) : shift_(shift), was_(size + shift) {
  uint32_t state = bytes.raw<uint16_t>();
  for (size_t i = 0; i < was_.size(); i += sizeof state) {
    state = (state ^ state >> 15) * 0x2C1B3C6D + 0x297A2D39;
    std::memcpy(was_.data() + i, &state, std::min(sizeof state, was_.size() - i));
  }
  bytes.copy(was_.data(), std::min<size_t>(was_.size(), bytes.raw<uint8_t>()));
  now_ = was_;
}

}  // namespace dualgemm_fuzz
