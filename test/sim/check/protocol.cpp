// protocol.cpp -- passes the events on. Checks of what an operation reads come before checks of what it
// writes, and checks of operands before the changes of state that they cause.
#include "sim/check/protocol.h"

#include <cstring>

#include "sim/decode/program.h"
#include "sim/exec/occupancy.h"

namespace sim {

ProtocolChecker::Protocols::Protocols(const FindingSink& sink, const Clocks* clocks)
    : mbarriers(sink, clocks),
      image(sink, mbarriers),
      descriptors(sink, image),
      tmem(sink, image),
      collector(sink, image),
      threads(sink),
      deadlock(sink, mbarriers) {}

ProtocolChecker::ProtocolChecker(FindingSink sink, const Clocks* clocks)
    : sink_(std::move(sink)),
      of_grid_([this, clocks] { return std::make_unique<Protocols>(sink_, clocks); }) {}

void ProtocolChecker::start(const GridStart& grid) {
  of_grid_.start(grid.work);
  of_grid_->mbarriers.start();
  of_grid_->image.start();
  of_grid_->descriptors.start();
  of_grid_->tmem.start();
  of_grid_->collector.start();
  const Dim3 block = grid.config != nullptr ? grid.config->block : Dim3{};
  const int64_t warps = (block.x * block.y * block.z + 31) / 32;
  const int registers = grid.kernel != nullptr ? registers_at_launch(grid.machine, grid.kernel->info) : 0;
  of_grid_->threads.start(registers != 0 ? registers * 32 * warps : grid.machine.registers_per_sm);
  of_grid_->deadlock.start(block.x * block.y * block.z);
}

bool ProtocolChecker::explain(const char* fault) {
  if (std::strncmp(fault, "deadlock", 8) != 0 && std::strncmp(fault, "livelock", 8) != 0)
    return of_grid_->mbarriers.explain(fault);
  of_grid_->deadlock.explain();
  return true;
}

void ProtocolChecker::finish(const char* fault) {
  explained_ = fault != nullptr && explain(fault);
  of_grid_->image.finish(fault);
  of_grid_.finish();
}

void ProtocolChecker::outlived(FaultKind, const std::string& text) { explained_ = explain(text.c_str()); }

void ProtocolChecker::accesses(const std::vector<Access>& accesses) { of_grid_->image.accesses(accesses); }

void ProtocolChecker::issue(const AsyncIssue& issue) {
  of_grid_->descriptors.issue(issue);
  of_grid_->tmem.issue(issue);
  of_grid_->collector.issue(issue);
  of_grid_->image.issue(issue);
  of_grid_->mbarriers.issue(issue);
  of_grid_->threads.issue(issue);
}

void ProtocolChecker::sync(const SyncEvent& event) {
  using Kind = SyncEvent::Kind;
  of_grid_->deadlock.sync(event);
  of_grid_->tmem.sync(event);
  of_grid_->collector.sync(event);
  of_grid_->threads.sync(event);
  if (event.kind == Kind::kCtaExit) of_grid_->image.cta_exit(event.thread.cta);
  of_grid_->mbarriers.sync(event);
}

}  // namespace sim
