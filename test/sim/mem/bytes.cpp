// bytes.cpp -- bounds and states of a flat memory. A run is tested as a whole: one comparison for its bounds
// and one for the states of its bytes, so that a 16-byte piece of a tile copy costs about as much as a single
// byte. The code knows nothing of who accesses the memory; the caller adds the instruction and the
// thread.
#include "sim/mem/bytes.h"

#include <cstring>

#include "sim/fault.h"

namespace sim {
namespace {

bool inside(size_t size, uint64_t offset, size_t n) { return offset <= size && n <= size - offset; }

std::string describe(const std::string& name, uint64_t offset, size_t n) {
  return std::to_string(n) + " bytes at offset " + std::to_string(offset) + " of " + name;
}

[[noreturn]] void outside(const std::string& name, size_t size, uint64_t offset, size_t n) {
  throw Fault(FaultKind::kBounds, describe(name, offset, n) + " (" + std::to_string(size) + " bytes)");
}

inline void require_inside(const std::string& name, size_t size, uint64_t offset, size_t n) {
  if (!inside(size, offset, n)) outside(name, size, offset, n);
}

std::string never_written(const std::string& memory, uint64_t byte) {
  return "byte " + std::to_string(byte) + " of " + memory + " was never written";
}
std::string in_flight(const std::string& memory, uint64_t byte) {
  return "byte " + std::to_string(byte) + " of " + memory +
         " has an asynchronous write that has not completed";
}

}  // namespace

void find_holes(const uint8_t* states, size_t n, uint64_t first, const std::string& memory,
                const std::string& read, Holes* holes) {
  const auto bad = [&](size_t i) {
    return holes == nullptr ? states[i] != kWritten : states[i] == kInFlight;
  };
  for (size_t i = 0; i < n; ++i)
    if (bad(i))
      throw Fault(FaultKind::kPoison, read + ": " +
                                          (states[i] == kInFlight ? in_flight(memory, first + i)
                                                                  : never_written(memory, first + i)));
  *holes = {0, first, &memory};
  for (size_t i = 0; i < n; ++i) holes->bytes |= uint64_t(states[i] != kWritten) << i;
  holes->all = size_t(__builtin_popcountll(holes->bytes)) == n;
}

std::string Holes::cause(size_t i) const { return never_written(*memory, first + i); }

void Bytes::read_in_doubt(uint64_t offset, void* out, size_t n, Holes* holes) const {
  require_inside(name_, size(), offset, n);
  const uint8_t* const states = states_.data() + offset;
  if (n == 0 || read_bytes(data_.data() + offset, states, out, n)) return;
  find_holes(states, n, offset, name_, "read of " + describe(name_, offset, n), holes);
}

bool Bytes::write(uint64_t offset, const void* in, size_t n) {
  require_inside(name_, size(), offset, n);
  return n != 0 && write_bytes(data_.data() + offset, states_.data() + offset, in, n);
}

void Bytes::poison(uint64_t offset, size_t n) {
  require_inside(name_, size(), offset, n);
  if (n != 0) std::memset(states_.data() + offset, kUnwritten, n);
}

void Bytes::expect(uint64_t offset, size_t n) {
  require_inside(name_, size(), offset, n);
  if (n != 0) std::memset(states_.data() + offset, kInFlight, n);
}

const uint8_t* Bytes::view(uint64_t offset, size_t n) const {
  require_inside(name_, size(), offset, n);
  const uint8_t* const states = states_.data() + offset;
  if (!all_written(states, n))
    find_holes(states, n, offset, name_, "read of " + describe(name_, offset, n), nullptr);
  return data_.data() + offset;
}

}  // namespace sim
