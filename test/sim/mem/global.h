// global.h -- device memory. A device pointer is a host pointer, so that host code may hold and offset it
// freely; every device access is checked against the live allocations, and bytes nobody wrote are poison.
// Host memory that the runtime knows (pinned, managed) is registered here as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sim {

class GlobalMemory {
 public:
  struct Allocation {
    uint64_t base = 0;
    size_t size = 0;
    std::string what;                    // "cudaMalloc", "__device__ x"
    std::vector<uint8_t> valid;          // one flag per byte, as in Bytes
    std::unique_ptr<uint8_t[]> storage;  // null when the memory belongs to somebody else
  };

  // Returns memory that is 256-byte aligned and surrounded by unmapped red zones, or null for size 0.
  void* allocate(size_t size, std::string what);
  // Registers host memory that the device may use; it counts as written.
  void adopt(void* memory, size_t size, std::string what);
  void release(void* memory);  // Fault kBounds when `memory` is not the base of an allocation
  // Returns the allocation that holds all of [address, address + n), or null.
  Allocation* find(uint64_t address, size_t n);

  void read(uint64_t address, void* out, size_t n);  // Fault kBounds (names the nearest allocation), kPoison
  void write(uint64_t address, const void* in, size_t n);  // Fault kBounds
  void poison(uint64_t address, size_t n);
  void mark_written(uint64_t address, size_t n);  // host-side copies and fills write storage directly
  size_t bytes_in_use() const { return in_use_; }

 private:
  std::map<uint64_t, Allocation> allocations_;  // by base
  Allocation* last_ = nullptr;  // the allocation of the previous access: most accesses repeat it
  size_t in_use_ = 0;
};

}  // namespace sim
