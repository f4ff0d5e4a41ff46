// tmem_protocol.cpp -- see the header. Both rules are advice: running sums over several tiles, and one set of
// scale factors for many k-tiles, are legal if that is what is meant.
#include "sim/check/tmem_protocol.h"

#include <algorithm>

#include "sim/check/protocol_text.h"

namespace sim::protocol {

static bool overlap(const Region& a, const Region& b) {
  return a.cta == b.cta && a.lane < b.lane + b.lanes && b.lane < a.lane + a.lanes &&
         a.column < b.column + b.columns && b.column < a.column + a.columns;
}

static uint64_t start_of(uint64_t descriptor) { return (descriptor & 0x3FFF) * 16; }

void TmemProtocol::start() {
  ctas_.clear();
  said_.clear();
}

TmemProtocol::Columns& TmemProtocol::of(uint64_t cta) { return ctas_[cta]; }

void TmemProtocol::sync(const SyncEvent& event) {
  if (event.kind == SyncEvent::Kind::kCtaExit) ctas_.erase(event.thread.cta);
  if (event.kind != SyncEvent::Kind::kTmemAlloc) return;
  Columns& columns = of(event.cta);
  const size_t end = std::min<size_t>(kColumns, event.object + size_t(event.amount));
  for (size_t c = event.object; c < end; ++c) columns[c] = Column{};
}

TmemProtocol::Operands TmemProtocol::operands(const AsyncIssue& issue) const {
  Operands out{start_of(issue.a_desc), 0, start_of(issue.b_desc), 0};
  uint64_t cta = issue.thread.cta;
  for (const Region& region : issue.reads)
    if (region.memory == Memory::kShared) cta = std::min(cta, region.cta);
  if (const SharedImage::Copy* copy = image_.find(cta, out.a)) out.a_copy = copy->by.async_id;
  if (const SharedImage::Copy* copy = image_.find(cta, out.b)) out.b_copy = copy->by.async_id;
  return out;
}

void TmemProtocol::issue(const AsyncIssue& issue) {
  using Kind = AsyncIssue::Kind;
  if (issue.kind == Kind::kMma) return mma(issue);
  for (const Region& region : issue.writes)
    if (region.memory == Memory::kTensor &&
        (issue.kind == Kind::kTmemCopy || issue.kind == Kind::kTmemStore)) {
      Columns& columns = of(region.cta);
      for (size_t c = region.column; c < size_t(region.column) + region.columns && c < kColumns; ++c) {
        columns[c].used = columns[c].read_out = false;
        columns[c].writer = site(issue);
      }
    }
  if (issue.kind != Kind::kTmemLoad) return;
  for (const Region& region : issue.reads)
    if (region.memory == Memory::kTensor) {
      Columns& columns = of(region.cta);
      for (size_t c = region.column; c < size_t(region.column) + region.columns && c < kColumns; ++c) {
        columns[c].read_out = true;
        columns[c].reader = site(issue);
      }
    }
}

void TmemProtocol::mma(const AsyncIssue& issue) {
  const Operands used = operands(issue);
  for (const Region& region : issue.reads) {
    if (region.memory != Memory::kTensor) continue;
    const bool accumulator = std::any_of(issue.writes.begin(), issue.writes.end(), [&](const Region& w) {
      return w.memory == Memory::kTensor && overlap(region, w);
    });
    if (accumulator) check_accumulator(issue, region);
    else if (issue.scaled) check_scales(issue, region, used);
  }
  for (const Region& region : issue.writes)
    if (region.memory == Memory::kTensor) {
      Columns& columns = of(region.cta);
      for (size_t c = region.column; c < size_t(region.column) + region.columns && c < kColumns; ++c)
        columns[c].read_out = false;
    }
}

void TmemProtocol::check_scales(const AsyncIssue& issue, const Region& region, const Operands& used) {
  Columns& columns = of(region.cta);
  for (size_t c = region.column; c < size_t(region.column) + region.columns && c < kColumns; ++c) {
    Column& column = columns[c];
    if (column.used && !column.user.same_a(used) && !column.user.same_b(used) &&
        first_time("tmem-scales-reused", issue.inst)) {
      Finding out = finding("tmem-scales-reused",
                            "tcgen05.mma reads scale factors in TMEM column " + std::to_string(c) +
                                " of CTA " + std::to_string(region.cta) +
                                " that served other A and B operands and were not written since",
                            site(issue));
      out.has_earlier = out.has_region = true;
      out.earlier = column.user_site;
      out.region = region;
      out.notes.push_back("written by " + name(column.writer.thread) + " at " + place(column.writer.inst));
      sink_(std::move(out));
    }
    column.used = true;
    column.user = used;
    column.user_site = site(issue);
  }
}

void TmemProtocol::check_accumulator(const AsyncIssue& issue, const Region& region) {
  Columns& columns = of(region.cta);
  for (size_t c = region.column; c < size_t(region.column) + region.columns && c < kColumns; ++c) {
    if (!columns[c].read_out || !first_time("tmem-accumulate-after-read", issue.inst)) continue;
    Finding out = finding("tmem-accumulate-after-read",
                          "tcgen05.mma accumulates onto TMEM column " + std::to_string(c) + " of CTA " +
                              std::to_string(region.cta) + ", whose result was already read out",
                          site(issue));
    out.has_earlier = out.has_region = true;
    out.earlier = columns[c].reader;
    out.region = region;
    sink_(std::move(out));
    return;
  }
}

}  // namespace sim::protocol
