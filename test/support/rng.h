// rng.h -- random bits that are the same on every machine: xorshift64* seeded through splitmix64. The
// standard distributions are not reproducible between libraries, so tests draw from this alone.
#pragma once

#include <cstdint>

namespace dualgemm_test {

class Xorshift {
 public:
  explicit Xorshift(uint64_t state) : state_(state) {}  // not zero

  uint64_t bits() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1Du;
  }

 private:
  uint64_t state_;
};

class Rng : public Xorshift {
 public:
  explicit Rng(uint64_t seed) : Xorshift(mixed(seed) | 1) {}

  uint32_t below(uint32_t limit) { return static_cast<uint32_t>((bits() >> 32) * limit >> 32); }  // limit > 0
  uint32_t word() { return static_cast<uint32_t>(bits() >> 32); }
  int32_t between(int32_t low, int32_t high) {
    return low + static_cast<int32_t>(below(static_cast<uint32_t>(high - low + 1)));
  }
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }  // [0, 1)

 private:
  static uint64_t mixed(uint64_t seed) {
    uint64_t z = seed + 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
};

}  // namespace dualgemm_test
