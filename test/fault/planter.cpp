// planter.cpp -- see planter.h.
#include "fault/planter.h"

#include <algorithm>
#include <stdexcept>

namespace fault {

size_t Planter::at(const std::string& opcode, const std::string& path, size_t n) const {
  const std::vector<size_t> found = places_.find(opcode, path);
  if (n >= found.size())
    throw std::runtime_error("no " + opcode + " @ " + path + " #" + std::to_string(n) + " in " + instance_ +
                             " to plant a bug at");
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
                instance_,
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

Planter::Edit Planter::no_wait(size_t wait) {
  return [wait](Function& f) {
    f.body[wait] = make(f.body[wait], "mov.pred", {f.body[wait].operands[0], integer(-1)});
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

std::vector<Planted> planted_bugs(const Function& kernel, const std::string& instance) {
  const Places places(kernel);
  const bool split = !places.find("mapa", "send_partial_sums").empty();
  if (split) return planted_in_split(kernel, instance);
  const bool pair = !places.find("barrier.cluster.arrive", "prologue").empty();
  return pair ? planted_in_pair(kernel, instance) : planted_in_cta(kernel, instance);
}

}  // namespace fault
