// fatbin.h -- finding the PTX text inside a fat binary, the container nvcc embeds in every host object.
// It knows the container's bytes and the three ways its entries are stored;
// it knows neither PTX nor the runtime's registration.
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

namespace sim::shim {

// The container is damaged, of an unknown form, or holds nothing this machine can run; the text says which.
class FatbinError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct FatbinEntry {
  enum class Kind { kPtx, kCubin, kOther };
  enum class Storage { kPlain, kLz4, kZstd };
  Kind kind = Kind::kOther;
  Storage storage = Storage::kPlain;
  uint32_t arch = 0;          // 10 * major + minor
  char target_suffix = '\0';  // 'a', 'f' or none
  const uint8_t* payload = nullptr;
  uint64_t stored_size = 0;  // bytes at payload
  uint64_t text_size = 0;    // bytes once unpacked

  std::string target() const;  // "compute_100f", "sm_100a"
};

// `wrapper` is what __cudaRegisterFatBinary receives.
std::vector<FatbinEntry> fatbin_entries(const void* wrapper);

// The entry a device of compute capability 10.0 would compile: the newest PTX not newer than the device.
// Targets with a suffix run only on their own architecture and win there ('a' before 'f' before none).
// FatbinError when there is none, or when the device would run a cubin whose PTX was not embedded.
const FatbinEntry& select_ptx(const std::vector<FatbinEntry>& entries);

std::string unpack_ptx(const FatbinEntry& entry);

}  // namespace sim::shim
