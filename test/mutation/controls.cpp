// controls.cpp -- changes that a correct kernel survives: more order than needed, the same order written
// otherwise, hints removed. A simulator that complains about one of them is noisy.
#include <algorithm>

#include "mutation/planted.h"

namespace mutation {
namespace {

using sim::ptx::Type;

// Applies `change` to every statement with this spelling, last to first, so that it may insert and erase.
std::function<void(Function&)> everywhere(const std::string& opcode,
                                          std::function<void(Function&, size_t)> change) {
  return [opcode, change](Function& f) {
    for (size_t i = f.body.size(); i-- > 0;)
      if (is(f.body[i], opcode)) change(f, i);
  };
}

std::function<void(Function&)> before_every(const std::string& opcode, const std::string& extra) {
  return everywhere(opcode, [extra](Function& f, size_t i) { insert(f, i, make(f.body[i], extra, {})); });
}

// Inserts after the loop of a wait, where it has succeeded: its selp, setp and branch follow.
std::function<void(Function&)> after_every_wait(const std::string& extra) {
  return everywhere("mbarrier.try_wait", [extra](Function& f, size_t i) {
    while (!is(f.body[i], "bra")) ++i;
    insert(f, i + 1, make(f.body[i], extra, {}));
    f.body[i + 1].guarded = false;
  });
}

// Gives it cluster scope, unless it has that already.
void widen(Function& f, size_t i) {
  const auto& q = f.body[i].qualifiers;
  if (std::find(q.begin(), q.end(), "cta") != q.end()) replace_qualifier(f.body[i], "cta", "cluster");
}

std::function<void(Function&)> exchange_all(const std::string& opcode) {
  return [opcode](Function& f) {
    std::vector<size_t> found;
    for (size_t i = 0; i < f.body.size(); ++i)
      if (is(f.body[i], opcode)) found.push_back(i);
    for (size_t n = 0; n + 1 < found.size(); n += 2) {
      const auto written = writes(f.body[found[n]]);
      if (written.empty()) move_behind(f, found[n], found[n + 1]);
    }
  };
}

}  // namespace

std::vector<Mutant> controls(const Function& kernel, const Subject& subject) {
  std::vector<Mutant> out;
  const auto add = [&](const std::string& what, std::function<void(Function&)> edit) {
    out.push_back({"control: " + what, subject, what, "control", {}, {}, 0, {}, std::move(edit)});
  };
  add("unchanged", [](Function&) {});
  add("fence.proxy.async before every TMA", before_every("cp.async.bulk.tensor", "fence.proxy.async"));
  add("fence.acq_rel.gpu before every arrival", before_every("mbarrier.arrive", "fence.acq_rel.gpu"));
  add("tcgen05.fence::before_thread_sync before every commit",
      before_every("tcgen05.commit", "tcgen05.fence::before_thread_sync"));
  const bool blackwell = std::any_of(kernel.body.begin(), kernel.body.end(),
                                     [](const Statement& statement) { return is(statement, "tcgen05"); });
  if (blackwell)
    add("tcgen05.fence::after_thread_sync after every wait",
        after_every_wait("tcgen05.fence::after_thread_sync"));
  add("wgmma.fence before every wgmma", before_every("wgmma.mma_async", "wgmma.fence.sync.aligned"));
  add("fence.proxy.async after every wait", after_every_wait("fence.proxy.async"));
  add("cluster scope on every arrival", everywhere("mbarrier.arrive", widen));
  add("cluster scope on every wait", everywhere("mbarrier.try_wait", widen));
  add("barriers initialised in another order", exchange_all("mbarrier.init"));
  add("no prefetch of the tensor maps",
      everywhere("prefetch.tensormap", [](Function& f, size_t i) { erase(f, i); }));
  add("the first two copies of each load role change places", [](Function& f) {
    bool first = false;  // of a role: an announcement of bytes came before
    for (size_t i = 0; i < f.body.size(); ++i) {
      if (is(f.body[i], "mbarrier.arrive.expect_tx")) first = true;
      if (!first || !is(f.body[i], "cp.async.bulk.tensor")) continue;
      first = false;
      size_t second = i + 1;
      while (!is(f.body[second], "cp.async.bulk.tensor") && !is(f.body[second], "bra") &&
             !is(f.body[second], "bar.warp.sync"))
        ++second;
      if (is(f.body[second], "cp.async.bulk.tensor")) move_behind(f, i, second);
    }
  });
  add("lane 17 instead of elect.sync", everywhere("elect", [](Function& f, size_t i) {
        Operand lane;
        lane.kind = Operand::Kind::kSpecial;
        lane.name = "%laneid";
        const Operand copy = of_register(fresh_register(f, Type::kB32));
        f.body[i] = make(f.body[i], "setp.eq.u32", {f.body[i].operands[0].items.at(1), copy, integer(17)});
        insert(f, i, make(f.body[i], "mov.u32", {copy, lane}));
      }));
  add("expect_tx in two parts", everywhere("mbarrier.arrive.expect_tx", [](Function& f, size_t i) {
        // Of the sums that the prologue announces a CTA may receive none.
        if (path_of(f.body[i]).starts_with("prologue")) return;
        const Operand barrier = f.body[i].operands[1];
        add_to_operand(f, i, 2, -1024);
        insert(f, i,
               make(f.body[i], "mbarrier.expect_tx.relaxed.cta.shared::cta.b64", {barrier, integer(1024)}));
      }));
  add("dependents are not launched early",
      everywhere("griddepcontrol.launch_dependents", [](Function& f, size_t i) { erase(f, i); }));
  add("every bar.warp.sync twice",
      everywhere("bar.warp.sync", [](Function& f, size_t i) { insert(f, i, Statement(f.body[i])); }));
  // What this kernel has no instruction for would be the first one again.
  const auto idle = [&](const Mutant& control) {
    Function edited = kernel;
    control.edit(edited);
    return same_statements(edited, kernel);
  };
  out.erase(std::remove_if(out.begin() + 1, out.end(), idle), out.end());
  return out;
}

}  // namespace mutation
