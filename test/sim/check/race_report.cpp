// race_report.cpp -- findings in words: who conflicts with whom over which bytes, and what would have kept
// them apart.
#include <algorithm>

#include "sim/check/place.h"
#include "sim/check/race.h"
#include "sim/decode/program.h"
#include "sim/text.h"

namespace sim {

using Kind = AsyncIssue::Kind;

constexpr size_t kMost = 500;  // findings of a run; the first ones are enough

static std::string between(uint64_t from, uint64_t to) { return "[" + hex(from) + "," + hex(to) + ")"; }

static std::string name(const Touch& t, const HostOrder& host, bool tensor) {
  if (t.host) return host.what(t.work);
  if (t.operation != nullptr) return name_of(t.operation->kind);
  if (tensor) return "tcgen05.alloc or dealloc";
  return std::string(t.atomic         ? "an atomic"
                     : t.strong       ? "a strong"
                     : t.non_coherent ? "a non-coherent"
                                      : "an ordinary") +
         (t.atomic  ? ""
          : t.write ? " store"
                    : " load");
}

static std::string place(const Region& r, uint64_t from, uint64_t to) {
  switch (r.memory) {
    case Memory::kGlobal: return "global " + between(from, to);
    case Memory::kShared: return "shared " + between(from, to) + " of CTA " + std::to_string(r.cta);
    case Memory::kTensor:
      return "tensor memory columns [" + std::to_string(from) + "," + std::to_string(to) + ") of CTA " +
             std::to_string(r.cta);
  }
  return "";
}

static std::string place(const MbarrierRef& b) {
  return "mbarrier " + hex(b.offset) + " of CTA " + std::to_string(b.cta);
}

static std::string place(const AsyncOperation::Signal& s, const char* before) {
  return place(s.ref) + (s.phases == 0 ? std::string(before) : " phase " + std::to_string(s.phases - 1));
}

static Site site_of(const Touch& t) {
  if (t.operation != nullptr) return {t.operation->thread, t.operation->mask, t.operation->id, t.inst};
  const uint32_t lane = t.lanes == 0 ? 0 : uint32_t(__builtin_ctz(t.lanes));
  return {thread_of(t.warp, lane), t.lanes, 0, t.inst};
}

// Says where the end of an operation could have been learned.
std::string RaceChecker::covering(const AsyncOperation& op, const Region& region, bool write) const {
  if (op.is(Kind::kTmemLoad) || op.is(Kind::kTmemStore)) {
    const auto cta = state_.grid->ctas.find(op.thread.cta);
    if (cta != state_.grid->ctas.end() && op.thread.warp < cta->second.warps.size() &&
        op.known(cta->second.warps[op.thread.warp]->knows[op.thread.lane]->happens_before, write, region))
      return "a barrier, or an mbarrier arrival and wait, after the tcgen05.wait of the earlier warp";
  }
  if (op.is(Kind::kTmemLoad)) return "tcgen05.wait::ld is missing between the load and the synchronisation";
  if (op.is(Kind::kTmemStore)) return "tcgen05.wait::st is missing between the store and the synchronisation";
  if (op.is(Kind::kWgmma)) return "no wgmma.wait_group on this path covers this wgmma";
  if (op.is(Kind::kCpAsync)) return "the group of this cp.async was not waited for by its thread";
  if (op.sources != 0)
    return write || region.memory == Memory::kGlobal
               ? "the bulk group of this store was not waited for (cp.async.bulk.wait_group without .read)"
               : "the bulk group of this store was not waited for (cp.async.bulk.wait_group.read)";
  if (op.tensor_core()) {
    const auto at = state_.grid->commits.find(queue_lane(op.done, op.thread.lane));
    if (at != state_.grid->commits.end())
      for (const CommitRecord& commit : at->second) {
        if (commit.issued < op.issued) continue;
        std::string out =
            std::string(name_of(op.kind)) + " is covered by commit #" + std::to_string(commit.operation->id);
        for (const AsyncOperation::Signal& s : commit.operation->signals)
          out += " to " + place(s, " (not arrived)");
        return out + ", which was not waited for on this path";
      }
    return std::string("no tcgen05.commit of its thread covers this ") + name_of(op.kind) + " yet";
  }
  std::string out = "its completion was not waited for on this path: ";
  for (const AsyncOperation::Signal& s : op.signals) out += place(s, " (no bytes signalled)") + "; ";
  return out.substr(0, out.size() - 2);
}

std::string RaceChecker::missing(const Hit& hit, const Touch& later, const Region& region,
                                 const Knowledge& knowledge) const {
  const AsyncOperation* op = hit.earlier.operation;
  switch (hit.verdict.lack) {
    case Lack::kNothing: return "";
    case Lack::kStart: return kStart;
    case Lack::kOrder: {
      if (later.warp == hit.earlier.warp) return "bar.warp.sync between the two";
      if (thread_of(later.warp, 0).cta != thread_of(hit.earlier.warp, 0).cta)
        return "a barrier of the cluster, or release and acquire at cluster or gpu scope, between the two";
      return "a barrier, or an mbarrier arrival and wait, between the two";
    }
    case Lack::kCompletion: return covering(*op, region, hit.earlier.write);
    case Lack::kScope:
      return "the edge between them is of CTA scope: .release.cluster and .acquire.cluster would order them";
    case Lack::kAcquire:
      return "the wait or load on the way was relaxed: .acquire on it, or an acquire fence after it";
    case Lack::kProxyFence: {
      const bool some =
          !(region.memory == Memory::kGlobal ? knowledge.fenced.global : knowledge.fenced.shared).empty();
      return std::string("no fence.proxy.async on the path") +
             (some ? " after the access (a fence came too early)" : "") +
             ": by the writers before their release, or by the issuer after its acquire";
    }
    case Lack::kOperandFence: return "fence.proxy.async after the wait for the commit";
    case Lack::kTensormapFence:
      return "fence.proxy.tensormap::generic.release by the writer, "
             "and .acquire of this map's 128 bytes on the way to its use, both at .gpu between CTAs";
    case Lack::kRelease:
      return "tcgen05.fence::before_thread_sync, or .release on the arrival, "
             "after the completion of the earlier operation";
    case Lack::kBeforeFence:
      return "tcgen05.fence::before_thread_sync before the release by the earlier thread";
    case Lack::kAfterFence: return "tcgen05.fence::after_thread_sync after the acquire by the later thread";
    case Lack::kPair: return "a commit and a wait between the two, or different columns";
    case Lack::kMeet: return "bar.warp.sync: elect, shfl, vote, match and redux order no memory";
    case Lack::kInstruction: return "one lane, or an atomic";
    case Lack::kSameProxyOnly:
      return "nothing, where multicast kernels are right: "
             "the ISA promises same-proxy order within a CTA only";
    case Lack::kGridWait:
      return std::string("griddepcontrol.wait before the access") +
             (state_.host.follows_early_launch(std::max(later.work, hit.earlier.work))
                  ? ", or, in the grid before, griddepcontrol.launch_dependents after griddepcontrol.wait"
                  : "");
    case Lack::kReadOnly: return "ld.global without .nc in its place, or a grid of its own for the write";
    case Lack::kStartsTooSoon:
      return "ld.global without .nc in its place, or a launch that starts when the grid that writes has ended";
    case Lack::kHost: return "the same stream, an event, or a synchronisation of the host";
  }
  return "";
}

Finding RaceChecker::finding_of(const Hit& hit) const {
  const Touch& later = hit.later;
  const Region& region = hit.region;
  Finding f;
  f.rule = &rule(hit.verdict.rule);
  const bool tensor = region.memory == Memory::kTensor;
  const std::string who = name(later, state_.host, tensor);
  const std::string other = name(hit.earlier, state_.host, tensor);
  const std::string writer = (hit.earlier.operation != nullptr ? "a " : "") + other;  // a bulk or TMA store
  const std::string where = place(region, hit.from, hit.to);
  if (hit.verdict.lack == Lack::kNothing) {
    f.summary = who + " touches " + where + " after that CTA has left";
  } else if (hit.verdict.lack == Lack::kStart) {
    f.summary = who + " touches " + where + ", which need not have started";
  } else if (hit.verdict.at_exit) {
    f.summary =
        "the CTA leaves while " + other + " may still " + (hit.earlier.write ? "write " : "read ") + where;
  } else if (hit.verdict.lack == Lack::kSameProxyOnly) {
    f.summary = who + " overwrites " + where + " after " + other +
                " of another CTA has read it, ordered by an mbarrier alone";
    f.has_earlier = true;
  } else if (hit.verdict.lack == Lack::kReadOnly) {
    f.summary = who + (later.write ? " overwrites " : " reads ") + where + " that " + writer +
                " of its own grid " + (later.write ? "read" : "wrote");
    f.has_earlier = true;
  } else if (hit.verdict.lack == Lack::kStartsTooSoon) {
    f.summary = who + " reads " + where + " that " + writer +
                " wrote in a grid which need not have ended when this one started";
    f.has_earlier = true;
  } else {
    const bool pending = hit.earlier.operation != nullptr && hit.verdict.lack == Lack::kCompletion;
    f.summary = who + (later.write ? " overwrites " : " reads ") + where +
                (pending ? " while " + other + " may still " : " not ordered after " + other + " that ") +
                (pending ? (hit.earlier.write ? "write it" : "read it")
                         : (hit.earlier.write ? "wrote it" : "read it"));
    f.has_earlier = true;
  }
  f.later = site_of(later);
  if (hit.verdict.at_exit) {
    f.later.thread.cta = region.cta;
    f.has_earlier = true;
  }
  f.earlier = site_of(hit.earlier);
  if (hit.earlier.operation != nullptr)
    for (const AsyncOperation::Signal& signal : hit.earlier.operation->signals)
      f.signals.push_back(signal.ref);
  f.has_region = true;
  f.region = region;
  f.region.write = later.write;
  if (tensor) {
    f.region.column = uint16_t(hit.from);
    f.region.columns = uint16_t(hit.to - hit.from);
    f.region.lane = uint16_t(hit.mask.any() ? hit.mask.first() : 0);
    f.region.lanes = uint16_t(hit.mask.any() ? hit.mask.last() + 1 - hit.mask.first() : 128);
  } else {
    f.region.address = hit.from;
    f.region.bytes = uint32_t(hit.to - hit.from);
  }
  f.missing = missing(hit, later, region, *hit.knowledge);
  const auto warp = state_.grid->ctas.find(f.later.thread.cta);
  if (!later.host && warp != state_.grid->ctas.end() && f.later.thread.warp < warp->second.warps.size() &&
      warp->second.warps[f.later.thread.warp] != nullptr) {
    const LastWait& last = warp->second.warps[f.later.thread.warp]->waited[f.later.thread.lane];
    if (last.any) {
      f.has_mbarrier = true;
      f.mbarrier = last.barrier;
      f.notes.push_back("the later thread last waited for " + place(last.barrier) +
                        (last.phase + 1 == 0 ? std::string(" before its first phase")
                                             : " phase " + std::to_string(last.phase)));
    } else {
      f.notes.push_back("the later thread has not waited for any mbarrier");
    }
  }
  return f;
}

// Hits of one event that break the same rule are one finding, which names all earlier parties, the last of
// them first.
void RaceChecker::report_hits() {
  if (hits_.size() > 1)
    std::stable_sort(hits_.begin(), hits_.end(),
                     [](const Hit& a, const Hit& b) { return a.earlier.time > b.earlier.time; });
  std::vector<bool> told(hits_.size());
  for (size_t i = 0; i < hits_.size(); ++i) {
    const Hit& first = hits_[i];
    const Rule* broken = &rule(first.verdict.rule);
    if (told[i] || reported_.contains({broken, first.earlier.inst, first.later.inst})) continue;
    Finding finding = finding_of(first);
    struct Other {
      std::string name;
      const Hit* last;
      uint64_t from, to;
      size_t count;
    };
    std::vector<Other> others;
    for (size_t j = i + 1; j < hits_.size(); ++j) {
      const Hit& other = hits_[j];
      if (other.verdict.rule != first.verdict.rule || other.later.inst != first.later.inst) continue;
      told[j] = true;
      if (other.earlier.inst == first.earlier.inst ||
          !reported_.insert({broken, other.earlier.inst, other.later.inst}).second || !finding.has_earlier)
        continue;
      const std::string what = name(other.earlier, state_.host, other.region.memory == Memory::kTensor);
      const auto alike = std::find_if(others.begin(), others.end(), [&](const Other& o) {
        return o.name == what && o.last->region.memory == other.region.memory &&
               o.last->region.cta == other.region.cta &&
               at_one_place(o.last->earlier.inst, other.earlier.inst);
      });
      if (alike == others.end()) {
        others.push_back({what, &other, other.from, other.to, 1});
        continue;
      }
      alike->from = std::min(alike->from, other.from);
      alike->to = std::max(alike->to, other.to);
      ++alike->count;
    }
    for (const Other& o : others) {
      const std::string where = place(o.last->region, o.from, o.to);
      finding.others.emplace_back(o.count == 1 ? o.name + " of " + where
                                               : o.name + " within " + where + ", the last of " +
                                                     std::to_string(o.count) + " of one source line",
                                  site_of(o.last->earlier));
    }
    report(std::move(finding), first.earlier.inst, first.later.inst);
  }
  hits_.clear();
  alike_.clear();
}

void RaceChecker::report(Finding finding, const Inst* earlier, const Inst* later) {
  if (finding.rule->severity == Severity::kAdvice) earlier = later = nullptr;  // one place will do
  if (reported_.size() >= kMost || !reported_.insert({finding.rule, earlier, later}).second) return;
  sink_(std::move(finding));
}

}  // namespace sim
