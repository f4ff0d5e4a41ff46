// structure.h -- structures of the interface begin with their size, by which the library knows the header
// that a program was compiled with. These functions read and write structures that are older or newer than
// the library.
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/include/dualgemm.h"

namespace dualgemm {

// A structure that claims to be larger than this was never initialised: only its size is read.
inline constexpr uint32_t kMostStructureBytes = 4096;

// What messages call a structure, and how large it is. Structures only ever grow.
struct Structure {
  const char* argument;  // by which functions take it
  const char* type;
  const char* init;     // what a program calls first
  uint32_t first_size;  // in 0.2.0, the first release whose structures stay
  uint32_t size;        // now
};

// Refuses NULL, and a size that fits no release.
dualgemm_status_t check_structure(const Structure& structure, const void* pointer);

// Copies the fields that the caller's structure has; fields that are younger than the caller's structure keep
// their values in *to. Refuses what check_structure refuses, and fields that are set but that this library
// does not know.
dualgemm_status_t read_structure(const Structure& structure, const void* from, void* to);

// The same for the structure that a function takes as `args`; kFirstSize is its first_size.
template <uint32_t kFirstSize, class Args>
dualgemm_status_t read_args(const char* type, const char* init, const Args* from, Args* to) {
  static_assert(sizeof(Args) >= kFirstSize);
  return read_structure({"args", type, init, kFirstSize, sizeof(Args)}, from, to);
}

// Fills a structure of the caller's, which has been checked, up to the size that it has. Fields that the
// library does not know become zero.
void write_structure(const Structure& structure, const void* from, void* to);

// Sets `bytes` bytes of a structure, as many as the caller's structure has: the first `size` bytes, which are
// those that the library knows, to their defaults, the rest to zero, and the structure's size to `bytes`. If
// `to` is null it does nothing.
void init_structure(void* to, size_t bytes, const void* defaults, size_t size);
template <class Structure>
void init_structure(Structure* to, size_t bytes, const Structure& defaults) {
  init_structure(to, bytes, &defaults, sizeof defaults);
}

}  // namespace dualgemm
