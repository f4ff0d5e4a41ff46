// bytes.h -- a flat run of memory with the state of every byte. All memory starts as poison, bytes that
// nobody wrote; the destination of an asynchronous copy is in flight until the copy is complete. To read a
// byte in either state is a fault, with one exception. A load may ask which of its bytes are poison: these
// may go to a register, and only their use is an error. The shared memory of a CTA is one such run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace sim {

// The states of a byte. Only in the state kWritten it has a value.
constexpr uint8_t kUnwritten = 0, kInFlight = 1, kWritten = 0xFF;

// Most runs are as long as an access of one thread. Calls `use` with the length, then known to the compiler.
template <class Use>
auto with_length(size_t n, Use&& use) {
  switch (n) {
    case 1: return use(std::integral_constant<size_t, 1>());
    case 2: return use(std::integral_constant<size_t, 2>());
    case 4: return use(std::integral_constant<size_t, 4>());
    case 8: return use(std::integral_constant<size_t, 8>());
    case 16: return use(std::integral_constant<size_t, 16>());
    default: return use(n);
  }
}
inline bool all_written(const uint8_t* states, size_t n) {
  return n == 0 || (*states == kWritten && std::memcmp(states, states + 1, n - 1) == 0);
}
template <size_t n>
bool all_written(const uint8_t* states, std::integral_constant<size_t, n>) {
  static_assert(kWritten == 0xFF);
  std::array<uint64_t, (n + 7) / 8> words;
  words.fill(~uint64_t{0});
  std::memcpy(words.data(), states, n);
  uint64_t all = ~uint64_t{0};
  for (const uint64_t word : words) all &= word;
  return all == ~uint64_t{0};
}
// Returns false when one of the bytes has no value.
inline bool read_bytes(const uint8_t* data, const uint8_t* states, void* out, size_t length) {
  return with_length(length, [&](auto n) {
    std::memcpy(out, data, n);
    return all_written(states, n);
  });
}
// Returns false when the bytes had these values before.
inline bool write_bytes(uint8_t* data, uint8_t* states, const void* in, size_t length) {
  return with_length(length, [&](auto n) {
    if (all_written(states, n) && std::memcmp(data, in, n) == 0) return false;
    std::memcpy(data, in, n);
    std::memset(states, kWritten, n);
    return true;
  });
}

// Holes are the bytes of a load that nobody wrote.
struct Holes {
  uint64_t bytes = 0;  // bit i stands for byte i of the load, which has 64 at most
  uint64_t first = 0;  // which byte of the memory the load begins with
  const std::string* memory = nullptr;
  bool all = false;                   // nobody wrote any byte of the load
  std::string cause(size_t i) const;  // "byte 12 of cudaMalloc 2 was never written"
};

// Looks for the bytes without a value among `n`, of which one at least is not written. Fault kPoison unless
// the caller asks for holes and nothing is in flight. `first` is the number of the first byte in `memory`;
// `read` says what reads them.
void find_holes(const uint8_t* states, size_t n, uint64_t first, const std::string& memory,
                const std::string& read, Holes* holes);

class Bytes {
 public:
  Bytes(size_t size, std::string name) : data_(size), states_(size, kUnwritten), name_(std::move(name)) {}
  size_t size() const { return data_.size(); }

  // Fault kBounds, kPoison. With `holes`, poison is no fault but named there.
  void read(uint64_t offset, void* out, size_t n, Holes* holes = nullptr) const {
    const bool some_inside = n != 0 && offset <= size() && n <= size() - offset;
    if (!some_inside || !read_bytes(data_.data() + offset, states_.data() + offset, out, n))
      read_in_doubt(offset, out, n, holes);
  }
  bool write(uint64_t offset, const void* in,
             size_t n);                    // returns whether that changed a byte; Fault kBounds
  void poison(uint64_t offset, size_t n);  // Fault kBounds
  void expect(uint64_t offset, size_t n);  // the bytes are in flight from now on; Fault kBounds
  // A checked direct view for the tensor core: bounds and validity are tested once for the whole run.
  const uint8_t* view(uint64_t offset, size_t n) const;  // Fault kBounds, kPoison

 private:
  void read_in_doubt(uint64_t offset, void* out, size_t n, Holes* holes) const;
  std::vector<uint8_t> data_;
  std::vector<uint8_t> states_;  // one byte each, so that runs are memset and memcmp
  std::string name_;
};

}  // namespace sim
