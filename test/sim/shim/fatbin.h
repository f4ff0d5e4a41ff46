// fatbin.h -- finding the PTX text inside a fat binary, the container that nvcc embeds in every host object.
// This code knows the container's bytes and the three ways in which its entries are stored; it knows neither
// PTX nor the runtime's registration.
//
//   wrapper    u32 magic 0x466243B1 | u32 version 1 | pointer to the container | pointer, unused in version 1
//   container  u32 magic 0xBA55ED50 | u16 version 1 | u16 header size | u64 bytes that follow
//   entry at   0  u16  kind: 1 PTX, 2 cubin
//              4  u32  header size; the payload starts there
//              8  u64  payload size, padded: the next entry follows it
//             16  u32  compressed size, 0 when plain
//             28  u32  architecture, 100 = compute capability 10.0
//             40  u64  flags: 0x2000 LZ4, 0x8000 zstd, 0x100000 target 'a', 0x200000 target 'f'
//             56  u64  uncompressed size, when compressed
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/machine.h"

namespace sim::shim {

// The container is damaged, of an unknown form, or holds nothing that this machine can run; the text says
// which of these, and for damage at which byte.
class FatbinError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct FatbinEntry {
  enum class Kind { kPtx, kCubin, kOther };
  enum class Storage { kPlain, kLz4, kZstd };
  Kind kind = Kind::kOther;
  Storage storage = Storage::kPlain;
  Target target;
  uint64_t offset = 0;  // of the entry, in the container
  const uint8_t* payload = nullptr;
  uint64_t stored_size = 0;  // bytes at payload
  uint64_t text_size = 0;    // bytes once unpacked

  std::string name() const;  // "compute_100f", "sm_100a"
};

// `wrapper` is what __cudaRegisterFatBinary receives.
std::vector<FatbinEntry> fatbin_entries(const void* wrapper);

// Returns the PTX that stands for what the machine's driver would run. If a cubin runs on the machine, it
// takes precedence over PTX, and the result is the PTX of the same target. Otherwise the result is the PTX
// that the driver would compile. Among several, the newest architecture wins; within one architecture 'a'
// goes before 'f', and 'f' before no suffix (as an H200 was seen to choose). Throws FatbinError when there is
// none, or when the machine would run a cubin whose PTX was not embedded.
const FatbinEntry& select_ptx(const std::vector<FatbinEntry>& entries, const Machine& machine);

std::string unpack_ptx(const FatbinEntry& entry);

}  // namespace sim::shim
