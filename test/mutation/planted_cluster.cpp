// planted_cluster.cpp -- bugs of what only some kernels of the family have, planted by hand: of a pair of
// CTAs that one mma works for, of the exchange of partial sums between the CTAs that split K, of overlapping
// accumulators, of groups, and of an epilogue that is a function of its own.
#include <algorithm>
#include <stdexcept>

#include "mutation/planter.h"

namespace mutation {
namespace {

class PairPlants : public Planter {
 public:
  using Planter::Planter;
  std::vector<Planted> run();

 private:
  void bytes();
  void waits_and_commits();
  void cluster();
  // Returns the bytes that arrive.expect_tx announces.
  int64_t announced(size_t arrive) const {
    const Operand& bytes = statement(arrive).operands[2];
    return bytes.kind == Operand::Kind::kInteger ? bytes.value
                                                 : statement(writer(bytes.reg, "mov.b32")).operands[1].value;
  }
};

void PairPlants::bytes() {
  const size_t operands = at_ring("mbarrier.arrive.expect_tx", "load_role", "full");
  const size_t scales = at_ring("mbarrier.arrive.expect_tx", "load_role", "scale_full");
  plant(1, "arrive.expect_tx announces nothing: a plain arrive", operands, without_bytes(operands),
        {{kFullBarrier, kStageRace}});
  plant(2, "too few bytes expected: the peer's scale factors of B forgotten", scales,
        [scales](Function& f) { add_to_operand(f, scales, 2, -2 * 2048); }, {{kScaleBarrier, kStageRace}});
  plant(3, "too many bytes expected: all of B for each CTA, though each brings half", operands,
        [operands](Function& f) { add_to_operand(f, operands, 2, 2 * 8192); }, {{kFullBarrier}});
  plant(33, "the leader waits for its own half of the operands alone: the peer's is counted nowhere",
        operands,
        [operands, half = announced(operands) / 2](Function& f) { add_to_operand(f, operands, 2, -half); },
        {{kFullBarrier, kStageRace}});
  // Each copy counts where it lands, and the leader expects what lands in it: consistent, and wrong.
  std::vector<std::pair<size_t, Operand>> loads;  // and the barrier of their own CTA
  for (size_t i : all_at_ring("cp.async.bulk.tensor", "load_role", "full")) {
    const size_t leader = writer(statement(i).operands[2].items.at(0).reg, "and.b32");
    loads.emplace_back(i, statement(leader).operands[1]);
  }
  const std::vector<size_t> arrivals = all_at_ring("mbarrier.arrive.expect_tx", "load_role", "full");
  std::vector<int64_t> halves;
  for (size_t i : arrivals) halves.push_back(announced(i) / 2);
  plant(33, "copies count in the CTA they land in, and the leader waits for its own", operands,
        [loads, arrivals, halves](Function& f) {
          for (const auto& [i, own] : loads) f.body[i].operands[2].items[0] = own;
          for (size_t n = arrivals.size(); n-- > 0;) add_to_operand(f, arrivals[n], 2, -halves[n]);
        },
        {{kStageRace, kFullBarrier}});
}

void PairPlants::waits_and_commits() {
  const size_t full = at_ring("mbarrier.try_wait", "mma_role/multiply/wait", "full");
  const size_t empty = at_ring("mbarrier.try_wait", "load_role/wait", covering_ring());
  const size_t commit = at_ring("tcgen05.commit", "mma_role", "empty");
  const size_t final = at_ring("tcgen05.commit", "mma_role", "acc_full");
  const size_t scale_commit = at_ring("tcgen05.commit", "mma_role", "scale_empty");
  plant(8, "no wait for the full barrier", full, no_wait(full), {{kFullBarrier, kStageRace}});
  plant(9, "no wait for the empty barrier", empty, no_wait(empty), {{kStageRace, kFullBarrier}});
  plant(10, "the commit names the next stage's barrier", commit,
        [commit](Function& f) { add_to_operand(f, commit, 0, 8); }, {{kEmptyBarrier, kStageRace}});
  plant(11, "an arrive releases the stage instead of a commit", commit, arrival_instead(commit),
        {{kStageRace, kEmptyBarrier}});
  plant(32, "the stage is released in the leader alone", commit,
        [commit](Function& f) { flip_operand(f, commit, 1, 2); }, {{kEmptyBarrier}});
  plant(32, "the scale stage is released in the leader alone", scale_commit,
        [scale_commit](Function& f) { flip_operand(f, scale_commit, 1, 2); }, {{kScaleBarrier}});
  // The commit comes after every k-tile: the branch around it is not taken.
  size_t around = scale_commit;
  while (!is(statement(around), "bra")) --around;
  plant(57, "a scale stage of two k-tiles is given back after the first", scale_commit, erased({around}),
        {{kStageRace, kTensorRace, kScaleBarrier}});
  plant(32, "the accumulators are announced to the leader alone", final,
        [final](Function& f) { flip_operand(f, final, 1, 2); },
        {{{{"mbarrier-*", "deadlock"}, {}, {"acc_full"}, {}}}});
}

void PairPlants::cluster() {
  const size_t fence = at("fence.mbarrier_init", "prologue");
  plant(23, "no fence.mbarrier_init before a relaxed cluster arrive", fence,
        [fence](Function& f) { erase(f, fence); }, {{{{"mbarrier-init-fence"}, {}, {}, {}}}});
  const size_t start = at("barrier.cluster.arrive", "prologue");
  plant(22, "no cluster barrier between mbarrier.init and the first use by the other CTA", start,
        without_barrier({start}),
        {{{{"mbarrier-init-order", "cluster-start"}, {}, {}, {"no mbarrier was initialised"}}}});
  const size_t arrive = at("mbarrier.arrive.relaxed.cluster", "epilogue_role");
  plant(31, "a remote arrive with CTA scope", arrive,
        [arrive](Function& f) { replace_qualifier(f.body[arrive], "cluster", "cta"); },
        {{{{"scope-mismatch", "race-tensor", "tensor-fence"}, {}, {}, {}}}});
  const size_t end = at("barrier.cluster.arrive", "teardown");
  plant(34, "no cluster barrier before exit: the other CTA still reaches for memory of one that is gone", end,
        without_barrier({end}),
        {{{{"exit-*"}, {}, {}, {"exit"}}, {{"race-tensor", "mbarrier-*"}, {}, {}, {"live"}}}});
}

std::vector<Planted> PairPlants::run() {
  bytes();
  waits_and_commits();
  cluster();
  return std::move(out_);
}

class SplitPlants : public Planter {
 public:
  using Planter::Planter;
  std::vector<Planted> run();

 private:
  std::vector<size_t> writers(uint32_t reg) const;
  bool tells_rank(uint32_t reg) const;
  size_t shift_of_rank(uint32_t reg) const;
};

std::vector<size_t> SplitPlants::writers(uint32_t reg) const {
  std::vector<size_t> out;
  for (size_t i = 0; i < kernel_.body.size(); ++i) {
    const std::vector<uint32_t> results = writes(kernel_.body[i]);
    if (std::find(results.begin(), results.end(), reg) != results.end()) out.push_back(i);
  }
  return out;
}

// Says whether this is the rank of the CTA in its cluster, or a half of it.
bool SplitPlants::tells_rank(uint32_t reg) const {
  for (const size_t i : writers(reg)) {
    if (statement(i).operands.at(1).name == "%cluster_ctarank") return true;
    if (is(statement(i), "shr.u32") && tells_rank(statement(i).operands[1].reg)) return true;
  }
  return false;
}

// Returns the shift of the rank that an address has as one of its addends.
size_t SplitPlants::shift_of_rank(uint32_t reg) const {
  std::vector<uint32_t> open = {reg};
  while (!open.empty()) {
    const std::vector<size_t> all = writers(open.back());
    open.pop_back();
    for (const size_t i : all) {
      const Statement& s = statement(i);
      if (is(s, "shl.b32") && tells_rank(s.operands[1].reg)) return i;
      if (!is(s, "add.s32") && !is(s, "or.b32")) continue;
      for (const uint32_t addend : reads(s)) open.push_back(addend);
    }
  }
  throw std::runtime_error("no rank is an addend of " + kernel_.registers.at(reg).name);
}

std::vector<Planted> SplitPlants::run() {
  const Answer counted = barrier_of("sums_full");
  // The epilogue warps and those of the other roles have each their own copy of the meeting.
  const std::vector<size_t> arrives = places_.find("barrier.cluster.arrive", "leave_rings");
  plant(49, "partial sums are sent while the ring of their owner may be in use", arrives.at(0),
        without_barrier(arrives), {{kSent, {{"mbarrier-*", "cluster-start"}, {}, {}, {"mbarrier"}}}});
  plant(49, "the arrivals before partial sums are sent release nothing", arrives.at(0),
        [arrives](Function& f) {
          for (size_t i : arrives) replace_qualifier(f.body[i], "release", "relaxed");
        },
        {{kSent}});
  const std::vector<size_t> fences = places_.find("fence.proxy", "leave_rings");
  const Answer unfenced = {{"proxy-*"}, {"st.async"}, {}, {}};
  plant(51, "no fence.proxy.async between the ring and the partial sums", fences.at(0), erased(fences),
        {{unfenced}});
  plant(51, "fence.proxy.async stands after the arrival", fences.at(0),
        [fences, arrives](Function& f) {
          for (size_t n = 0; n < fences.size(); ++n) move_behind(f, fences[n], arrives.at(n));
        },
        {{unfenced}});

  const size_t bytes = at_ring("mbarrier.arrive.expect_tx", "reducing_epilogue_role", "sums_full");
  const size_t sums = at_ring("mbarrier.try_wait", "reducing_epilogue_role/wait_for_sums", "sums_full");
  const auto more = [bytes](int64_t delta) {
    return [=](Function& f) { add_to_operand(f, bytes, 2, delta); };
  };
  plant(1, "the sums of others are expected without their bytes", bytes, without_bytes(bytes),
        {{counted, kSent}});
  plant(2, "too few bytes of sums expected: those of a lane forgotten", bytes, more(-16), {{counted, kSent}});
  plant(3, "too many bytes of sums expected: a lane counted twice", bytes, more(16), {{counted}});
  plant(30, "one arrival more than there is completes the barrier of sums",
        at_ring("mbarrier.init", "prologue", "sums_full"), count_changed("sums_full", 1), {{counted}});
  plant(50, "partial sums are added up before they need have arrived", sums, no_wait(sums),
        {{counted, kSent}});

  // The place comes before the barrier's address.
  const size_t place = at("mapa", "send_sums", 0), barrier = at("mapa", "send_sums", 1);
  plant(52, "partial sums go to the wrong rank", place,
        [place](Function& f) { flip_operand(f, place, 2, 1); }, {{counted, kSent, kOtherCta}});
  plant(52, "partial sums count on a barrier of the wrong rank", barrier,
        [barrier](Function& f) { flip_operand(f, barrier, 2, 1); }, {{counted, kSent, kOtherCta}});
  // The address is the sum of the owner's place and the offsets of the slice, the column and the lane.
  const size_t send = at("st.async", "send_sums");
  const size_t slice = shift_of_rank(statement(send).operands[0].items.at(0).reg);
  plant(53, "all slices send to the place of the first", send,
        [slice](Function& f) {
          f.body[slice] = make(f.body[slice], "mov.b32", {f.body[slice].operands[0], integer(0)});
        },
        {{kSent}, true});
  return std::move(out_);
}

// These bugs concern accumulators that share columns, and windows for the scale factors beside them.
class OverlapPlants : public Planter {
 public:
  using Planter::Planter;
  std::vector<Planted> run();
};

std::vector<Planted> OverlapPlants::run() {
  const Answer tensor = {{"race-tensor", "tensor-*"}, {"tcgen05.ld", "tcgen05.mma"}, {}, {"TMEM"}};
  const Answer window = {{"race-tensor", "tensor-*"}, {"tcgen05.cp", "tcgen05.mma"}, {}, {"TMEM"}};
  // This is the first column of the chunk that is read first: 64 of the pair that ends in the shared columns,
  // 0 of the other.
  const std::vector<size_t> chunks = places_.find("selp.b32", "epilogue_role/first");
  const auto swapped = [](Function& f, size_t i) { std::swap(f.body[i].operands[1], f.body[i].operands[2]); };
  plant(58, "the second pair is read in the order of the first: the shared columns last", chunks.at(0),
        [chunks](Function& f) {
          for (size_t i : chunks) f.body[i].operands[2] = f.body[i].operands[1];
        },
        {{tensor}});
  plant(59, "both pairs are read the wrong way round", chunks.at(0),
        [chunks, swapped](Function& f) {
          for (size_t i : chunks) swapped(f, i);
        },
        {{tensor}});
  const std::vector<size_t> waits = all_at_ring("mbarrier.try_wait", "mma_role/multiply/wait", "window_free");
  const std::vector<size_t> commits = all_at_ring("tcgen05.commit", "mma_role", "window_free");
  const std::vector<size_t> drains = all_at_ring("mbarrier.try_wait", "mma_role/drain", "window_free");
  plant(60, "scale factors are copied into a window without waiting for it", waits.at(0), no_waits(waits),
        {{window}});
  plant(61, "no window is given back", commits.at(0), erased(commits),
        {{{{"mbarrier-*", "deadlock"}, {}, {"window_free"}, {}}}});
  plant(62, "the windows are not drained", drains.at(0), no_waits(drains), {{kNotDrained}});
  return std::move(out_);
}

// These bugs concern groups whose sizes are read on the device.
class GroupPlants : public Planter {
 public:
  using Planter::Planter;
  std::vector<Planted> run();
};

std::vector<Planted> GroupPlants::run() {
  const size_t barrier = at("bar.sync", "prologue");
  plant(63, "no barrier between the table of groups and its readers", barrier, erased({barrier}),
        {{{{"race-data", "mbarrier-*"}, {"st.shared", "ld.shared", "mbarrier"}, {}, {"never written"}}}});
  const size_t wait = at("griddepcontrol.wait", "prologue");
  plant(42, "no griddepcontrol.wait before the sizes of the groups are read", wait, erased({wait}),
        {{{{"race-grids"}, {"ld.global"}, {}, {}}}});
  const std::vector<size_t> sizes{at("ld.global", "write_group_table"),
                                  at("ld.global", "write_group_table", 1),
                                  at("ld.global", "write_group_table", 2)};
  plant(86, "the sizes of the groups are read by ld.global.nc, which no griddepcontrol.wait orders", sizes[0],
        [sizes](Function& f) {
          for (const size_t i : sizes) {
            auto& qualifiers = f.body[i].qualifiers;
            qualifiers.insert(std::find(qualifiers.begin(), qualifiers.end(), "global") + 1, "nc");
          }
        },
        {{{{"non-coherent-read"}, {"ld.global.nc"}, {}, {}}}});
  return std::move(out_);
}

// The epilogue of a general instance is a function; what it waits for stands before its call.
void call_without_wait(Function& f) {
  size_t call = 0;
  while (!is(f.body.at(call), "call")) ++call;
  while (!is(f.body.at(call), "griddepcontrol.wait")) --call;
  erase(f, call);
}

}  // namespace

std::vector<Planted> planted_in_pair(const Bench& bench) { return PairPlants(bench).run(); }
std::vector<Planted> planted_in_split(const Bench& bench) { return SplitPlants(bench).run(); }
std::vector<Planted> planted_in_overlapped(const Bench& bench) { return OverlapPlants(bench).run(); }
std::vector<Planted> planted_in_grouped(const Bench& bench) { return GroupPlants(bench).run(); }
std::vector<Planted> planted_in_general(const Bench& bench) {
  const std::string bug = "no griddepcontrol.wait before the epilogue is called";
  Mutant mutant{"planted 42: " + bug,
                bench.subject(),
                bug,
                "planted",
                "griddepcontrol.wait",
                "kernel",
                0,
                {},
                call_without_wait,
                true};
  return {{42, bug, {}, std::move(mutant), {{{{"race-grids"}, {}, {}, {}}}}}};
}

}  // namespace mutation
