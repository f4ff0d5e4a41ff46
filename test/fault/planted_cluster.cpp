// planted_cluster.cpp -- bugs of clusters, planted by hand: in a pair of CTAs that one mma works for, and in
// the exchange of partial sums between the CTAs that split K.
#include "fault/planter.h"

namespace fault {
namespace {

// The arrive of a cluster barrier and the wait that follows it directly.
Planter::Edit without_barrier(size_t arrive) {
  return [arrive](Function& f) {
    erase(f, arrive);
    erase(f, arrive);
  };
}

class PairPlants : public Planter {
 public:
  using Planter::Planter;
  std::vector<Planted> run();

 private:
  void bytes();
  void waits_and_commits();
  void cluster();
  // The bytes that arrive.expect_tx announces.
  int64_t announced(size_t arrive) const {
    const Operand& bytes = statement(arrive).operands[2];
    return bytes.kind == Operand::Kind::kInteger ? bytes.value
                                                 : statement(writer(bytes.reg, "mov.b32")).operands[1].value;
  }
};

void PairPlants::bytes() {
  const size_t operands = at("mbarrier.arrive.expect_tx", "load_role", 0);
  const size_t scales = at("mbarrier.arrive.expect_tx", "load_role", 1);
  plant(1, "arrive.expect_tx announces nothing: a plain arrive", operands, without_bytes(operands),
        {{kFullBarrier, kStageRace}});
  plant(2, "too few bytes expected: the peer's scale factors of B forgotten", scales,
        [scales](Function& f) { add_to_operand(f, scales, 2, -2 * 2048); }, {{kFullBarrier, kStageRace}});
  plant(3, "too many bytes expected: all of B for each CTA, though each brings half", operands,
        [operands](Function& f) { add_to_operand(f, operands, 2, 2 * 8192); }, {{kFullBarrier}});
  plant(33, "the leader waits for its own half of the operands alone: the peer's is counted nowhere",
        operands,
        [operands, half = announced(operands) / 2](Function& f) { add_to_operand(f, operands, 2, -half); },
        {{kFullBarrier, kStageRace}});
  // Each copy counts where it lands, and the leader expects what lands in it: consistent, and wrong.
  std::vector<size_t> loads = places_.find("cp.async.bulk.tensor", "load_role");
  std::erase_if(loads, [&](size_t i) { return i < operands || i > scales; });
  const size_t to_leader = writer(statement(loads.at(0)).operands[2].items.at(0).reg, "and.b32");
  plant(
      33, "copies count in the CTA they land in, and the leader waits for its own", operands,
      [operands, loads, own = statement(to_leader).operands[1], half = announced(operands) / 2](Function& f) {
        for (size_t i : loads) f.body[i].operands[2].items[0] = own;
        add_to_operand(f, operands, 2, -half);
      },
      {{kStageRace, kFullBarrier}});
}

void PairPlants::waits_and_commits() {
  const size_t full = at("mbarrier.try_wait", "mma_role/wait", 1);
  const size_t empty = at("mbarrier.try_wait", "load_role/wait", 0);
  const size_t commit = at("tcgen05.commit", "mma_role", 0), final = at("tcgen05.commit", "mma_role", 1);
  plant(8, "no wait for the full barrier", full, no_wait(full), {{kFullBarrier, kStageRace}});
  plant(9, "no wait for the empty barrier", empty, no_wait(empty), {{kStageRace, kFullBarrier}});
  plant(10, "the commit names the next stage's barrier", commit,
        [commit](Function& f) { add_to_operand(f, commit, 0, 8); }, {{kEmptyBarrier, kStageRace}});
  plant(11, "an arrive releases the stage instead of a commit", commit, arrival_instead(commit),
        {{kStageRace, kEmptyBarrier}});
  plant(32, "the stage is released in the leader alone", commit,
        [commit](Function& f) { flip_operand(f, commit, 1, 2); }, {{kEmptyBarrier}});
  plant(32, "the accumulators are announced to the leader alone", final,
        [final](Function& f) { flip_operand(f, final, 1, 2); },
        {{{{"mbarrier-*", "deadlock"}, {}, {"acc_full"}, {}}}});
}

void PairPlants::cluster() {
  const size_t fence = at("fence.mbarrier_init", "prologue");
  plant(23, "no fence.mbarrier_init before a relaxed cluster arrive", fence,
        [fence](Function& f) { erase(f, fence); }, {{{{"mbarrier-init-order"}, {}, {}, {}}}});
  const size_t start = at("barrier.cluster.arrive", "prologue");
  plant(22, "no cluster barrier between mbarrier.init and the first use by the other CTA", start,
        without_barrier(start),
        {{{{"mbarrier-init-order", "cluster-start"}, {}, {}, {"no mbarrier was initialised"}}}});
  const size_t arrive = at("mbarrier.arrive.relaxed.cluster", "epilogue_role");
  plant(31, "a remote arrive with CTA scope", arrive,
        [arrive](Function& f) { replace_qualifier(f.body[arrive], "cluster", "cta"); },
        {{{{"scope-mismatch", "race-tensor", "tensor-fence"}, {}, {}, {}}}});
  const size_t end = at("barrier.cluster.arrive", "teardown");
  plant(34, "no cluster barrier before exit: the other CTA still reaches for memory of one that is gone", end,
        without_barrier(end),
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
};

std::vector<Planted> SplitPlants::run() {
  const Answer stale = {{"race-*", "proxy-*"}, {"st.shared", "ld.shared"}, {}, {}};
  const size_t before = at("barrier.cluster.arrive", "reduce", 0);
  plant(kListed + 1, "partial sums are sent while the ring of their owner may be in use", before,
        without_barrier(before), {{stale}});
  const size_t after = at("barrier.cluster.arrive", "reduce", 1);
  plant(kListed + 2, "partial sums are added up before they need have arrived", after, without_barrier(after),
        {{stale}});
  const size_t fence = at("fence.proxy", "reduce");
  plant(kListed + 3, "no fence.proxy.async between the ring and the partial sums", fence,
        [fence](Function& f) { erase(f, fence); }, {{{{"proxy-*"}, {"st.shared"}, {}, {}}}});
  const size_t mapa = at("mapa", "send_partial_sums");
  plant(kListed + 4, "partial sums go to the wrong rank", mapa,
        [mapa](Function& f) { flip_operand(f, mapa, 2, 1); }, {{stale}, true});
  // The address is (the owner's exchange + the offset of the slice) + the offset of column and lane.
  const size_t send = at("st.shared::cluster", "send_partial_sums");
  const size_t place = writer(statement(send).operands[0].items.at(0).reg, "add.s32");
  const size_t part = writer(statement(place).operands[1].reg, "add.s32");
  const size_t slice = writer(statement(part).operands[2].reg, "shl.b32");
  plant(kListed + 5, "all slices send to the place of the first", send,
        [slice](Function& f) {
          f.body[slice] = make(f.body[slice], "mov.b32", {f.body[slice].operands[0], integer(0)});
        },
        {{stale}});
  return std::move(out_);
}

}  // namespace

std::vector<Planted> planted_in_pair(const Function& kernel, const std::string& instance) {
  return PairPlants(kernel, instance).run();
}

std::vector<Planted> planted_in_split(const Function& kernel, const std::string& instance) {
  return SplitPlants(kernel, instance).run();
}

}  // namespace fault
