// memory.cpp -- one lane's access to memory: which space an address names, whose memory that is, and the
// checks that every access passes: window, alignment, bounds, written bytes, live mbarriers.
#include <algorithm>
#include <cstring>

#include "sim/exec/exec.h"
#include "sim/text.h"

namespace sim {
namespace {

[[noreturn]] void misaligned(const char* space, uint64_t address, uint64_t bytes) {
  throw Fault(FaultKind::kMisaligned,
              "access of " + std::to_string(bytes) + " bytes at " + space + " address " + hex(address));
}

inline void check_aligned(const char* space, uint64_t address, uint64_t bytes) {
  const bool power = (bytes & (bytes - 1)) == 0;  // which costs no division
  if (power ? (address & (bytes - 1)) != 0 && bytes != 0 : address % bytes != 0)
    misaligned(space, address, bytes);
}

[[noreturn]] void outside_shared(const Cta& owner, uint32_t offset, uint64_t bytes) {
  throw Fault(FaultKind::kBounds, "access of " + std::to_string(bytes) + " bytes at shared offset " +
                                      hex(offset) + "; the CTA's shared memory is [" +
                                      hex(owner.shared_begin) + ", " + hex(owner.shared.size()) + ")");
}

[[noreturn]] void wrong_rank(uint64_t address, uint64_t rank, const Exec& x) {
  if (rank >= x.cluster.ctas.size())
    throw Fault(FaultKind::kBounds, "shared address " + hex(address) + " names CTA rank " +
                                        std::to_string(rank) + " of a cluster of " +
                                        std::to_string(x.cluster.ctas.size()));
  throw Fault(FaultKind::kBounds, "shared::cta address " + hex(address) + " belongs to CTA rank " +
                                      std::to_string(rank) + ", not to the executing CTA of rank " +
                                      std::to_string(x.cta.rank));
}

// Ordinary writes must not touch a live mbarrier: its eight bytes are opaque until mbarrier.inval.
void check_no_mbarrier(const Cta& cta, uint32_t offset, uint64_t bytes) {
  if (offset >= cta.mbarrier_high || offset + bytes <= cta.mbarrier_low) return;
  auto it = cta.mbarriers.upper_bound(offset);
  if (it != cta.mbarriers.begin() && std::prev(it)->first + 8 > offset) --it;
  if (it != cta.mbarriers.end() && it->first < offset + bytes)
    throw Fault(FaultKind::kProtocol, "write of " + std::to_string(bytes) + " bytes at shared offset " +
                                          hex(offset) + " touches the live mbarrier at offset " +
                                          hex(it->first));
}

Space classify(Space space, uint64_t address) {
  if (space != Space::kGeneric) return space;
  switch (address >> 56) {
    case kSharedWindow >> 56: return Space::kSharedCluster;
    case kLocalWindow >> 56: return Space::kLocal;
    default: return Space::kGlobal;
  }
}

// Returns the address of the shared space that an operand names. An address of a named space is truncated to
// the 32 bits of that space (PTX ISA 6.4.1), so the lower half of a generic address of the shared window
// names the same bytes. A generic address is taken whole: what is outside the window stays outside.
uint64_t shared_address(Space space, uint64_t address) {
  return space == Space::kGeneric ? address - kSharedWindow : uint32_t(address);
}

bool in_parameters(const Grid& grid, uint64_t address) {
  return address >= grid.param_base && address < grid.param_base + grid.kernel.info.param_bytes;
}

uint64_t digest_of(const void* bytes, uint32_t count) {
  uint64_t digest = count;
  for (uint32_t at = 0; at < count; at += 8) {
    uint64_t word = 0;
    for (uint32_t i = std::min(count - at, 8u); i > 0; --i)
      word = word << 8 | static_cast<const uint8_t*>(bytes)[at + i - 1];
    digest = (digest ^ word) * 0x9E3779B97F4A7C15u;
    digest ^= digest >> 32;
  }
  return digest | 1;
}

// `stored` are the bytes of a store.
void tell(const Exec& x, Memory memory, uint64_t cta, uint64_t address, uint32_t bytes, uint32_t lane,
          Exec::Seen seen, const void* stored = nullptr) {
  if (seen == Exec::Seen::kNot) return;
  const bool atomic = seen == Exec::Seen::kAtomic, write = atomic || stored != nullptr;
  std::vector<Access>& accesses = x.grid.accesses;
  if (!accesses.empty() && (accesses[0].region.memory != memory || accesses[0].region.write != write))
    x.tell_accesses();
  if (accesses.empty()) {
    Access& access = accesses.emplace_back();
    access.thread = x.thread(lane);
    access.mask = x.mask;
    access.region.memory = memory;
    access.region.write = write;
    access.inst = &x.grid.kernel.code[x.fragment->pc];
    access.atomic = atomic;
    access.collective = seen == Exec::Seen::kCollective;
    // The order that a copy of a tensor map names belongs to its fence.
    access.order =
        access.collective ? Order::kWeak : order_of(*access.inst, atomic ? Order::kRelaxed : Order::kWeak);
    access.scope = scope_of(*access.inst, atomic ? Scope::kGpu : Scope::kSys);
    access.non_coherent = access.inst->has(Q::kNonCoherent);
  } else {
    accesses.push_back(accesses[0]);
  }
  Access& access = accesses.back();
  access.thread.lane = lane;
  access.region.cta = cta;
  access.region.address = address;
  access.region.bytes = bytes;
  if (stored != nullptr) access.digest = digest_of(stored, bytes);
}

}  // namespace

Order order_of(const Inst& inst, Order otherwise) {
  if (inst.has(Q::kVolatile)) return Order::kVolatile;
  if (inst.has(Q::kRelaxed)) return Order::kRelaxed;
  if (inst.has(Q::kAcquire)) return Order::kAcquire;
  if (inst.has(Q::kRelease)) return Order::kRelease;
  if (inst.has(Q::kAcqRel)) return Order::kAcqRel;
  if (inst.has(Q::kSeqCst)) return Order::kSeqCst;
  return otherwise;
}

Scope scope_of(const Inst& inst, Scope otherwise) {
  if (inst.has(Q::kScopeCta)) return Scope::kCta;
  if (inst.has(Q::kScopeCluster)) return Scope::kCluster;
  if (inst.has(Q::kScopeGpu) || inst.has(Q::kScopeGl)) return Scope::kGpu;
  if (inst.has(Q::kScopeSys)) return Scope::kSys;
  return otherwise;
}

void Exec::tell_accesses() const {
  if (grid.accesses.empty()) return;
  grid.observer->accesses(grid.accesses);
  grid.accesses.clear();
}

Cta& Cluster::at(uint32_t rank) {
  if (rank >= ctas.size())
    throw Fault(FaultKind::kBounds,
                "CTA rank " + std::to_string(rank) + " of a cluster of " + std::to_string(ctas.size()));
  if (ctas[rank]->exited())
    throw Fault(FaultKind::kProtocol,
                "CTA rank " + std::to_string(rank) + " of the cluster has already exited");
  return *ctas[rank];
}

Exec::Shared Exec::shared(uint64_t address, uint64_t bytes, bool any_rank) const {
  const uint64_t rank = address >> kRankShift;
  if (rank >= cluster.ctas.size() || (!any_rank && rank != cta.rank)) wrong_rank(address, rank, *this);
  Cta& owner = rank == cta.rank ? cta : cluster.at(uint32_t(rank));
  const uint32_t offset = uint32_t(address & ((1u << kRankShift) - 1));
  if (offset < owner.shared_begin || offset + bytes > owner.shared.size())
    outside_shared(owner, offset, bytes);
  return {&owner, offset};
}

Exec::Shared Exec::shared_of(Space space, uint64_t address, uint64_t bytes) const {
  if (space == Space::kGeneric && address >> 56 != kSharedWindow >> 56)
    throw Fault(FaultKind::kBounds, "generic address " + hex(address) + " is not in shared memory");
  return shared(shared_address(space, address), bytes, space != Space::kShared);
}

bool Exec::in_memory(uint64_t address, uint64_t bytes) {
  return in_parameters(grid, address) || grid.memory.find(address, bytes) != nullptr;
}

uint64_t Exec::global_of(Space space, uint64_t address) const {
  if (classify(space, address) == Space::kGlobal || space == Space::kConst || space == Space::kParam)
    return address;
  throw Fault(FaultKind::kBounds, "address " + hex(address) + " is not in global memory");
}

void Exec::load(Space space, uint64_t address, uint32_t lane, void* out, uint32_t bytes, Seen seen,
                Holes* holes) {
  if (!grid.go_on) return load_checked(space, address, lane, out, bytes, seen, holes);
  try {
    load_checked(space, address, lane, out, bytes, seen, holes);
  } catch (const Fault& fault) {
    outlive(fault, 1u << lane);
    std::memset(out, 0, bytes);
  }
}

bool Exec::store(Space space, uint64_t address, uint32_t lane, const void* in, uint32_t bytes, Seen seen) {
  if (!grid.go_on) {
    store_checked(space, address, lane, in, bytes, seen);
    return true;
  }
  try {
    store_checked(space, address, lane, in, bytes, seen);
    return true;
  } catch (const Fault& fault) {
    outlive(fault, 1u << lane);
    return false;
  }
}

bool Exec::local(Space space, uint64_t address) const { return classify(space, address) == Space::kLocal; }

uint64_t Exec::in_local(uint64_t address, uint32_t lane) const {
  return uint64_t(lane) * grid.kernel.local_bytes +
         (address >> 56 == kLocalWindow >> 56 ? address - kLocalWindow : address);
}

Bits Exec::loaded(const Load& load, uint32_t lane, uint32_t at, uint32_t bytes,
                  std::shared_ptr<const Poison>* origin) const {
  Bits out;
  for (uint32_t i = 0; i < bytes; ++i) {
    SpilledByte byte{nullptr, load.data[at + i], 0};
    if (load.holes.bytes >> (at + i) & 1) {
      byte = {};
      if (local(load.space, load.address)) {
        const auto spilled = warp.spilled.find(in_local(load.address + at + i, lane));
        if (spilled != warp.spilled.end()) byte = spilled->second;
      }
      if (byte.origin) merge_origin(origin, byte.origin);
      else if (!*origin) *origin = this->origin(load.holes.cause(at + i), !load.holes.all);
    }
    out.known |= uint64_t(byte.known) << 8 * i;
    out.unknown |= uint64_t(byte.unknown) << 8 * i;
  }
  return out;
}

void Exec::store_holes(Space space, uint64_t address, uint32_t lane, const Value& from, uint32_t bytes) {
  const Bits held = bits(from, lane);
  const auto cause = origin(from, lane);
  for (uint32_t i = 0; i < bytes; ++i) {
    const uint8_t unknown = uint8_t(held.unknown >> 8 * i);
    if (unknown == 0) continue;
    switch (const uint64_t at = address + i; classify(space, address)) {
      case Space::kShared:
      case Space::kSharedCluster: {
        const Shared to = shared(shared_address(space, at), 1, true);
        to.cta->shared.poison(to.offset, 1);
        break;
      }
      case Space::kLocal:
        warp.local->poison(in_local(at, lane), 1);
        warp.spilled[in_local(at, lane)] = {cause, uint8_t(held.known >> 8 * i), unknown};
        break;
      default: grid.memory.poison(at, 1);
    }
  }
}

void Exec::copy_local(uint64_t to, uint64_t from, uint32_t lane, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; ++i) {
    const uint64_t source = in_local(from + i, lane), target = in_local(to + i, lane);
    Holes holes;
    uint8_t byte;
    warp.local->read(source, &byte, 1, &holes);
    warp.local->write(target, &byte, 1);
    if (holes.bytes == 0) continue;
    warp.local->poison(target, 1);
    const auto spilled = warp.spilled.find(source);
    if (spilled != warp.spilled.end()) warp.spilled[target] = SpilledByte(spilled->second);
    else warp.spilled.erase(target);
  }
}

static void check_local(const char* what, uint64_t offset, uint32_t bytes, uint64_t room) {
  check_aligned("local", offset, bytes);
  if (offset + bytes > room || offset > room)
    throw Fault(FaultKind::kBounds, what + (" of " + std::to_string(bytes)) + " bytes at local address " +
                                        hex(offset) + "; a thread has " + std::to_string(room));
}

void Exec::load_checked(Space space, uint64_t address, uint32_t lane, void* out, uint32_t bytes, Seen seen,
                        Holes* holes) {
  const bool generic = space == Space::kGeneric;
  switch (classify(space, address)) {
    case Space::kShared:
    case Space::kSharedCluster: {
      check_aligned("shared", address, bytes);
      const Shared at = shared(shared_address(space, address), bytes, space != Space::kShared);
      if (watched()) tell(*this, Memory::kShared, at.cta->linear, at.offset, bytes, lane, seen);
      at.cta->shared.read(at.offset, out, bytes, holes);
      break;
    }
    case Space::kLocal: {
      const uint64_t offset = generic ? address - kLocalWindow : address;
      check_local("read", offset, bytes, grid.kernel.local_bytes);
      warp.local->read(in_local(offset, lane), out, bytes, holes);
      if (holes != nullptr) holes->first = offset;
      break;
    }
    case Space::kConst:
    case Space::kParam:
      check_aligned("global", address, bytes);
      grid.memory.read(address, out, bytes, holes);
      break;
    default:
      check_aligned("global", address, bytes);
      if (watched() && !in_parameters(grid, address))
        tell(*this, Memory::kGlobal, 0, address, bytes, lane, seen);
      grid.memory.read(address, out, bytes, holes);
      break;
  }
}

void Exec::store_checked(Space space, uint64_t address, uint32_t lane, const void* in, uint32_t bytes,
                         Seen seen) {
  const bool generic = space == Space::kGeneric;
  bool changes = false;
  switch (classify(space, address)) {
    case Space::kShared:
    case Space::kSharedCluster: {
      check_aligned("shared", address, bytes);
      const Shared at = shared(shared_address(space, address), bytes, space != Space::kShared);
      check_no_mbarrier(*at.cta, at.offset, bytes);
      if (watched()) tell(*this, Memory::kShared, at.cta->linear, at.offset, bytes, lane, seen, in);
      changes = at.cta->shared.write(at.offset, in, bytes);
      break;
    }
    case Space::kLocal: {
      const uint64_t offset = generic ? address - kLocalWindow : address;
      check_local("write", offset, bytes, grid.kernel.local_bytes);
      changes = warp.local->write(in_local(offset, lane), in, bytes);
      break;
    }
    case Space::kConst:
    case Space::kParam: throw Fault(FaultKind::kBounds, "write to read-only memory at " + hex(address));
    default:
      check_aligned("global", address, bytes);
      if (in_parameters(grid, address))
        throw Fault(FaultKind::kBounds, "write to the kernel's parameters at " + hex(address));
      if (watched()) tell(*this, Memory::kGlobal, 0, address, bytes, lane, seen, in);
      changes = grid.memory.write(address, in, bytes);
      break;
  }
  // A warp that stores the value that is already there again and again, or fails to take a lock, may run in a
  // circle.
  if (changes) grid.changed_at = grid.stats.warp_instructions;
}

}  // namespace sim
