// collector_protocol.cpp -- see the header. MMAs count in the order of their issue, because the MMAs of one
// CTA, or of one pair of CTAs, execute one after the other.
#include "sim/check/collector_protocol.h"

#include <algorithm>

#include "sim/check/protocol_text.h"

namespace sim::protocol {

// The fields of the instruction descriptor that describe A: its type, whether it is transposed, its rows (M).
// Kinds with scale factors have M in bits 27 and 28 and zeros in 24 to 26, so one mask serves all.
constexpr uint32_t kFormOfA = 7u << 7 | 1u << 15 | 31u << 24;

static bool takes(AsyncIssue::Collector c) {
  return c == AsyncIssue::Collector::kUse || c == AsyncIssue::Collector::kLastUse;
}

static uint64_t first_cta(const AsyncIssue& issue) {
  uint64_t cta = issue.thread.cta;
  for (const Region& region : issue.writes) cta = std::min(cta, region.cta);
  return cta;
}

void CollectorProtocol::start() {
  collectors_.clear();
  said_.clear();
}

void CollectorProtocol::sync(const SyncEvent& event) {
  if (event.kind == SyncEvent::Kind::kCtaExit) collectors_.erase(event.thread.cta);
}

CollectorProtocol::Matrix CollectorProtocol::matrix(const AsyncIssue& issue) const {
  Matrix out{issue.a_desc, issue.a_in_tmem, issue.idesc & kFormOfA, {}};
  if (issue.a_in_tmem) return out;
  std::set<uint64_t> ctas;
  for (const Region& region : issue.reads)
    if (region.memory == Memory::kShared) ctas.insert(region.cta);
  for (const uint64_t cta : ctas) {
    const SharedImage::Copy* copy = image_.find(cta, (issue.a_desc & 0x3FFF) * 16);
    out.copies.push_back(copy == nullptr ? 0 : copy->by.async_id);
  }
  return out;
}

void CollectorProtocol::issue(const AsyncIssue& issue) {
  if (issue.kind != AsyncIssue::Kind::kMma) return;
  using Usage = AsyncIssue::Collector;
  Collector& collector = collectors_[first_cta(issue)];
  Matrix a = matrix(issue);
  if (takes(issue.collector)) check(issue, collector, a);
  collector.used = true;
  if (issue.collector == Usage::kUse) return;  // the collector keeps what the first MMA left there
  collector.valid = issue.collector == Usage::kFill;
  collector.a = std::move(a);
  collector.by = site(issue);
}

void CollectorProtocol::check(const AsyncIssue& issue, const Collector& collector, const Matrix& a) {
  if (collector.valid && collector.a == a) return;
  if (!said_.insert(issue.inst).second) return;
  std::string holds;
  if (!collector.used) holds = "no MMA has filled";
  else if (!collector.valid) holds = "the MMA before left empty";
  else if (collector.a.descriptor != a.descriptor || collector.a.in_tmem != a.in_tmem)
    holds = "holds another: " + hex(collector.a.descriptor) + ", not " + hex(a.descriptor);
  else if (collector.a.form != a.form) holds = "holds it in another type or shape";
  else holds = "holds what these bytes were before they were written anew";
  Finding out = finding("mma-collector", "tcgen05.mma may take matrix A from the collector, which " + holds,
                        site(issue));
  out.has_earlier = collector.used;
  out.earlier = collector.by;
  out.missing = "a tcgen05.mma with .collector::a::fill of the same A right before";
  sink_(std::move(out));
}

}  // namespace sim::protocol
