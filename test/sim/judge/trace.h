// trace.h -- a run as text, one line for every instruction and every event of synchronisation, without
// addresses of the host: two runs with the same schedule give the same file, and a diff shows where two
// schedules part.
#pragma once

#include <fstream>
#include <string>

#include "sim/exec/observer.h"

namespace sim {

class Trace : public Observer {
 public:
  explicit Trace(const std::string& file);  // std::runtime_error when it cannot be written

  void host(const HostWork& work) override;
  void start(const GridStart& grid) override;
  void resume(uint64_t work) override;
  void finish(const char* fault) override;
  void instruction(const Thread& thread, uint32_t mask, const Inst& inst) override;
  void issue(const AsyncIssue& issue) override;
  void land(const AsyncLanding& landing) override;
  void sync(const SyncEvent& event) override;

 private:
  void line(const Thread& thread, uint32_t mask, const Inst* inst, const std::string& text);
  std::ofstream out_;
};

}  // namespace sim
