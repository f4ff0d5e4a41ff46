// trace.cpp -- see trace.h. The line of a thread has CTA, warp, lanes and PTX line, then the instruction, or
// `.` and the event.
#include "sim/judge/trace.h"

#include <cstdio>
#include <stdexcept>

#include "sim/decode/program.h"

namespace sim {

static const char* name(SyncEvent::Kind kind) {
  using K = SyncEvent::Kind;
  switch (kind) {
    case K::kMbarrierInit: return "mbarrier init";
    case K::kMbarrierInval: return "mbarrier inval";
    case K::kMbarrierArrive: return "mbarrier arrive";
    case K::kMbarrierArriveDrop: return "mbarrier arrive_drop";
    case K::kMbarrierExpectTx: return "mbarrier expect_tx";
    case K::kMbarrierCompleteTx: return "mbarrier complete_tx";
    case K::kMbarrierWait: return "mbarrier passed";
    case K::kMbarrierTest: return "mbarrier not yet";
    case K::kBarrierArrive: return "barrier arrive";
    case K::kBarrierLeave: return "barrier leave";
    case K::kWarpSync: return "warp sync";
    case K::kWarpMeet: return "warp meet";
    case K::kClusterArrive: return "cluster arrive";
    case K::kClusterWait: return "cluster wait";
    case K::kFence: return "fence";
    case K::kBulkCommit: return "bulk commit";
    case K::kBulkWait: return "bulk wait";
    case K::kCpAsyncCommit: return "cp.async commit";
    case K::kCpAsyncWait: return "cp.async wait";
    case K::kTmemWaitLd: return "tcgen05.wait::ld";
    case K::kTmemWaitSt: return "tcgen05.wait::st";
    case K::kTmemAlloc: return "tcgen05.alloc";
    case K::kTmemDealloc: return "tcgen05.dealloc";
    case K::kTmemAsk: return "tcgen05.alloc sleeps";
    case K::kTmemRelinquish: return "tcgen05.relinquish_alloc_permit";
    case K::kWgmmaFence: return "wgmma fence";
    case K::kWgmmaCommit: return "wgmma commit";
    case K::kWgmmaWait: return "wgmma wait";
    case K::kTmemUse: return "tcgen05.ld register used";
    case K::kGridWait: return "grid wait";
    case K::kGridLaunch: return "grid launch dependents";
    case K::kSetMaxRegisters: return "set max registers";
    case K::kExit: return "exit";
    case K::kCtaStart: return "CTA starts";
    case K::kCtaExit: return "CTA ends";
  }
  return "";
}

static bool on_mbarrier(SyncEvent::Kind kind) { return kind <= SyncEvent::Kind::kMbarrierTest; }

static const char* name(HostWork::Kind kind) {
  switch (kind) {
    case HostWork::Kind::kLaunch: return "launch";
    case HostWork::Kind::kCopy: return "copy";
    case HostWork::Kind::kSet: return "set";
    case HostWork::Kind::kHost: return "host";
  }
  return "";
}

Trace::Trace(const std::string& file) : out_(file) {
  if (!out_) throw std::runtime_error("trace file " + file + " cannot be written");
}

void Trace::line(const Thread& thread, uint32_t mask, const Inst* inst, const std::string& text) {
  char head[96];
  std::snprintf(head, sizeof head, "%llu %u %08x %u ", static_cast<unsigned long long>(thread.cta),
                thread.warp, mask, inst != nullptr ? inst->statement->site.ptx_line : 0u);
  out_ << head << text << '\n';
}

void Trace::host(const HostWork& work) {
  out_ << "host " << work.id << ' ' << name(work.kind) << ' ' << work.what << " after";
  for (const uint64_t id : work.after) out_ << ' ' << id;
  out_ << (work.programmatic ? " programmatic\n" : "\n");
}

void Trace::start(const GridStart& grid) {
  out_ << "grid " << grid.work << ' ' << (grid.kernel != nullptr ? grid.kernel->info.name : "") << '\n';
}

void Trace::resume(uint64_t work) { out_ << "resume " << work << '\n'; }

void Trace::finish(const char* fault) {
  out_ << (fault == nullptr ? "end" : "fault") << '\n';
  out_.flush();
}

void Trace::instruction(const Thread& thread, uint32_t mask, const Inst& inst) {
  line(thread, mask, &inst, inst.statement->text);
}

void Trace::issue(const AsyncIssue& issue) {
  line(issue.thread, issue.mask, issue.inst,
       ". issue " + std::to_string(issue.id) + " " + name_of(issue.kind));
}

void Trace::land(const AsyncLanding& landing) {
  const char* step = landing.step == AsyncLanding::Step::kSourcesRead ? " sources read"
                     : landing.step == AsyncLanding::Step::kPiece     ? " piece"
                                                                      : " complete";
  out_ << "async " << landing.id << step << '\n';
}

void Trace::sync(const SyncEvent& event) {
  std::string text = std::string(". ") + name(event.kind);
  if (on_mbarrier(event.kind))
    text += " CTA " + std::to_string(event.mbarrier.cta) + " offset " + std::to_string(event.mbarrier.offset);
  text += " object " + std::to_string(event.object) + " phase " + std::to_string(event.phase) + " amount " +
          std::to_string(event.amount) + " bytes " + std::to_string(event.bytes);
  if (event.async_id != 0) text += " operation " + std::to_string(event.async_id);
  line(event.thread, event.mask, event.inst, text);
}

}  // namespace sim
