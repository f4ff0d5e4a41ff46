// bytes.cpp -- bounds and validity of a flat memory. A run is tested as a whole: one comparison for its
// bounds and one search for a poison byte, so that a 16-byte piece of a tile copy costs about as much as a
// single byte. The code knows nothing of who accesses the memory; the caller adds the instruction and the
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

void require_inside(const std::string& name, size_t size, uint64_t offset, size_t n) {
  if (!inside(size, offset, n))
    throw Fault(FaultKind::kBounds, describe(name, offset, n) + " (" + std::to_string(size) + " bytes)");
}

void require_written(const std::string& name, const uint8_t* valid, uint64_t offset, size_t n) {
  const void* poison = n == 0 ? nullptr : std::memchr(valid + offset, 0, n);
  if (poison == nullptr) return;
  const size_t first = static_cast<size_t>(static_cast<const uint8_t*>(poison) - valid);
  throw Fault(FaultKind::kPoison, "read of " + describe(name, offset, n) + ": byte " + std::to_string(first) +
                                      " was never written, or its asynchronous write has not completed");
}

}  // namespace

void Bytes::read(uint64_t offset, void* out, size_t n) const {
  require_inside(name_, size(), offset, n);
  require_written(name_, valid_.data(), offset, n);
  if (n != 0) std::memcpy(out, data_.data() + offset, n);
}

void Bytes::write(uint64_t offset, const void* in, size_t n) {
  require_inside(name_, size(), offset, n);
  if (n == 0) return;
  std::memcpy(data_.data() + offset, in, n);
  std::memset(valid_.data() + offset, 0xFF, n);
}

void Bytes::poison(uint64_t offset, size_t n) {
  require_inside(name_, size(), offset, n);
  if (n != 0) std::memset(valid_.data() + offset, 0, n);
}

bool Bytes::valid(uint64_t offset, size_t n) const {
  return inside(size(), offset, n) && (n == 0 || std::memchr(valid_.data() + offset, 0, n) == nullptr);
}

const uint8_t* Bytes::view(uint64_t offset, size_t n) const {
  require_inside(name_, size(), offset, n);
  require_written(name_, valid_.data(), offset, n);
  return data_.data() + offset;
}

}  // namespace sim
