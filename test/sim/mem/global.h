// global.h -- device memory. A device pointer is a host pointer, so that host code may hold and offset it
// freely; every device access is checked against the live allocations, and bytes have the states of bytes.h.
// Host memory that the runtime knows (pinned, managed) is registered here as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/mem/bytes.h"

namespace sim {

// Memory of no device is the host's (pinned, managed, parameters), which every device may use.
inline constexpr int kNoDevice = -1;

// A grid reaches the memory of the device that it runs on, and the memory of other devices to which that
// device was given access.
struct Reach {
  int device = 0;
  std::vector<int> peers;
};

class GlobalMemory {
 public:
  struct Allocation {
    uint64_t base = 0;
    size_t size = 0;
    int device = kNoDevice;              // whose memory it is
    std::string what;                    // "cudaMalloc", "__device__ x"
    std::vector<uint8_t> states;         // of the bytes
    std::unique_ptr<uint8_t[]> storage;  // null when the memory belongs to somebody else
  };

  // Returns memory of a device that is 256-byte aligned and surrounded by unmapped red zones, or null for
  // size 0.
  void* allocate(size_t size, std::string what, int device = 0);
  // Registers host memory that the device may use; it counts as written.
  void adopt(void* memory, size_t size, std::string what);
  void release(void* memory);  // Fault kBounds when `memory` is not the base of an allocation
  void release_all_of(int device);
  // Returns the allocation that holds all of [address, address + n), or null.
  Allocation* find(uint64_t address, size_t n);

  // Says which device reads and writes from now on.
  void set_reach(Reach reach) { reach_ = std::move(reach); }
  // Fault kBounds (names the nearest allocation, or the device whose memory is out of reach), kPoison
  void read(uint64_t address, void* out, size_t n, Holes* holes = nullptr);  // as Bytes::read
  bool write(uint64_t address, const void* in,
             size_t n);  // returns whether that changed a byte; Fault kBounds
  void poison(uint64_t address, size_t n);
  void expect(uint64_t address, size_t n);        // the bytes are in flight from now on
  void mark_written(uint64_t address, size_t n);  // host-side copies and fills write storage directly
  size_t bytes_in_use(int device) const;

 private:
  void set_states(uint64_t address, size_t n, uint8_t state);
  void require_reach(const Allocation& allocation, const char* what, uint64_t address, size_t n) const;

  std::map<uint64_t, Allocation> allocations_;  // by base
  Allocation* last_ = nullptr;    // the allocation of the previous access: most accesses repeat it
  std::map<int, size_t> in_use_;  // bytes by device
  Reach reach_;
};

}  // namespace sim
