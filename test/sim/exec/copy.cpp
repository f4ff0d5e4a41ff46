// copy.cpp -- the steps of a copy: its sources are read once, late or early; then its pieces land one by one,
// each with its own complete_tx.
#include "sim/exec/copy.h"

#include <algorithm>
#include <cstring>

#include "sim/exec/cluster.h"

namespace sim {

constexpr uint64_t kGranule = 16;  // bytes that always land together

static uint32_t bit(const Cta& cta) { return 1u << cta.rank; }

// Visits the runs [first, last) of spans that follow each other in global memory, as those of a row do.
template <class Visit>
static void for_runs(const std::vector<Copy::Span>& spans, Visit&& visit) {
  for (size_t first = 0; first < spans.size();) {
    size_t last = first + 1;
    uint64_t end = spans[first].global + spans[first].bytes;
    while (last < spans.size() && spans[last].global == end) end += spans[last++].bytes;
    visit(first, last, spans[first].global, uint32_t(end - spans[first].global));
    first = last;
  }
}

static Region global_region(uint64_t address, uint32_t bytes, bool write) {
  Region region;
  region.write = write;
  region.address = address;
  region.bytes = bytes;
  return region;
}

static Region shared_region(const Cta& cta, uint64_t offset, uint64_t bytes, bool write) {
  Region region = global_region(offset, uint32_t(bytes), write);
  region.memory = Memory::kShared;
  region.cta = cta.linear;
  return region;
}

// Returns the bytes of the image that a store takes, in maximal runs.
static std::vector<std::pair<uint32_t, uint32_t>> image_runs(const std::vector<Copy::Span>& spans) {
  std::vector<std::pair<uint32_t, uint32_t>> parts, runs;  // begin, end
  for (const Copy::Span& span : spans) parts.emplace_back(span.at, span.at + span.bytes);
  std::sort(parts.begin(), parts.end());
  for (const auto& [begin, end] : parts) {
    if (!runs.empty() && runs.back().second == begin) runs.back().second = end;
    else runs.emplace_back(begin, end);
  }
  return runs;
}

void Copy::join(const std::shared_ptr<CopyGroup>& of) {
  group = of;
  ++group->unread;
  ++group->pending;
}

uint32_t Copy::ranks() const {
  uint32_t ranks = source != nullptr && !sources_read() ? bit(*source) : 0;
  const auto add = [&](const Target& target) {
    ranks |= bit(*target.cta);
    if (target.barrier_cta != nullptr) ranks |= bit(*target.barrier_cta);
  };
  if (!planned_) std::for_each(targets.begin(), targets.end(), add);
  for (const Piece& piece : pieces_)
    std::for_each(targets.begin() + std::ptrdiff_t(piece.first), targets.begin() + std::ptrdiff_t(piece.last),
                  add);
  return ranks;
}

bool Copy::may_outlive_cta() const {
  return std::all_of(targets.begin(), targets.end(),
                     [](const Target& target) { return target.barrier_cta == nullptr; });
}

void Copy::read(GlobalMemory& memory) {
  // The image begins as zeros, which elements outside the tensor keep unless `fill` says otherwise.
  image.resize(bytes);
  if (answer) {
    image = answer();
  } else if (source != nullptr) {
    const auto take = [&](uint64_t at, uint64_t n) {
      std::memcpy(image.data() + at, source->shared.view(source_offset + at, n), n);
    };
    if (!targets.empty()) take(0, bytes);
    for (const Span& span : destinations) take(span.at, span.bytes);
  } else {
    if (std::any_of(fill.begin(), fill.end(), [](uint8_t byte) { return byte != 0; }))
      for (uint64_t at = 0; at < bytes; ++at) image[at] = fill[at % fill.size()];
    std::vector<uint8_t> row;
    for_runs(sources, [&](size_t first, size_t last, uint64_t global, uint32_t n) {
      row.resize(n);
      memory.read(global, row.data(), n);
      const uint8_t* from = row.data();
      for (; first < last; from += sources[first++].bytes)
        std::memcpy(image.data() + sources[first].at, from, sources[first].bytes);
    });
  }
  if (group) --group->unread;
}

// Plans one piece for all targets together, or pieces of every target by itself.
void Copy::plan(uint32_t count) {
  planned_ = true;
  const size_t apart = std::max<size_t>(1, targets.size());
  if (count <= 1) {
    pieces_.push_back({0, targets.size(), 0, bytes});
    return;
  }
  const uint64_t granules = (bytes + kGranule - 1) / kGranule;
  const uint64_t each = std::min<uint64_t>(granules, (count + apart - 1) / apart);
  for (size_t target = 0; target < apart; ++target)
    for (uint64_t i = 0; i < each; ++i)
      pieces_.push_back({target, std::min(target + 1, targets.size()), granules * i / each * kGranule,
                         std::min(bytes, granules * (i + 1) / each * kGranule)});
}

void Copy::land(const Piece& piece, GlobalMemory& memory) const {
  for (size_t i = piece.first; i < piece.last; ++i) {
    const Target& target = targets[i];
    if (!may_outlive_cta() && (target.cta->exited() || target.barrier_cta->exited()))
      throw Fault(FaultKind::kProtocol, "a copy lands in a CTA that has exited");
    target.cta->shared.write(target.offset + piece.begin, image.data() + piece.begin,
                             piece.end - piece.begin);
    if (target.barrier_cta != nullptr)
      mbarrier_complete_tx(*target.barrier_cta, target.barrier, int64_t(piece.end - piece.begin));
  }
  for (const Span& span : destinations) {
    const uint64_t begin = std::max<uint64_t>(piece.begin, span.at);
    const uint64_t end = std::min<uint64_t>(piece.end, span.at + span.bytes);
    if (begin < end) memory.write(span.global + (begin - span.at), image.data() + begin, end - begin);
  }
}

void Copy::piece(GlobalMemory& memory, Policy& policy) {
  if (!planned_) plan(policy.pieces(bytes * std::max<size_t>(1, targets.size())));
  const size_t chosen = pieces_.size() > 1 ? policy.piece(uint32_t(pieces_.size())) : 0;
  land(pieces_.at(chosen), memory);
  pieces_.erase(pieces_.begin() + std::ptrdiff_t(chosen));
  if (pieces_.empty() && group) --group->pending;
}

void Copy::give_up() {
  if (!planned_) plan(1);
  for (const Piece& piece : pieces_)
    for (size_t i = piece.first; i < piece.last; ++i)
      if (Cta* cta = targets[i].barrier_cta; cta != nullptr && cta->mbarriers.contains(targets[i].barrier))
        mbarrier_complete_tx(*cta, targets[i].barrier, int64_t(piece.end - piece.begin));
  pieces_.clear();
  if (!group) return;
  if (!sources_read()) --group->unread;
  --group->pending;
}

void Copy::footprint(AsyncIssue& facts) const {
  for_runs(sources, [&](size_t, size_t, uint64_t global, uint32_t n) {
    facts.reads.push_back(global_region(global, n, false));
  });
  if (source != nullptr) {
    if (!targets.empty()) facts.reads.push_back(shared_region(*source, source_offset, bytes, false));
    for (const auto& [begin, end] : image_runs(destinations))
      facts.reads.push_back(shared_region(*source, source_offset + begin, end - begin, false));
  }
  for (const Target& target : targets) {
    facts.writes.push_back(shared_region(*target.cta, target.offset, bytes, true));
    if (target.barrier_cta == nullptr) continue;
    const MbarrierRef barrier{target.barrier_cta->linear, target.barrier};
    const auto same = std::find_if(facts.barriers.begin(), facts.barriers.end(),
                                   [&](const AsyncIssue::Signal& s) { return s.barrier == barrier; });
    if (same != facts.barriers.end()) same->bytes += int64_t(bytes);
    else facts.barriers.push_back({barrier, int64_t(bytes)});
  }
  for_runs(destinations, [&](size_t, size_t, uint64_t global, uint32_t n) {
    facts.writes.push_back(global_region(global, n, true));
  });
}

}  // namespace sim
