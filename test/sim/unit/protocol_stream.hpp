// protocol_stream.hpp -- streams of machine events made by hand, for tests of the checkers: each call is one
// event, instructions are texts.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "sim/check/protocol.h"
#include "sim/decode/program.h"
#include "sim/engine/tensor_map.h"

namespace sim_test {

using sim::AsyncIssue;
using sim::MbarrierRef;
using sim::Region;
using sim::SyncEvent;
using sim::Thread;

// CTA 0 has begun; others begin by cta().
class Stream {
 public:
  explicit Stream(uint32_t threads = 64, const sim::Clocks* clocks = nullptr)
      : checker([this](sim::Finding f) { findings.push_back(std::move(f)); }, clocks) {
    config_.block.x = threads;
    sim::GridStart grid;
    grid.config = &config_;
    checker.start(grid);
    cta(0);
  }

  std::vector<sim::Finding> findings;
  sim::ProtocolChecker checker;

  std::string rules() const {  // of the findings, in order
    std::string out;
    for (const auto& f : findings) out += (out.empty() ? "" : " ") + std::string(f.rule->id);
    return out;
  }

  // Returns an instruction by its text; the first call of a text gives it the next PTX line.
  const sim::Inst* at(const std::string& text) {
    if (text.empty()) return nullptr;
    const auto found = code_.find(text);
    if (found != code_.end()) return found->second;
    sim::ptx::Statement& statement = statements_.emplace_back();
    statement.text = text;
    std::istringstream words(text.substr(0, text.find(' ')));
    std::getline(words, statement.opcode, '.');
    for (std::string word; std::getline(words, word, '.');) statement.qualifiers.push_back(word);
    statement.site.ptx_line = uint32_t(statements_.size());
    sim::Inst& inst = insts_.emplace_back();
    inst.statement = &statement;
    return code_[text] = &inst;
  }

  SyncEvent event(SyncEvent::Kind kind, Thread thread, const std::string& text = "") {
    SyncEvent e;
    e.kind = kind;
    e.thread = thread;
    e.mask = 1u << thread.lane;
    e.inst = at(text);
    return e;
  }
  void send(const SyncEvent& e) { checker.sync(e); }

  void cta(uint64_t index, uint64_t cluster = 0, uint64_t rank = 0) {
    SyncEvent e = event(SyncEvent::Kind::kCtaStart, {index, 0, 0});
    e.amount = int64_t(cluster);
    e.phase = rank;
    send(e);
  }
  void cta_exit(uint64_t index) { send(event(SyncEvent::Kind::kCtaExit, {index, 0, 0})); }
  void exit(Thread t, uint32_t mask) {
    SyncEvent e = event(SyncEvent::Kind::kExit, t, "exit");
    e.mask = mask;
    send(e);
  }
  void finish(const char* fault = nullptr) { checker.finish(fault); }

  void mbarrier(SyncEvent::Kind kind, MbarrierRef b, Thread t, int64_t amount, int64_t bytes,
                const std::string& text, uint64_t async_id = 0) {
    SyncEvent e = event(kind, t, text);
    e.mbarrier = b;
    e.amount = amount;
    e.bytes = bytes;
    e.async_id = async_id;
    send(e);
  }
  void init(MbarrierRef b, int64_t count) {
    mbarrier(SyncEvent::Kind::kMbarrierInit, b, {b.cta, 0, 0}, count, 0, "mbarrier.init");
  }
  void arrive(MbarrierRef b, Thread t, int64_t bytes = 0, const std::string& text = "mbarrier.arrive") {
    mbarrier(SyncEvent::Kind::kMbarrierArrive, b, t, 1, bytes, text);
  }
  void wait(MbarrierRef b, Thread t, uint32_t parity, const std::string& text = "mbarrier.try_wait") {
    SyncEvent e = event(SyncEvent::Kind::kMbarrierWait, t, text);
    e.mbarrier = b;
    e.parity = parity;
    e.has_parity = true;
    send(e);
  }
  void sleep(MbarrierRef b, Thread t, uint32_t parity, const std::string& text = "mbarrier.try_wait") {
    SyncEvent e = event(SyncEvent::Kind::kMbarrierTest, t, text);
    e.mbarrier = b;
    e.parity = parity;
    e.has_parity = true;
    send(e);
  }

  static Region shared(uint64_t cta, uint64_t address, uint32_t bytes, bool write = false) {
    Region r;
    r.memory = sim::Memory::kShared;
    r.write = write;
    r.cta = cta;
    r.address = address;
    r.bytes = bytes;
    return r;
  }
  static Region tensor(uint64_t cta, uint16_t column, uint16_t columns, bool write = false) {
    Region r;
    r.memory = sim::Memory::kTensor;
    r.write = write;
    r.cta = cta;
    r.lanes = 128;
    r.column = column;
    r.columns = columns;
    return r;
  }

  AsyncIssue operation(AsyncIssue::Kind kind, Thread t, const std::string& text) {
    AsyncIssue issue;
    issue.kind = kind;
    issue.id = ++last_id_;
    issue.thread = t;
    issue.mask = 1u << t.lane;
    issue.inst = at(text);
    return issue;
  }
  // Issues a TMA load of `bytes` to `address` of the barrier's CTA.
  AsyncIssue load(MbarrierRef b, Thread t, uint64_t address, uint32_t bytes,
                  const std::string& text = "cp.async.bulk.tensor") {
    AsyncIssue issue = operation(AsyncIssue::Kind::kTensorLoad, t, text);
    issue.writes = {shared(b.cta, address, bytes, true)};
    issue.barriers = {{b, bytes}};
    return issue;
  }
  uint64_t send(const AsyncIssue& issue) {
    checker.issue(issue);
    return issue.id;
  }
  void land(MbarrierRef b, uint64_t id, int64_t bytes) {
    mbarrier(SyncEvent::Kind::kMbarrierCompleteTx, b, {b.cta, 0, 0}, 0, bytes, "", id);
  }
  // Adds a commit by `t` that arrives at once.
  void commit(MbarrierRef b, Thread t, const std::string& text = "tcgen05.commit") {
    AsyncIssue issue = operation(AsyncIssue::Kind::kCommit, t, text);
    issue.barriers = {{b, 0}};
    send(issue);
    mbarrier(SyncEvent::Kind::kMbarrierArrive, b, t, 1, 0, text, issue.id);
  }
  void read(Thread t, const Region& region, const std::string& text = "ld.shared") {
    sim::Access a;
    a.thread = t;
    a.mask = 1u << t.lane;
    a.region = region;
    a.inst = at(text);
    checker.accesses({a});
  }

 private:
  sim::LaunchConfig config_;
  std::list<sim::ptx::Statement> statements_;
  std::list<sim::Inst> insts_;
  std::map<std::string, const sim::Inst*> code_;
  uint64_t last_id_ = 0;
};

}  // namespace sim_test
