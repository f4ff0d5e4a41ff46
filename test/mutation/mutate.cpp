// mutate.cpp -- see mutate.h. Each rule below says of which instructions it makes which mutants; an operator
// that would only break the syntax is not one.
#include "mutation/mutate.h"

#include <algorithm>
#include <set>
#include <sstream>

namespace mutation {
namespace {

using sim::ptx::Type;
using Edit = std::function<void(Function&)>;

bool any_of(const Statement& s, std::initializer_list<const char*> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](const char* p) { return is(s, p); });
}

bool is_tma(const Statement& s) { return is(s, "cp.async.bulk.tensor"); }

bool is_synchronisation(const Statement& s) {
  return any_of(s, {"mbarrier", "fence", "tcgen05.wait::ld", "tcgen05.wait::st",
                    "tcgen05.fence::before_thread_sync", "tcgen05.fence::after_thread_sync", "tcgen05.commit",
                    "tcgen05.alloc", "tcgen05.dealloc", "tcgen05.relinquish_alloc_permit", "bar", "barrier",
                    "elect", "griddepcontrol", "cp.async.bulk.wait_group", "cp.async.bulk.commit_group",
                    "wgmma.fence", "wgmma.commit_group", "wgmma.wait_group"});
}

// Says whether the statement stores to global memory, which it names or not.
bool is_global_store(const Statement& s) {
  return s.opcode == "st" &&
         std::none_of(s.qualifiers.begin(), s.qualifiers.end(), [](const std::string& qualifier) {
           return qualifier.starts_with("shared") || qualifier == "local" || qualifier == "param";
         });
}

// Says whether other threads can tell the order of the statement.
bool is_visible(const Statement& s) {
  return is_synchronisation(s) || is_tma(s) || is_global_store(s) ||
         any_of(s, {"tcgen05", "wgmma", "ld.shared", "ld.shared::cta", "st.shared::cluster", "st.async",
                    "stmatrix", "ld.global", "red"});
}

// Says whether the statement turns an address of a CTA into that of its pair's leader: it keeps the upper
// bits without the lowest of the rank.
bool names_leader(const Statement& s) {
  return is(s, "and.b32") && s.operands[2].kind == Operand::Kind::kInteger &&
         (static_cast<uint32_t>(s.operands[2].value) >> 24) == 0xfe;
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
      "mapa",
      "st.shared::cluster",
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
      synchronisation(i);
      if (ring_.contains(i)) ring_arithmetic(i);
      if (breadth == Breadth::kAll) operands(i);
    }
    exchanges();
    return std::move(out_);
  }

 private:
  const Statement& at(size_t i) const { return function_.body[i]; }

  void add(size_t i, const std::string& operation, Edit edit) {
    const Statement& s = at(i);
    out_.push_back({operation + " " + places_.name(i), subject_, operation, group_of(s), spelling(s),
                    path_of(s), s.site.ptx_line, s.site.source, std::move(edit)});
  }
  void add_offset(size_t i, const std::string& operation, size_t operand, int64_t delta) {
    add(i, operation, [i, operand, delta](Function& f) { add_to_operand(f, i, operand, delta); });
  }
  void add_flip(size_t i, const std::string& operation, size_t operand, int64_t bits) {
    add(i, operation, [i, operand, bits](Function& f) { flip_operand(f, i, operand, bits); });
  }
  void add_qualifier(size_t i, const std::string& from, const std::string& to) {
    const auto& q = at(i).qualifiers;
    if (std::find(q.begin(), q.end(), from) == q.end()) return;
    add(i, "." + from + " to ." + to, [i, from, to](Function& f) { replace_qualifier(f.body[i], from, to); });
  }
  void add_replaced(size_t i, const std::string& operation, const std::string& with,
                    std::vector<Operand> operands) {
    add(i, operation, [i, with, operands](Function& f) { f.body[i] = make(f.body[i], with, operands); });
  }
  void add_ranks(size_t i);
  void add_own_cta(size_t i, const std::string& operation, size_t operand);
  void add_deletion(size_t i) {
    add(i, "delete", [i](Function& f) { erase(f, i); });
  }

  void synchronisation(size_t i);
  void ring_arithmetic(size_t i);
  void operands(size_t i);
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

void Sweep::synchronisation(size_t i) {
  const Statement& s = at(i);
  const auto& operands = s.operands;
  if (is(s, "mbarrier.init")) {
    add_deletion(i);
    add_offset(i, "next barrier", 0, 8);
    add_offset(i, "count + 1", 1, 1);
    add_offset(i, "count - 1", 1, -1);
  } else if (is(s, "mbarrier.arrive")) {
    add_deletion(i);
    add_qualifier(i, "release", "relaxed");
    add_qualifier(i, "cluster", "cta");
    add_offset(i, "next barrier", 1, 8);
    add_own_cta(i, "own barrier", 1);
    if (is(s, "mbarrier.arrive.expect_tx")) {
      add(i, "arrive without bytes", [i](Function& f) {
        drop_qualifier(f.body[i], "expect_tx");
        f.body[i].operands.pop_back();
      });
      add_offset(i, "16 bytes fewer", 2, -16);
      add_offset(i, "2048 bytes fewer", 2, -2048);
      add_offset(i, "2048 bytes more", 2, 2048);
    }
  } else if (is(s, "mbarrier.try_wait")) {
    add_replaced(i, "no wait", "mov.pred", {operands[0], integer(-1)});
    add_flip(i, "other parity", 2, 1);
    add_offset(i, "next barrier", 1, 8);
    add_qualifier(i, "acquire", "relaxed");
    add_qualifier(i, "cluster", "cta");
  } else if (is(s, "elect")) {
    const Operand elected = operands[0].items.at(1);
    add_replaced(i, "every lane", "mov.pred", {elected, integer(-1)});
    add_replaced(i, "no lane", "mov.pred", {elected, integer(0)});
  } else if (is(s, "bar.warp.sync")) {
    add_deletion(i);
    add(i, "lane 0 only", [i](Function& f) { f.body[i].operands[0] = integer(1); });
  } else if (any_of(s, {"shfl.sync", "redux.sync"})) {
    const Operand& result = operands[0];
    add_replaced(i, "own value", "mov.b32",
                 {result.kind == Operand::Kind::kPair ? result.items.at(0) : result, operands[1]});
    add(i, "lane 0 only", [i](Function& f) { f.body[i].operands.back() = integer(1); });
    if (is(s, "shfl.sync")) add_flip(i, "16 lanes away", 2, 16);
  } else if (is(s, "red")) {
    add_deletion(i);
    add_replaced(i, "a plain store", "st.global.b32", operands);
    add_qualifier(i, "gpu", "cta");
  } else if (is(s, "bar.sync")) {
    add_deletion(i);
    add_replaced(i, "arrive only", "bar.arrive", {integer(0), integer(function_.max_ntid[0])});
  } else if (is(s, "barrier.cta.sync")) {
    add_deletion(i);
    add_replaced(i, "arrive only", "barrier.cta.arrive.aligned", operands);
    add_offset(i, "next barrier", 0, 1);
    add_offset(i, "a warp more", 1, 32);
    add_offset(i, "a warp fewer", 1, -32);
  } else if (is(s, "barrier.cta.arrive")) {
    add_deletion(i);
    add_offset(i, "next barrier", 0, 1);
    add_offset(i, "a warp more", 1, 32);
    add_offset(i, "a warp fewer", 1, -32);
  } else if (is(s, "tcgen05.commit")) {
    add_deletion(i);
    add_offset(i, "next barrier", 0, 8);
    add_ranks(i);
    Operand sink;
    add_replaced(i, "arrive at once", "mbarrier.arrive.release.cta.shared::cta.b64", {sink, operands[0]});
  } else if (is(s, "tcgen05.fence::before_thread_sync")) {
    add_deletion(i);
    add_replaced(i, "the other fence", "tcgen05.fence::after_thread_sync", {});
  } else if (is(s, "tcgen05.fence::after_thread_sync")) {
    add_deletion(i);
    add_replaced(i, "the other fence", "tcgen05.fence::before_thread_sync", {});
  } else if (is(s, "tcgen05.alloc")) {
    add_deletion(i);
    add(i, "half the columns", [i](Function& f) { f.body[i].operands[1] = integer(256); });
    add_offset(i, "result elsewhere", 0, 8);
  } else if (is(s, "tcgen05.dealloc")) {
    add_deletion(i);
    add(i, "half the columns", [i](Function& f) { f.body[i].operands[1] = integer(256); });
    add_offset(i, "4 columns on", 0, 4);
  } else if (is(s, "barrier.cluster.arrive")) {
    add_qualifier(i, "release", "relaxed");
    if (is(at(i + 1), "barrier.cluster.wait"))
      add(i, "no barrier", [i](Function& f) {
        erase(f, i);
        erase(f, i);
      });
    else add_deletion(i);
  } else if (is(s, "wgmma.wait_group")) {
    add_deletion(i);
    add_offset(i, "a group more under way", 0, 1);
  } else if (is_tma(s)) {
    add_ranks(i);
    add_own_cta(i, "own barrier", 2);
  } else if (is(s, "mapa")) {
    add_flip(i, "another rank", 2, 1);
  } else if (is(s, "st.shared::cluster")) {
    add_deletion(i);
    add_offset(i, "16 bytes on", 0, 16);
  } else if (is(s, "st.async")) {
    add_deletion(i);
    add_offset(i, "16 bytes on", 0, 16);
    add_offset(i, "next barrier", 2, 8);
  } else if (is(s, "ld.shared::cta")) {
    add_offset(i, "16 bytes on", 1, 16);
  } else if (is_synchronisation(s)) {
    add_deletion(i);
  }
}

// Changes the CTAs that a multicast reaches: the last operand, or the one before the cache policy.
void Sweep::add_ranks(size_t i) {
  const auto& q = at(i).qualifiers;
  if (std::find(q.begin(), q.end(), "multicast::cluster") == q.end()) return;
  const bool policy = std::find(q.begin(), q.end(), "L2::cache_hint") != q.end();
  const size_t ranks = at(i).operands.size() - (policy ? 2 : 1);
  add_flip(i, "not to rank 0", ranks, 1);
  add_flip(i, "not to rank 1", ranks, 2);
}

// Takes the barrier of this CTA where the leader's is meant.
void Sweep::add_own_cta(size_t i, const std::string& operation, size_t operand) {
  const Operand& address = at(i).operands.at(operand);
  const bool direct = address.kind == Operand::Kind::kRegister;
  const uint32_t reg = direct ? address.reg : address.items.empty() ? ~0u : address.items[0].reg;
  for (const Statement& s : function_.body) {
    if (!names_leader(s) || writes(s) != std::vector{reg}) continue;
    add(i, operation, [i, operand, direct, own = s.operands[1]](Function& f) {
      Operand& target = f.body[i].operands[operand];
      (direct ? target : target.items[0]) = own;
    });
    return;
  }
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

void Sweep::ring_arithmetic(size_t i) {
  const Statement& s = at(i);
  const auto& operands = s.operands;
  if (is(s, "xor")) {
    add_replaced(i, "phase not flipped", "mov.b32", {operands[0], operands[1]});
  } else if (is(s, "setp.eq") && operands[2].kind == Operand::Kind::kInteger) {
    add_offset(i, "ring one stage longer", 2, 1);
    add_offset(i, "ring one stage shorter", 2, -1);
  } else if (is(s, "selp.b32")) {
    add_replaced(i, "ring does not wrap", "mov.b32", {operands[0], operands[2]});
  } else if (is(s, "mov.b32") && operands[1].kind == Operand::Kind::kInteger && operands[1].value >> 1 == 0) {
    add_flip(i, "starts with the other value", 1, 1);
  }
}

void Sweep::operands(size_t i) {
  const Statement& s = at(i);
  if (is_tma(s)) {
    add_offset(i, "destination 1024 bytes on", 0, 1024);
    add_offset(i, "next barrier", 2, 8);
    add(i, "another map", [i](Function& f) {
      Operand& map = f.body[i].operands[1].items[0];
      const uint32_t reg = fresh_register(f, Type::kB64), old = map.reg;
      map = of_register(reg);
      insert(f, i, make(f.body[i], "xor.b64", {of_register(reg), of_register(old), integer(128)}));
    });
    add(i, "inner coordinate + 1", [i](Function& f) { add_to_coordinate(f, i, 1, 0, 1); });
    add(i, "outer coordinate + 1", [i](Function& f) { add_to_coordinate(f, i, 1, 1, 1); });
    add_deletion(i);
    add(i, "twice", [i](Function& f) { insert(f, i, Statement(f.body[i])); });
  } else if (is(s, "tcgen05.cp")) {
    add_offset(i, "4 columns on", 0, 4);
    add_offset(i, "source 512 bytes on", 1, 512 >> 4);
    add_deletion(i);
  } else if (is(s, "tcgen05.mma")) {
    add_offset(i, "d 4 columns on", 0, 4);
    add_offset(i, "a 32 bytes on", 1, 32 >> 4);
    add_offset(i, "b 1024 bytes on", 2, 1024 >> 4);
    add_flip(i, "b without swizzle", 2, int64_t(2) << 61);
    add_flip(i, "other scale type", 3, int64_t(1) << 23);
    add_offset(i, "sfa 4 columns on", 4, 4);
    add_offset(i, "sfb 4 columns on", 5, 4);
    for (const bool accumulate : {false, true})
      add(i, accumulate ? "always accumulates" : "never accumulates", [i, accumulate](Function& f) {
        const uint32_t reg = fresh_register(f, Type::kPred);
        f.body[i].operands.back() = of_register(reg);
        insert(f, i, make(f.body[i], "mov.pred", {of_register(reg), integer(accumulate ? -1 : 0)}));
      });
    add_deletion(i);
  } else if (is(s, "tcgen05.ld")) {
    add_offset(i, "1 column on", 1, 1);
    add_offset(i, "32 lanes on", 1, int64_t(32) << 16);
  } else if (is_global_store(s)) {
    add_offset(i, "32 bytes on", 0, 32);
    add_deletion(i);
  } else if (is(s, "red")) {
    add_offset(i, "32 bytes on", 0, 32);
  } else if (is(s, "ld.shared")) {
    add_offset(i, "8 bytes before", 1, -8);
  } else if (is(s, "prefetch.tensormap")) {
    add_deletion(i);
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
    add(first, operation, [first, second](Function& f) { move_before(f, second, first); });
  } else if (!branches && !is_joined(first, second) && !share(writes(at(first)), used) &&
             !share(reads(at(first)), written)) {
    add(first, operation, [first, second](Function& f) { move_behind(f, first, second); });
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
