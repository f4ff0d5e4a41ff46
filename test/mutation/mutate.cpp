// mutate.cpp -- see mutate.h.
#include "mutation/mutate.h"

#include <algorithm>
#include <set>

#include "mutation/tables.h"

namespace mutation {
namespace {

// Says whether other threads can tell the order of the statement.
bool is_visible(const Statement& s) {
  return is_synchronisation(s) || is_tma(s) || is_global_store(s) ||
         begins_with_one_of(s, {"tcgen05", "wgmma", "ld.shared", "ld.shared::cta", "st.async", "stmatrix",
                                "ld.global", "red"});
}

// Returns the instruction class under which a statement is counted.
std::string group_of(const Statement& s) {
  static const char* const kGroups[] = {
      "mbarrier.init",
      "mbarrier.arrive",
      "mbarrier.try_wait",
      "fence.mbarrier_init",
      "fence.proxy",
      "tcgen05.wait::ld",
      "tcgen05.fence::before_thread_sync",
      "tcgen05.fence::after_thread_sync",
      "tcgen05.commit",
      "tcgen05.alloc",
      "tcgen05.dealloc",
      "tcgen05.relinquish_alloc_permit",
      "tcgen05.mma",
      "tcgen05.cp",
      "tcgen05.ld",
      "wgmma.fence",
      "wgmma.commit_group",
      "wgmma.wait_group",
      "wgmma.mma_async",
      "cp.async.bulk.tensor",
      "barrier.cluster.arrive",
      "barrier.cluster.wait",
      "griddepcontrol.wait",
      "griddepcontrol.launch_dependents",
      "cp.async.bulk.prefetch",
      "barrier.cta.sync",
      "barrier.cta.arrive",
      "barrier.cta.red",
      "ld.acquire",
      "atom",
      "mapa",
      "st.async",
      "ld.shared::cta",
      "stmatrix",
      "bar.warp.sync",
      "bar.sync",
      "elect.sync",
      "prefetch.tensormap",
      "st.global",
      "ld.shared",
      "shfl.sync",
      "redux.sync",
      "red",
      "st",
  };
  for (const char* group : kGroups)
    if (is(s, group)) return group;
  return "ring arithmetic";
}

// Makes the mutants of one function.
class Sweep {
 public:
  Sweep(const Function& function, const Subject& subject)
      : function_(function), subject_(subject), places_(function) {}

  std::vector<Mutant> run(Breadth breadth) {
    mark_ring_arithmetic();
    mark_copies();
    for (size_t i = 0; i < function_.body.size(); ++i) {
      if (copies_.contains(i)) continue;
      add(i, changes_of_synchronisation(function_, i));
      if (ring_.contains(i)) add(i, changes_of_ring_arithmetic(function_, i));
      if (breadth == Breadth::kAll) add(i, changes_of_operands(function_, i));
    }
    exchanges();
    return std::move(out_);
  }

 private:
  const Statement& at(size_t i) const { return function_.body[i]; }

  void add(size_t i, std::vector<Change> changes) {
    const Statement& s = at(i);
    for (Change& change : changes)
      out_.push_back({change.operation + " " + places_.name(i), subject_, change.operation, group_of(s),
                      spelling(s), path_of(s), s.site.ptx_line, s.site.source, std::move(change.edit)});
  }

  void exchanges();
  void exchange(size_t first, size_t second);
  bool is_joined(size_t first, size_t second) const;
  void mark_ring_arithmetic();
  void mark_copies();

  const Function& function_;
  const Subject& subject_;
  Places places_;
  std::set<size_t> ring_, copies_;
  std::vector<Mutant> out_;
};

// Marks, among the copies that unrolling made of one statement, those between the first and the last.
void Sweep::mark_copies() {
  std::map<std::string, std::vector<size_t>> same;
  for (size_t i = 0; i < function_.body.size(); ++i)
    same[spelling(at(i)) + " " + at(i).site.source].push_back(i);
  for (const auto& [source, copies] : same)
    for (size_t n = 1; n + 1 < copies.size(); ++n) copies_.insert(copies[n]);
}

// Marks the arithmetic that decides which barrier and which parity a wait names.
void Sweep::mark_ring_arithmetic() {
  std::map<uint32_t, std::vector<size_t>> definitions;
  for (size_t i = 0; i < function_.body.size(); ++i)
    for (uint32_t reg : writes(at(i))) definitions[reg].push_back(i);
  std::vector<uint32_t> open;
  std::set<uint32_t> seen;
  for (const Statement& s : function_.body)
    if (is(s, "mbarrier.try_wait"))
      for (uint32_t reg : reads(s)) open.push_back(reg);
  while (!open.empty()) {
    const uint32_t reg = open.back();
    open.pop_back();
    if (!seen.insert(reg).second) continue;
    for (size_t i : definitions[reg]) {
      ring_.insert(i);
      for (uint32_t read : reads(at(i))) open.push_back(read);
    }
  }
}

bool leaves(const Statement& s) { return (is(s, "bra") && !s.guarded) || is(s, "ret"); }

bool share(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](uint32_t reg) { return std::find(b.begin(), b.end(), reg) != b.end(); });
}

// Exchanges neighbours of which at least one synchronises.
void Sweep::exchanges() {
  size_t previous = function_.body.size();
  for (size_t i = 0; i < function_.body.size(); ++i) {
    if (leaves(at(i))) previous = function_.body.size();
    if (!is_visible(at(i))) continue;
    const bool either = previous < i && (is_synchronisation(at(previous)) || is_synchronisation(at(i)));
    const bool inits = either && is(at(previous), "mbarrier.init") && is(at(i), "mbarrier.init");
    // The order of inits is a control.
    if (either && !inits && !copies_.contains(previous)) exchange(previous, i);
    previous = i;
  }
}

// Says whether branches lead to a statement after `first`, up to `second`.
bool Sweep::is_joined(size_t first, size_t second) const {
  return std::any_of(function_.body.begin(), function_.body.end(), [&](const Statement& s) {
    if (!is(s, "bra")) return false;
    const size_t target = static_cast<size_t>(s.operands.at(0).value);
    return first < target && target <= second;
  });
}

void Sweep::exchange(size_t first, size_t second) {
  std::vector<uint32_t> written, used;
  bool branches = false;
  for (size_t i = first; i <= second; ++i) {
    const auto results = writes(at(i)), sources = reads(at(i));
    if (i != second) written.insert(written.end(), results.begin(), results.end());
    if (i != first) {
      used.insert(used.end(), sources.begin(), sources.end());
      used.insert(used.end(), results.begin(), results.end());
    }
    if (i != second) branches = branches || is(at(i), "bra");
  }
  const std::string operation = "exchange with the next " + group_of(at(second)) + ":";
  if (!share(reads(at(second)), written) && (writes(at(second)).empty() || !branches)) {
    add(first, {{operation, [first, second](Function& f) { move_before(f, second, first); }}});
  } else if (!branches && !is_joined(first, second) && !share(writes(at(first)), used) &&
             !share(reads(at(first)), written)) {
    add(first, {{operation, [first, second](Function& f) { move_behind(f, first, second); }}});
  }
}

std::vector<std::string> frames(const std::string& source) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin < source.size();) {
    size_t end = source.find(" <- ", begin);
    if (end == std::string::npos) end = source.size();
    out.push_back(source.substr(begin, end - begin));
    begin = end + 4;
  }
  return out;
}

// A file is named by its last folder. Those of the wrappers of instructions are the folder ptx and the
// toolkit's; all others belong to the kernel.
bool is_wrapper(const std::string& frame) {
  return frame.starts_with("ptx/") || frame.starts_with("include/");
}

}  // namespace

std::string path_of(const Statement& statement) {
  std::string path;
  for (const std::string& frame : frames(statement.site.source)) {
    const size_t in = frame.find(" in ");
    if (in == std::string::npos || is_wrapper(frame)) continue;
    path = frame.substr(in + 4) + (path.empty() ? "" : "/" + path);
  }
  return path.empty() ? "kernel" : path;
}

Places::Places(const Function& function) : function_(function) {
  std::map<std::string, int> count;
  for (const Statement& statement : function.body) {
    paths_.push_back(path_of(statement));
    const std::string group = group_of(statement);
    const std::string place =
        (group == "ring arithmetic" ? spelling(statement) : group) + " @ " + paths_.back();
    names_.push_back(place + " #" + std::to_string(count[place]++));
  }
}

std::vector<size_t> Places::find(const std::string& opcode, const std::string& path) const {
  std::vector<size_t> out;
  for (size_t i = 0; i < function_.body.size(); ++i)
    if (is(function_.body[i], opcode) && paths_[i].find(path) != std::string::npos) out.push_back(i);
  return out;
}

std::vector<Mutant> sweep(const Function& function, const Subject& subject, Breadth breadth) {
  return Sweep(function, subject).run(breadth);
}

}  // namespace mutation
