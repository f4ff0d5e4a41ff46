// bytes.h -- an input of the fuzzer as a stream of choices. Behind its end all choices are 0, so that a short
// input is as complete as a long one; 0 chooses what is usual.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace dualgemm_fuzz {

class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : next_(data), left_(size) {}

  void copy(void* to, size_t size) {
    const size_t there = std::min(size, left_);
    if (there > 0) std::memcpy(to, next_, there);
    std::memset(static_cast<uint8_t*>(to) + there, 0, size - there);
    next_ += there;
    left_ -= there;
  }
  template <class Number>
  Number raw() {
    Number number;
    copy(&number, sizeof number);
    return number;
  }
  int32_t below(int32_t count) { return raw<uint16_t>() % count; }
  bool one_in(int32_t count) { return raw<uint8_t>() % count == count - 1; }
  template <class Value>
  Value one_of(std::initializer_list<Value> values) {
    return values.begin()[raw<uint8_t>() % values.size()];
  }

 private:
  const uint8_t* next_;
  size_t left_;
};

}  // namespace dualgemm_fuzz
