// planter.cpp -- see planter.h.
#include "mutation/planter.h"

#include <algorithm>
#include <stdexcept>

namespace mutation {

size_t Planter::at(const std::string& opcode, const std::string& path, size_t n) const {
  const std::vector<size_t> found = places_.find(opcode, path);
  if (n >= found.size())
    throw std::runtime_error("no " + opcode + " @ " + path + " #" + std::to_string(n) + " in " +
                             bench_.subject().name + " to plant a bug at");
  return found[n];
}

std::vector<size_t> Planter::all_at_ring(const std::string& opcode, const std::string& path,
                                         const std::string& ring) const {
  std::vector<size_t> found = places_.find(opcode, path);
  std::erase_if(found, [&](size_t i) { return !bench_.rings_of(statement(i).site.ptx_line).contains(ring); });
  return found;
}

size_t Planter::at_ring(const std::string& opcode, const std::string& path, const std::string& ring,
                        size_t n) const {
  const std::vector<size_t> found = all_at_ring(opcode, path, ring);
  if (n >= found.size())
    throw std::runtime_error("no " + opcode + " @ " + path + " #" + std::to_string(n) + " on " + ring +
                             " in " + bench_.subject().name + " to plant a bug at");
  return found[n];
}

size_t Planter::writer(uint32_t reg, const std::string& opcode) const {
  for (size_t i = 0; i < kernel_.body.size(); ++i) {
    const auto results = writes(kernel_.body[i]);
    if (is(kernel_.body[i], opcode) && std::find(results.begin(), results.end(), reg) != results.end())
      return i;
  }
  throw std::runtime_error("no " + opcode + " computes " + kernel_.registers.at(reg).name);
}

void Planter::plant(int number, const std::string& bug, size_t at, Edit edit, Expectation expected) {
  const Statement& s = statement(at);
  Mutant mutant{"planted " + std::to_string(number) + ": " + bug,
                bench_.subject(),
                bug,
                "planted",
                spelling(s),
                path_of(s),
                s.site.ptx_line,
                s.site.source,
                std::move(edit)};
  out_.push_back({number, bug, {}, std::move(mutant), std::move(expected)});
}

void Planter::absent(int number, const std::string& bug, const std::string& why) {
  out_.push_back({number, bug, why, {}, {}});
}

Planter::Edit Planter::without_barrier(std::vector<size_t> arrives) {
  return [arrives = std::move(arrives)](Function& f) {
    for (size_t n = arrives.size(); n-- > 0;) {
      erase(f, arrives[n]);
      erase(f, arrives[n]);
    }
  };
}

Planter::Edit Planter::count_changed(const std::string& ring, int64_t delta) const {
  return [inits = all_at_ring("mbarrier.init", "prologue", ring), delta](Function& f) {
    for (size_t n = inits.size(); n-- > 0;) add_to_operand(f, inits[n], 1, delta);
  };
}

Planter::Edit Planter::no_wait(size_t wait) {
  return [wait](Function& f) {
    f.body[wait] = make(f.body[wait], "mov.pred", {f.body[wait].operands[0], integer(-1)});
  };
}

Planter::Edit Planter::no_waits(std::vector<size_t> waits) {
  return [waits = std::move(waits)](Function& f) {
    for (size_t i : waits) no_wait(i)(f);
  };
}

Planter::Edit Planter::erased(std::vector<size_t> statements) {
  return [statements = std::move(statements)](Function& f) {
    for (size_t n = statements.size(); n-- > 0;) erase(f, statements[n]);
  };
}

Planter::Edit Planter::without_bytes(size_t arrive) {
  return [arrive](Function& f) {
    drop_qualifier(f.body[arrive], "expect_tx");
    f.body[arrive].operands.pop_back();
  };
}

Planter::Edit Planter::arrival_instead(size_t commit) {
  return [commit](Function& f) {
    f.body[commit] = make(f.body[commit], "mbarrier.arrive.release.cta.shared::cta.b64",
                          {Operand{}, f.body[commit].operands[0]});
  };
}

std::vector<Planted> planted_bugs(const Bench& bench) {
  const Subject& subject = bench.subject();
  const dualgemm::Plan& plan = subject.plan();
  if (subject.is_pass) return planted_in_pass(bench);
  if (subject.is_sm90()) return planted_in_sm90(bench);
  if (subject.instance->epilogue.general) return planted_in_general(bench);
  if (plan.tile.grouped) return planted_in_grouped(bench);
  if (plan.tile.split_k > 1) return planted_in_split(bench);
  if (plan.tmem.overlapped()) return planted_in_overlapped(bench);
  return plan.mma.cta_group == 2 ? planted_in_pair(bench) : planted_in_cta(bench);
}

}  // namespace mutation
