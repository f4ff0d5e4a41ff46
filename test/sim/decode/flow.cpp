// flow.cpp -- where diverged lanes meet again: the immediate post-dominator of every branch, over
// instructions of one function. Paths that never leave normally (trap, an endless loop) do not count: a
// failed assertion must not keep the lanes around it apart.
#include <algorithm>

#include "sim/decode/opcodes.h"

namespace sim {
namespace {

// Flow is the control-flow graph of instructions [first, last) with a virtual exit node `last`.
struct Flow {
  uint32_t first, last;
  std::vector<std::vector<uint32_t>> next, previous;

  Flow(const std::vector<Inst>& code, uint32_t first_index, uint32_t last_index)
      : first(first_index), last(last_index), next(last_index - first_index + 1), previous(next.size()) {
    for (uint32_t pc = first; pc < last; ++pc) {
      const Inst& inst = code[pc];
      if (is_branch(inst))
        for (uint32_t target : inst.targets) edge(pc, target);
      if (leaves_normally(inst)) edge(pc, last);
      const bool falls = inst.guarded || (!is_branch(inst) && !ends_path(inst));
      if (falls && pc + 1 < last) edge(pc, pc + 1);
    }
  }
  void edge(uint32_t from, uint32_t to) {
    next[from - first].push_back(to - first);
    previous[to - first].push_back(from - first);
  }
};

}  // namespace

// The iteration of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance Algorithm") on the reversed graph.
void find_rejoins(std::vector<Inst>& code, uint32_t first, uint32_t last) {
  const Flow flow(code, first, last);
  const uint32_t exit = last - first;

  std::vector<uint32_t> order;                     // reverse graph, postorder from the exit
  std::vector<uint32_t> rank(exit + 1, kNowhere);  // position in `order`; kNowhere: cannot reach the exit
  std::vector<std::pair<uint32_t, size_t>> stack{{exit, 0}};
  std::vector<bool> seen(exit + 1, false);
  seen[exit] = true;
  while (!stack.empty()) {
    auto& [node, child] = stack.back();
    if (child < flow.previous[node].size()) {
      const uint32_t to = flow.previous[node][child++];
      if (!seen[to]) {
        seen[to] = true;
        stack.push_back({to, 0});
      }
    } else {
      rank[node] = uint32_t(order.size());
      order.push_back(node);
      stack.pop_back();
    }
  }

  std::vector<uint32_t> dominator(exit + 1, kNowhere);
  dominator[exit] = exit;
  const auto meet = [&](uint32_t a, uint32_t b) {
    while (a != b) {
      while (rank[a] < rank[b]) a = dominator[a];
      while (rank[b] < rank[a]) b = dominator[b];
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = order.size(); i-- > 0;) {
      const uint32_t node = order[i];
      if (node == exit) continue;
      uint32_t found = kNowhere;
      for (uint32_t to : flow.next[node])
        if (rank[to] != kNowhere && dominator[to] != kNowhere)
          found = found == kNowhere ? to : meet(found, to);
      if (found != dominator[node]) {
        dominator[node] = found;
        changed = true;
      }
    }
  }
  for (uint32_t pc = first; pc < last; ++pc) {
    if (!is_branch(code[pc])) continue;
    const uint32_t at = dominator[pc - first];
    code[pc].rejoin = at == kNowhere || at == exit ? kNowhere : at + first;
  }
}

}  // namespace sim
