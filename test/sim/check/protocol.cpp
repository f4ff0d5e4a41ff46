// protocol.cpp -- passes the events on. What an operation reads is looked at before what it writes, and
// operands before the state they change.
#include "sim/check/protocol.h"

#include <cstring>

#include "sim/check/protocol_text.h"
#include "sim/decode/program.h"
#include "sim/exec/occupancy.h"

namespace sim {

ProtocolChecker::ProtocolChecker(FindingSink sink, const Clocks* clocks)
    : sink_(std::move(sink)),
      mbarriers_(sink_, clocks),
      image_(sink_, mbarriers_),
      descriptors_(sink_, image_),
      tmem_(sink_, image_),
      collector_(sink_, image_),
      threads_(sink_),
      deadlock_(sink_, mbarriers_) {}

void ProtocolChecker::start(const GridStart& grid) {
  mbarriers_.start();
  image_.start();
  descriptors_.start();
  tmem_.start();
  collector_.start();
  const Dim3 block = grid.config != nullptr ? grid.config->block : Dim3{};
  const int64_t warps = (block.x * block.y * block.z + 31) / 32;
  const int registers = grid.kernel != nullptr ? registers_at_launch(grid.machine, grid.kernel->info) : 0;
  threads_.start(registers != 0 ? registers * 32 * warps : grid.machine.registers_per_sm);
  deadlock_.start(block.x * block.y * block.z);
}

void ProtocolChecker::finish(const char* fault) {
  if (fault != nullptr &&
      (std::strncmp(fault, "deadlock", 8) == 0 || std::strncmp(fault, "livelock", 8) == 0))
    deadlock_.explain();
  mbarriers_.finish(fault);
  image_.finish(fault);
}

void ProtocolChecker::remark(const Remark& remark) {
  Finding out = protocol::finding(remark.rule, remark.text, {remark.thread, remark.mask, 0, remark.inst});
  out.missing = remark.missing;
  sink_(std::move(out));
}

void ProtocolChecker::access(const Access& access) { image_.access(access); }

void ProtocolChecker::issue(const AsyncIssue& issue) {
  descriptors_.issue(issue);
  tmem_.issue(issue);
  collector_.issue(issue);
  image_.issue(issue);
  mbarriers_.issue(issue);
  threads_.issue(issue);
}

void ProtocolChecker::sync(const SyncEvent& event) {
  using Kind = SyncEvent::Kind;
  deadlock_.sync(event);
  tmem_.sync(event);
  collector_.sync(event);
  threads_.sync(event);
  if (event.kind == Kind::kCtaExit) image_.cta_exit(event.thread.cta);
  mbarriers_.sync(event);
}

}  // namespace sim
