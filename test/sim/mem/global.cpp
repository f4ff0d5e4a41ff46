// global.cpp -- the allocation map of device memory.
#include "sim/mem/global.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "sim/fault.h"
#include "sim/text.h"

namespace sim {

constexpr size_t kRedZone = 256;
constexpr uint64_t kAlignment = 256;

void* GlobalMemory::allocate(size_t size, std::string what, int device) {
  if (size == 0) return nullptr;
  Allocation allocation;
  allocation.storage = std::make_unique<uint8_t[]>(size + 2 * kRedZone + kAlignment);
  allocation.base =
      (reinterpret_cast<uint64_t>(allocation.storage.get()) + kRedZone + kAlignment - 1) & ~(kAlignment - 1);
  allocation.size = size;
  allocation.device = device;
  allocation.what = std::move(what);
  allocation.states.assign(size, kUnwritten);
  in_use_[device] += size;
  void* base = reinterpret_cast<void*>(allocation.base);
  allocations_[allocation.base] = std::move(allocation);
  return base;
}

void GlobalMemory::adopt(void* memory, size_t size, std::string what) {
  const uint64_t base = reinterpret_cast<uint64_t>(memory);
  const auto after = allocations_.lower_bound(base);
  const bool meets_after = after != allocations_.end() && after->first < base + size;
  const bool meets_before =
      after != allocations_.begin() && std::prev(after)->first + std::prev(after)->second.size > base;
  if (meets_after || meets_before)
    throw Fault(FaultKind::kBounds,
                what + " at " + hex(base) + " overlaps memory that is already registered");
  Allocation allocation;
  allocation.base = base;
  allocation.size = size;
  allocation.what = std::move(what);
  allocation.states.assign(size, kWritten);
  in_use_[kNoDevice] += size;
  allocations_[base] = std::move(allocation);
}

void GlobalMemory::release(void* memory) {
  const auto it = allocations_.find(reinterpret_cast<uint64_t>(memory));
  if (it == allocations_.end())
    throw Fault(FaultKind::kBounds,
                hex(reinterpret_cast<uint64_t>(memory)) + " is not the base of an allocation");
  in_use_[it->second.device] -= it->second.size;
  last_ = nullptr;
  allocations_.erase(it);
}

void GlobalMemory::release_all_of(int device) {
  std::erase_if(allocations_, [&](const auto& entry) { return entry.second.device == device; });
  in_use_.erase(device);
  last_ = nullptr;
}

size_t GlobalMemory::bytes_in_use(int device) const {
  const auto found = in_use_.find(device);
  return found == in_use_.end() ? 0 : found->second;
}

GlobalMemory::Allocation* GlobalMemory::find(uint64_t address, size_t n) {
  const auto holds = [&](const Allocation& a) {
    return address >= a.base && address - a.base <= a.size && n <= a.size - (address - a.base);
  };
  if (last_ != nullptr && holds(*last_)) return last_;
  auto it = allocations_.upper_bound(address);
  if (it == allocations_.begin()) return nullptr;
  --it;
  if (!holds(it->second)) return nullptr;
  return last_ = &it->second;
}

namespace {

// Names the allocation that is nearest to an address: "nearest: byte 1040 of cudaMalloc [0x.., +1024)".
std::string nearest(const std::map<uint64_t, GlobalMemory::Allocation>& allocations, uint64_t address) {
  const GlobalMemory::Allocation* best = nullptr;
  uint64_t best_distance = ~uint64_t(0);
  auto it = allocations.upper_bound(address);
  if (it != allocations.end()) {
    best = &it->second;
    best_distance = it->first - address;
  }
  if (it != allocations.begin()) {
    const GlobalMemory::Allocation& below = std::prev(it)->second;
    const uint64_t end = below.base + below.size;
    const uint64_t distance = address > end ? address - end : 0;
    if (distance <= best_distance) best = &below;
  }
  if (best == nullptr) return "nothing is allocated";
  const std::string range = best->what + " [" + hex(best->base) + ", +" + std::to_string(best->size) + ")";
  if (address < best->base)
    return "nearest: " + std::to_string(best->base - address) + " bytes before " + range;
  return "nearest: byte " + std::to_string(address - best->base) + " of " + range;
}

[[noreturn]] void out_of_bounds(const std::map<uint64_t, GlobalMemory::Allocation>& allocations,
                                const char* what, uint64_t address, size_t n) {
  throw Fault(FaultKind::kBounds, std::string(what) + " of " + std::to_string(n) +
                                      " bytes at global address " + hex(address) +
                                      " is outside every allocation; " + nearest(allocations, address));
}

}  // namespace

void GlobalMemory::require_reach(const Allocation& a, const char* what, uint64_t address, size_t n) const {
  if (a.device == reach_.device || a.device == kNoDevice) return;
  if (std::find(reach_.peers.begin(), reach_.peers.end(), a.device) != reach_.peers.end()) return;
  const std::string owner = std::to_string(a.device), user = std::to_string(reach_.device);
  throw Fault(FaultKind::kBounds,
              std::string(what) + " of " + std::to_string(n) + " bytes at global address " + hex(address) +
                  ": byte " + std::to_string(address - a.base) + " of " + a.what +
                  ", which is memory of device " + owner + "; the kernel runs on device " + user +
                  ", which has no access to it (cudaDeviceEnablePeerAccess)");
}

void GlobalMemory::read(uint64_t address, void* out, size_t n, Holes* holes) {
  const Allocation* a = find(address, n);
  if (a == nullptr) out_of_bounds(allocations_, "read", address, n);
  require_reach(*a, "read", address, n);
  const size_t at = address - a->base;
  const uint8_t* const states = a->states.data() + at;
  if (!read_bytes(reinterpret_cast<const uint8_t*>(address), states, out, n))
    find_holes(states, n, at, a->what,
               "read of " + std::to_string(n) + " bytes at global address " + hex(address), holes);
}

bool GlobalMemory::write(uint64_t address, const void* in, size_t n) {
  Allocation* a = find(address, n);
  if (a == nullptr) out_of_bounds(allocations_, "write", address, n);
  require_reach(*a, "write", address, n);
  return write_bytes(reinterpret_cast<uint8_t*>(address), a->states.data() + (address - a->base), in, n);
}

void GlobalMemory::set_states(uint64_t address, size_t n, uint8_t state) {
  Allocation* a = find(address, n);
  if (a == nullptr) out_of_bounds(allocations_, "write", address, n);
  std::memset(a->states.data() + (address - a->base), state, n);
}

void GlobalMemory::poison(uint64_t address, size_t n) { set_states(address, n, kUnwritten); }
void GlobalMemory::expect(uint64_t address, size_t n) { set_states(address, n, kInFlight); }
void GlobalMemory::mark_written(uint64_t address, size_t n) { set_states(address, n, kWritten); }

}  // namespace sim
