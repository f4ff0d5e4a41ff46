// protocol_image.cpp -- see the header. Unread bytes are advice only: a tile at the edge of a matrix, or a
// scale-factor block of which half is used, is read in part by design.
#include "sim/check/protocol_image.h"

#include <algorithm>

#include "sim/check/protocol_text.h"
#include "sim/fault.h"

namespace sim::protocol {

constexpr uint64_t kChunk = 16;

static bool is_copy(AsyncIssue::Kind kind) {
  using Kind = AsyncIssue::Kind;
  return kind == Kind::kBulkLoad || kind == Kind::kBulkShared || kind == Kind::kTensorLoad;
}

// The part of a box that lies beyond the tensor's edge need not be read, as in the last k-tile of a ragged
// matrix.
static void forgive_fill(SharedImage::Copy& copy) {
  if (!copy.has_map) return;
  std::vector<BoxPiece> pieces;
  try {
    box_pieces(copy.map, copy.coordinates, uint32_t(copy.address), Transfer::kLoad, pieces);
  } catch (const Fault&) {
    return;  // a transfer the machine refuses
  }
  std::vector<bool> inside(copy.read.size());
  for (const BoxPiece& piece : pieces)
    if (!piece.outside && piece.smem_offset / kChunk < inside.size())
      inside[piece.smem_offset / kChunk] = true;
  for (size_t i = 0; i < inside.size(); ++i)
    if (!inside[i]) copy.read[i] = true;
}

void SharedImage::start() {
  windows_.clear();
  latest_ = {};
  tallies_.clear();
}

const SharedImage::Copy* SharedImage::find(uint64_t cta, uint64_t address) const {
  const auto window = windows_.find(cta);
  if (window == windows_.end()) return nullptr;
  const auto& copies = window->second.copies;
  auto it = copies.upper_bound(address);
  if (it == copies.begin()) return nullptr;
  --it;
  return address < it->first + it->second.bytes && it->second.intact ? &it->second : nullptr;
}

template <class Visit>
void SharedImage::overlapping(const Region& region, Visit&& visit) {
  const uint64_t end = region.address + region.bytes;
  const auto meet = [&](Copy& copy) {
    const uint64_t first = std::max(region.address, copy.address);
    const uint64_t last = std::min(end, copy.address + copy.bytes);
    if (first < last)
      visit(copy, (first - copy.address) / kChunk, (last - copy.address + kChunk - 1) / kChunk);
    return first == region.address && last == end;
  };
  if (latest_.copy != nullptr && latest_.cta == region.cta && region.address >= latest_.copy->address &&
      end <= latest_.copy->address + latest_.copy->bytes) {
    meet(*latest_.copy);
    return;
  }
  const auto found = windows_.find(region.cta);
  if (found == windows_.end()) return;
  Window& window = found->second;
  if (region.address >= window.high || end <= window.low) return;
  auto it = window.copies.upper_bound(region.address);
  if (it != window.copies.begin()) --it;
  for (; it != window.copies.end() && it->first < end; ++it)
    if (meet(it->second)) latest_ = {&it->second, region.cta};
}

void SharedImage::read(const Region& region, const Site& by) {
  overlapping(region, [&](Copy& copy, uint64_t first, uint64_t end) {
    for (uint64_t i = first; i < end; ++i) copy.read[i] = true;
    if (copy.phase != 0 || !copy.has_barrier) return;
    if (copy.reader == by.async_id && copy.reader_inst == by.inst) return;  // this reader was looked at
    copy.reader = by.async_id;
    copy.reader_inst = by.inst;
    mbarriers_.consume(copy.barrier, copy.phase, by, region);
  });
}

// Bytes that are overwritten by a store no longer belong to a copy. Whether they were read before that is not
// checked.
void SharedImage::changed(const Region& region) {
  overlapping(region, [](Copy& copy, uint64_t first, uint64_t end) {
    copy.intact = false;
    for (uint64_t i = first; i < end; ++i) copy.read[i] = true;
  });
}

void SharedImage::accesses(const std::vector<Access>& accesses) {
  if (windows_.empty() || accesses[0].region.memory != Memory::kShared) return;
  for (const Access& access : accesses) {
    if (access.region.write) changed(access.region);
    else read(access.region, {access.thread, access.mask, 0, access.inst});
  }
}

void SharedImage::issue(const AsyncIssue& issue) {
  for (const Region& region : issue.reads)
    if (region.memory == Memory::kShared) read(region, site(issue));
  for (const Region& region : issue.writes) {
    if (region.memory != Memory::kShared) continue;
    if (is_copy(issue.kind)) write(issue, region);
    else changed(region);
  }
}

void SharedImage::write(const AsyncIssue& issue, const Region& region) {
  latest_ = {};
  Window& window = windows_[region.cta];
  const uint64_t end = region.address + region.bytes;
  auto it = window.copies.upper_bound(region.address);
  if (it != window.copies.begin()) --it;
  while (it != window.copies.end() && it->first < end) {
    if (it->first + it->second.bytes <= region.address) {
      ++it;
      continue;
    }
    retire(region.cta, it->second);
    it = window.copies.erase(it);
  }
  Copy copy;
  copy.by = site(issue);
  copy.address = region.address;
  copy.bytes = region.bytes;
  if (issue.map != nullptr) {
    copy.has_map = true;
    copy.map = *issue.map;
    copy.coordinates = issue.coordinates;
  }
  if (!issue.barriers.empty()) {
    copy.has_barrier = true;
    copy.barrier = issue.barriers[0].barrier;  // a pair's copy may signal in the other CTA
    for (const AsyncIssue::Signal& signal : issue.barriers)
      if (signal.barrier.cta == region.cta) copy.barrier = signal.barrier;
    if (const MbarrierRecord* barrier = mbarriers_.find(copy.barrier)) copy.phase = barrier->phase;
  }
  copy.read.resize((region.bytes + kChunk - 1) / kChunk);
  window.low = std::min(window.low, region.address);
  window.high = std::max(window.high, end);
  window.copies.emplace(region.address, std::move(copy));
}

void SharedImage::retire(uint64_t cta, Copy& copy) {
  Tally& tally = tallies_[copy.by.inst];
  ++tally.copies;
  if (std::find(copy.read.begin(), copy.read.end(), false) == copy.read.end()) return;
  forgive_fill(copy);
  const auto unread = std::find(copy.read.begin(), copy.read.end(), false);
  if (unread == copy.read.end()) return;
  const auto end = std::find(unread, copy.read.end(), true);
  const bool never = std::find(copy.read.begin(), copy.read.end(), true) == copy.read.end();
  Region region;
  region.memory = Memory::kShared;
  region.write = true;
  region.cta = cta;
  region.address = copy.address + uint64_t(unread - copy.read.begin()) * kChunk;
  region.bytes = uint32_t(uint64_t(end - unread) * kChunk);
  uint64_t& count = never ? tally.never : tally.partly;
  if (count++ != 0) return;
  (never ? tally.first_never : tally.first_partly) = copy.by;
  (never ? tally.never_region : tally.partly_region) = region;
}

void SharedImage::cta_exit(uint64_t cta) {
  const auto window = windows_.find(cta);
  if (window == windows_.end()) return;
  for (auto& [address, copy] : window->second.copies) retire(cta, copy);
  windows_.erase(window);
  latest_ = {};
}

// After a fault it is not known which bytes would have been read.
void SharedImage::finish(const char* fault) {
  if (fault != nullptr) return;
  const auto say = [&](const char* id, uint64_t count, const Tally& tally, const char* what, const Site& by,
                       const Region& region) {
    if (count == 0) return;
    Finding out = finding(id,
                          std::to_string(count) + " of " + plural(int64_t(tally.copies), "destination") +
                              " of a copy " + what + ", first " + range(region.address, region.bytes) +
                              " of CTA " + std::to_string(region.cta),
                          by);
    out.has_region = true;
    out.region = region;
    sink_(std::move(out));
  };
  for (const auto& [inst, tally] : tallies_) {
    say("copy-never-read", tally.never, tally, "were never read", tally.first_never, tally.never_region);
    say("copy-partly-read", tally.partly, tally, "were read in part only", tally.first_partly,
        tally.partly_region);
  }
}

}  // namespace sim::protocol
