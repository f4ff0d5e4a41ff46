// tables.cpp -- see tables.h. The first row that fits a statement says what is done to it.
#include "mutation/tables.h"

#include <algorithm>

namespace mutation {
namespace {

using Fits = std::function<bool(const Statement&)>;

struct Row {
  Fits fits;
  std::vector<Operator> operators;
};
using Table = std::vector<Row>;

std::vector<Change> changes(const Table& table, const Function& function, size_t at) {
  std::vector<Change> out;
  for (const Row& row : table) {
    if (!row.fits(function.body[at])) continue;
    for (const Operator& each : row.operators)
      for (Change& change : each(function, at)) out.push_back(std::move(change));
    break;
  }
  return out;
}

// ---- statements ------------------------------------------------------------------------------------------

Fits begins(const char* prefix) {
  return [prefix](const Statement& s) { return is(s, prefix); };
}
Fits begins_with_integer(const char* prefix, size_t operand, bool (*holds)(int64_t)) {
  return [=](const Statement& s) {
    return is(s, prefix) && s.operands[operand].kind == Operand::Kind::kInteger &&
           holds(s.operands[operand].value);
  };
}

// ---- operands of another instruction ---------------------------------------------------------------------

std::vector<Operand> same(const Statement& s) { return s.operands; }
std::vector<Operand> none(const Statement&) { return {}; }
std::vector<Operand> first_and_second(const Statement& s) { return {s.operands[0], s.operands[1]}; }
std::vector<Operand> first_and_third(const Statement& s) { return {s.operands[0], s.operands[2]}; }
// A wait writes a predicate; elect writes a register and a predicate, which is true in one lane.
std::vector<Operand> waited(const Statement& s) { return {s.operands[0], integer(-1)}; }
std::vector<Operand> elected(const Statement& s) { return {s.operands[0].items.at(1), integer(-1)}; }
std::vector<Operand> not_elected(const Statement& s) { return {s.operands[0].items.at(1), integer(0)}; }
// A shuffle may write a predicate beside its value.
std::vector<Operand> own_value(const Statement& s) {
  const Operand& result = s.operands[0];
  return {result.kind == Operand::Kind::kPair ? result.items.at(0) : result, s.operands[1]};
}
// The threads of a barrier's reduction each keep their predicate.
std::vector<Operand> own_predicate(const Statement& s) { return {s.operands[0], s.operands[3]}; }
// An arrival's result goes nowhere.
std::vector<Operand> nowhere_and_first(const Statement& s) { return {Operand{}, s.operands[0]}; }

// ---- tables ----------------------------------------------------------------------------------------------

// An arrival at an mbarrier, with what else is done to it.
std::vector<Operator> arrival(std::vector<Operator> more) {
  std::vector<Operator> out = {deletion(), qualifier("release", "relaxed"), qualifier("cluster", "cta"),
                               offset("next barrier", 1, 8), own_barrier(1)};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

const Table& synchronisation() {
  static const Table table = {
      {begins("mbarrier.init"),
       {deletion(), offset("next barrier", 0, 8), offset("count + 1", 1, 1), offset("count - 1", 1, -1)}},
      {begins("mbarrier.arrive.expect_tx"),
       arrival({without_bytes(), offset("16 bytes fewer", 2, -16), offset("2048 bytes fewer", 2, -2048),
                offset("2048 bytes more", 2, 2048)})},
      {begins("mbarrier.arrive"), arrival({})},
      {begins("mbarrier.try_wait"),
       {replaced("no wait", "mov.pred", waited), flip("other parity", 2, 1), offset("next barrier", 1, 8),
        qualifier("acquire", "relaxed"), qualifier("cluster", "cta")}},
      {begins("elect"),
       {replaced("every lane", "mov.pred", elected), replaced("no lane", "mov.pred", not_elected)}},
      {begins("bar.warp.sync"), {deletion(), lane_0_only()}},
      {begins("shfl.sync"),
       {replaced("own value", "mov.b32", own_value), lane_0_only(), flip("16 lanes away", 2, 16)}},
      {begins("redux.sync"), {replaced("own value", "mov.b32", own_value), lane_0_only()}},
      {begins("red"),
       {deletion(), replaced("a plain store", "st.global.b32", same), qualifier("gpu", "cta")}},
      {begins("bar.sync"), {deletion(), arrive_at_barrier_0()}},
      {begins("barrier.cta.sync"),
       {deletion(), replaced("arrive only", "barrier.cta.arrive.aligned", same), offset("next barrier", 0, 1),
        offset("a warp more", 1, 32), offset("a warp fewer", 1, -32)}},
      {begins("barrier.cta.arrive"),
       {deletion(), offset("next barrier", 0, 1), offset("a warp more", 1, 32),
        offset("a warp fewer", 1, -32)}},
      {begins("barrier.cta.red"),
       {replaced("own predicate", "mov.pred", own_predicate), offset("next barrier", 1, 1),
        offset("a warp more", 2, 32), offset("a warp fewer", 2, -32)}},
      {begins("ld.acquire"), {qualifier("acquire", "relaxed"), qualifier("gpu", "cta")}},
      {begins("atom"),
       {qualifier("acq_rel", "acquire"), qualifier("acq_rel", "release"), qualifier("gpu", "cta"),
        offset("counts twice", 2, 1)}},
      {begins("tcgen05.commit"),
       {deletion(), offset("next barrier", 0, 8), not_to("not to rank 0", 0), not_to("not to rank 1", 1),
        replaced("arrive at once", "mbarrier.arrive.release.cta.shared::cta.b64", nowhere_and_first)}},
      {begins("tcgen05.fence::before_thread_sync"),
       {deletion(), replaced("the other fence", "tcgen05.fence::after_thread_sync", none)}},
      {begins("tcgen05.fence::after_thread_sync"),
       {deletion(), replaced("the other fence", "tcgen05.fence::before_thread_sync", none)}},
      {begins("tcgen05.alloc"),
       {deletion(), set_to("half the columns", 1, 256), offset("result elsewhere", 0, 8)}},
      {begins("tcgen05.dealloc"),
       {deletion(), set_to("half the columns", 1, 256), offset("4 columns on", 0, 4)}},
      {begins("barrier.cluster.arrive"), {qualifier("release", "relaxed"), no_cluster_barrier()}},
      {begins("wgmma.wait_group"), {deletion(), offset("a group more under way", 0, 1)}},
      {is_tma, {not_to("not to rank 0", 0), not_to("not to rank 1", 1), own_barrier(2)}},
      {begins("mapa"), {flip("another rank", 2, 1)}},
      {begins("st.async"), {deletion(), offset("16 bytes on", 0, 16), offset("next barrier", 2, 8)}},
      {begins("ld.shared::cta"), {offset("16 bytes on", 1, 16)}},
      {is_synchronisation, {deletion()}},
  };
  return table;
}

const Table& ring_arithmetic() {
  static const Table table = {
      {begins("xor"), {replaced("phase not flipped", "mov.b32", first_and_second)}},
      {begins_with_integer("setp.eq", 2, [](int64_t) { return true; }),
       {offset("ring one stage longer", 2, 1), offset("ring one stage shorter", 2, -1)}},
      {begins("selp.b32"), {replaced("ring does not wrap", "mov.b32", first_and_third)}},
      {begins_with_integer("mov.b32", 1, [](int64_t value) { return value >> 1 == 0; }),
       {flip("starts with the other value", 1, 1)}},
  };
  return table;
}

const Table& operands() {
  static const Table table = {
      {is_tma,
       {offset("destination 1024 bytes on", 0, 1024), offset("next barrier", 2, 8), another_map(),
        next_coordinate("inner coordinate + 1", 0), next_coordinate("outer coordinate + 1", 1), deletion(),
        twice()}},
      {begins("tcgen05.cp"),
       {offset("4 columns on", 0, 4), offset("source 512 bytes on", 1, 512 >> 4), deletion()}},
      {begins("tcgen05.mma"),
       {offset("d 4 columns on", 0, 4), offset("a 32 bytes on", 1, 32 >> 4),
        offset("b 1024 bytes on", 2, 1024 >> 4), flip("b without swizzle", 2, int64_t(2) << 61),
        flip("other scale type", 3, int64_t(1) << 23), offset("sfa 4 columns on", 4, 4),
        offset("sfb 4 columns on", 5, 4), accumulates("never accumulates", false),
        accumulates("always accumulates", true), deletion()}},
      {begins("tcgen05.ld"), {offset("1 column on", 1, 1), offset("32 lanes on", 1, int64_t(32) << 16)}},
      {is_global_store, {offset("32 bytes on", 0, 32), deletion()}},
      {begins("red"), {offset("32 bytes on", 0, 32)}},
      {begins("ld.shared"), {offset("8 bytes before", 1, -8)}},
      {begins("prefetch.tensormap"), {deletion()}},
  };
  return table;
}

}  // namespace

bool begins_with_one_of(const Statement& statement, std::initializer_list<const char*> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](const char* p) { return is(statement, p); });
}

bool is_tma(const Statement& statement) { return is(statement, "cp.async.bulk.tensor"); }

bool is_synchronisation(const Statement& statement) {
  return begins_with_one_of(statement, {"mbarrier",
                                        "fence",
                                        "tcgen05.wait::ld",
                                        "tcgen05.wait::st",
                                        "tcgen05.fence::before_thread_sync",
                                        "tcgen05.fence::after_thread_sync",
                                        "tcgen05.commit",
                                        "tcgen05.alloc",
                                        "tcgen05.dealloc",
                                        "tcgen05.relinquish_alloc_permit",
                                        "bar",
                                        "barrier",
                                        "elect",
                                        "griddepcontrol",
                                        "cp.async.bulk.wait_group",
                                        "cp.async.bulk.commit_group",
                                        "wgmma.fence",
                                        "wgmma.commit_group",
                                        "wgmma.wait_group",
                                        "ld.acquire",
                                        "atom"});
}

bool is_global_store(const Statement& statement) {
  return statement.opcode == "st" &&
         std::none_of(statement.qualifiers.begin(), statement.qualifiers.end(), [](const std::string& q) {
           return q.starts_with("shared") || q == "local" || q == "param";
         });
}

std::vector<Change> changes_of_synchronisation(const Function& function, size_t at) {
  return changes(synchronisation(), function, at);
}
std::vector<Change> changes_of_ring_arithmetic(const Function& function, size_t at) {
  return changes(ring_arithmetic(), function, at);
}
std::vector<Change> changes_of_operands(const Function& function, size_t at) {
  return changes(operands(), function, at);
}

}  // namespace mutation
