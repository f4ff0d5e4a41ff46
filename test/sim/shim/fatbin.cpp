// fatbin.cpp -- the layout is drawn in fatbin.h. Every size read from the container is checked against the
// bytes the container says it has before it is used, so that a foreign or truncated container is an error and
// not a crash. Such an error names the byte, counted from the start of the container.
#include "sim/shim/fatbin.h"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace sim::shim {
namespace {

constexpr uint32_t kWrapperMagic = 0x466243B1;
constexpr uint32_t kContainerMagic = 0xBA55ED50;
constexpr uint64_t kFlagLz4 = 0x2000, kFlagZstd = 0x8000, kFlagTargetA = 0x100000, kFlagTargetF = 0x200000;
constexpr uint32_t kMinEntryHeader = 64;  // the last field read ends here
// A kernel with full debug information unpacks to tens of megabytes; a size beyond this is a damaged field.
constexpr uint64_t kMaxTextSize = uint64_t{1} << 31;

struct Wrapper {
  uint32_t magic, version;
  const void* data;
  const void* unused;
};

template <class T>
T field(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Returns the most bytes that a payload can unpack to, so that no field alone decides how much memory is
// taken. A byte of a long match makes 255 bytes in LZ4 (LZ4 block format); in zstd a block makes at most
// 128 KB out of no less than 4 bytes (RFC 8878, section 3.1.1.2).
uint64_t most_unpacked(FatbinEntry::Storage storage, uint64_t stored) {
  switch (storage) {
    case FatbinEntry::Storage::kLz4: return stored * 255;
    case FatbinEntry::Storage::kZstd: return stored / 4 * (uint64_t{128} << 10);
    case FatbinEntry::Storage::kPlain: break;
  }
  return stored;
}

[[noreturn]] void fail(uint64_t offset, const std::string& message) {
  throw FatbinError("byte " + std::to_string(offset) + " of the fat binary: " + message);
}

FatbinEntry read_entry(const uint8_t* at, uint64_t offset, uint32_t header_size, uint64_t padded_size) {
  FatbinEntry entry;
  entry.offset = offset;
  switch (field<uint16_t>(at)) {
    case 1: entry.kind = FatbinEntry::Kind::kPtx; break;
    case 2: entry.kind = FatbinEntry::Kind::kCubin; break;
    default: break;
  }
  const uint64_t flags = field<uint64_t>(at + 40);
  const uint32_t compressed_size = field<uint32_t>(at + 16);
  entry.target = {field<uint32_t>(at + 28), (flags & kFlagTargetA)   ? 'a'
                                            : (flags & kFlagTargetF) ? 'f'
                                                                     : '\0'};
  entry.payload = at + header_size;
  if (flags & kFlagZstd) entry.storage = FatbinEntry::Storage::kZstd;
  if (flags & kFlagLz4) entry.storage = FatbinEntry::Storage::kLz4;
  const bool packed = entry.storage != FatbinEntry::Storage::kPlain;
  if (packed != (compressed_size != 0) || ((flags & kFlagZstd) && (flags & kFlagLz4)))
    fail(offset, "entry " + entry.name() + " is compressed in a way this reader does not know");
  entry.stored_size = packed ? compressed_size : padded_size;
  entry.text_size = packed ? field<uint64_t>(at + 56) : padded_size;
  if (entry.stored_size > padded_size || entry.text_size > kMaxTextSize ||
      entry.text_size > most_unpacked(entry.storage, entry.stored_size))
    fail(offset, "entry " + entry.name() + " claims more bytes than it has");
  return entry;
}

int suffix_rank(char suffix) { return suffix == 'a' ? 2 : suffix == 'f' ? 1 : 0; }

bool worse(const Target& x, const Target& y) {
  return x.arch != y.arch ? x.arch < y.arch : suffix_rank(x.suffix) < suffix_rank(y.suffix);
}

// Returns null when none of the kind is for the machine.
const FatbinEntry* best(const std::vector<FatbinEntry>& entries, FatbinEntry::Kind kind,
                        const Machine& machine) {
  const FatbinEntry* found = nullptr;
  for (const FatbinEntry& entry : entries) {
    const bool runs =
        kind == FatbinEntry::Kind::kPtx ? machine.compiles(entry.target) : machine.executes(entry.target);
    if (entry.kind == kind && runs && (found == nullptr || worse(found->target, entry.target)))
      found = &entry;
  }
  return found;
}

// Says what the fat binary holds, and how to build what the simulator can run.
std::string advice(const std::vector<FatbinEntry>& entries, const Machine& machine) {
  std::string list;
  for (const FatbinEntry& entry : entries) list += (list.empty() ? "" : ", ") + entry.name();
  const std::string target = machine.build_target;
  return "(it holds " + (list.empty() ? "nothing" : list) +
         "): build the file with nvcc -gencode arch=compute_" + target + ",code=[compute_" + target + ",sm_" +
         target + "], which embeds the PTX the simulator runs beside the machine code";
}

}  // namespace

std::string FatbinEntry::name() const {
  return (kind == Kind::kPtx ? "compute_" : kind == Kind::kCubin ? "sm_" : "unknown_") + target.text();
}

std::vector<FatbinEntry> fatbin_entries(const void* wrapper_address) {
  Wrapper wrapper;
  std::memcpy(&wrapper, wrapper_address, sizeof wrapper);
  if (wrapper.magic != kWrapperMagic) throw FatbinError("the registered object is no fat binary wrapper");
  if (wrapper.version != 1)
    throw FatbinError("fat binary wrapper version " + std::to_string(wrapper.version) +
                      " (relocatable device code) is not supported: build with -rdc=false");

  const auto* container = static_cast<const uint8_t*>(wrapper.data);
  const uint16_t header_size = field<uint16_t>(container + 6);
  if (field<uint32_t>(container) != kContainerMagic || field<uint16_t>(container + 4) != 1 ||
      header_size < 16)
    fail(0, "the container has an unknown magic number or version");

  std::vector<FatbinEntry> entries;
  uint64_t offset = header_size, left = field<uint64_t>(container + 8);
  while (left > 0) {
    if (left < kMinEntryHeader) fail(offset, "the container ends inside an entry");
    const uint8_t* at = container + offset;
    const uint32_t entry_header = field<uint32_t>(at + 4);
    const uint64_t padded_size = field<uint64_t>(at + 8);
    if (entry_header < kMinEntryHeader || entry_header > left || padded_size > left - entry_header)
      fail(offset, "the container ends inside an entry");
    entries.push_back(read_entry(at, offset, entry_header, padded_size));
    offset += entry_header + padded_size;
    left -= entry_header + padded_size;
  }
  return entries;
}

const FatbinEntry& select_ptx(const std::vector<FatbinEntry>& entries, const Machine& machine) {
  if (const FatbinEntry* cubin = best(entries, FatbinEntry::Kind::kCubin, machine)) {
    for (const FatbinEntry& entry : entries)
      if (entry.kind == FatbinEntry::Kind::kPtx && entry.target == cubin->target) return entry;
    throw FatbinError(std::string("the ") + machine.name + " would run the " + cubin->name() +
                      " cubin of this fat binary, whose PTX is missing " + advice(entries, machine));
  }
  if (const FatbinEntry* ptx = best(entries, FatbinEntry::Kind::kPtx, machine)) return *ptx;
  throw FatbinError(std::string("the fat binary holds nothing that the ") + machine.name +
                    " (compute capability " + std::to_string(machine.major) + "." +
                    std::to_string(machine.minor) + ") runs " + advice(entries, machine));
}

std::string unpack_ptx(const FatbinEntry& entry) {
  std::string text(entry.text_size, '\0');
  bool good = true;
  switch (entry.storage) {
    case FatbinEntry::Storage::kPlain: std::memcpy(text.data(), entry.payload, entry.text_size); break;
    case FatbinEntry::Storage::kZstd: {
      const size_t size = ZSTD_decompress(text.data(), text.size(), entry.payload, entry.stored_size);
      good = !ZSTD_isError(size) && size == text.size();
      break;
    }
    case FatbinEntry::Storage::kLz4: {
      good = entry.stored_size <= uint64_t{std::numeric_limits<int>::max()} &&
             entry.text_size <= uint64_t{std::numeric_limits<int>::max()};
      if (!good) break;
      const int size =
          LZ4_decompress_safe(reinterpret_cast<const char*>(entry.payload), text.data(),
                              static_cast<int>(entry.stored_size), static_cast<int>(entry.text_size));
      good = size >= 0 && static_cast<uint64_t>(size) == entry.text_size;
      break;
    }
  }
  if (!good) fail(entry.offset, "the PTX of entry " + entry.name() + " does not decompress");
  // The text ends at its NUL; what follows is the padding of the container.
  text.resize(std::min(text.find('\0'), text.size()));
  return text;
}

}  // namespace sim::shim
