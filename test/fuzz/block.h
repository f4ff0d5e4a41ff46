// block.h -- memory that the library is handed: blocks of exactly the size that the documentation asks for,
// so that AddressSanitizer sees whoever goes beyond, and of which is known what stood there before.
#pragma once

#include <vector>

#include "fuzz/answer.h"

namespace dualgemm_fuzz {

// A structure in as many bytes as its struct_size claims; of a larger one than any release knows the bytes
// behind are zero, but one of them sometimes.
template <class Structure>
class Claimed {
 public:
  Claimed(Bytes& bytes, Structure structure) : there_(!bytes.one_in(128)) {
    constexpr uint32_t kSmallest = sizeof structure.struct_size;
    was_.resize(std::clamp<size_t>(structure.struct_size, kSmallest, 4096));
    std::memcpy(was_.data(), &structure, std::min(was_.size(), sizeof structure));
    const size_t behind = was_.size() - std::min(was_.size(), sizeof structure);
    if (behind > 0 && bytes.one_in(4))
      was_[sizeof structure + bytes.raw<uint16_t>() % behind] = bytes.raw<uint8_t>();
    now_ = was_;
  }
  ~Claimed() { require(now_ == was_, "the caller's structure was written"); }
  Claimed(const Claimed&) = delete;
  Claimed& operator=(const Claimed&) = delete;

  // Null in a while.
  const Structure* get() const { return there_ ? reinterpret_cast<const Structure*>(now_.data()) : nullptr; }

 private:
  bool there_;
  std::vector<uint8_t> was_, now_;
};

// Returns the structure as the library reads it: that of an older program is shorter, and what it lacks has
// these defaults.
template <class Structure>
Structure whole(const Structure* claimed, Structure defaults) {
  std::memcpy(&defaults, claimed,
              std::clamp<size_t>(claimed->struct_size, sizeof claimed->struct_size, sizeof defaults));
  return defaults;
}

// Bytes for a tensor. An address that is aligned to 16 bytes is moved by `shift`.
class Buffer {
 public:
  Buffer(Bytes& bytes, size_t size, size_t shift = 0);

  uint8_t* get() { return now_.data() + shift_; }
  template <class Number>
  void set(size_t i, Number number) {
    for (auto* all : {&was_, &now_})
      std::memcpy(all->data() + shift_ + i * sizeof number, &number, sizeof number);
  }
  // Clears bits in every n-th byte from this address on, if it lies in here.
  void mask(const void* first, size_t n, uint8_t kept) {
    const auto at = reinterpret_cast<uintptr_t>(first) - reinterpret_cast<uintptr_t>(now_.data());
    for (size_t i = at; i < was_.size(); i += n) was_[i] &= kept;
    restore();
  }
  bool unchanged() const { return now_ == was_; }
  const std::vector<uint8_t>& content() const { return now_; }
  // What stood there at first. The address stays.
  void restore() { std::copy(was_.begin(), was_.end(), now_.begin()); }

 private:
  size_t shift_;
  std::vector<uint8_t> was_, now_;
};

}  // namespace dualgemm_fuzz
