// planted_sm90.cpp -- bugs planted by hand in kernels for compute capability 9.0, by what each has: warps
// that prepare A, a ring of panels, groups, the exchange of split-K; and in the pass over A.
#include <fmt/core.h>

#include <algorithm>

#include "mutation/planter.h"

namespace mutation {
namespace {

class Sm90Plants : public Planter {
 public:
  using Planter::Planter;
  std::vector<Planted> run();

 private:
  void load_roles();
  void preparing();
  void panels();
  void multiplication();
  void split();
  void stream();
  void results();
  void grids();
  void set_up();

  const dualgemm::A16Plan& a16_ = plan_.a16;
  // Warps put an A of 16 bits in order, or expand it.
  const char* const role_ = plan_.orders_a() ? "order_role" : "expand_role";
  bool sums_in_rings() const { return plan_.tile.split_k > 1 && plan_.tile.m > 16; }
  // Returns the first statement behind `i` with this spelling.
  size_t next(size_t i, const std::string& opcode) const {
    do ++i;
    while (!is(statement(i), opcode));
    return i;
  }
  static Edit more(size_t i, size_t operand, int64_t delta) {
    return [i, operand, delta](Function& f) { add_to_operand(f, i, operand, delta); };
  }
};

const Answer kStage = {{"race-async"},
                       {"cp.async.bulk.tensor", "wgmma.mma_async"},
                       {},
                       {"at shared offset", "was never written"}};
const Answer kUnfenced = {{"proxy-*"}, {"st.shared", "ld.shared", "wgmma", "cp.async.bulk"}, {}, {}};
const Answer kInFlight = {{}, {}, {}, {"in flight", "wgmma"}};
const Answer kSums = {
    {"race-*", "proxy-*"}, {"st.shared", "ld.shared", "stmatrix", "wgmma"}, {}, {"was never written"}};

void Sm90Plants::load_roles() {
  const size_t full = at_ring("mbarrier.try_wait", "multiply_role", "full");
  const size_t empty = at_ring("mbarrier.try_wait", "load_role/wait", "empty");
  const size_t arrive = at_ring("mbarrier.arrive.expect_tx", "load_role", "full");
  const size_t release = at_ring("mbarrier.arrive", "multiply_role", "empty");
  const size_t reads = at("fence.proxy", "load_role");
  plant(1, "arrive.expect_tx announces nothing: a plain arrive", arrive, without_bytes(arrive),
        {{barrier_of("full"), kStage}});
  plant(8, "no wait for the full barrier", full, no_wait(full), {{barrier_of("full"), kStage}});
  plant(9, "no wait for the empty barrier", empty, no_wait(empty),
        {{barrier_of("full"), barrier_of("a_full"), kStage}});
  plant(5, "the producer starts with the wrong parity", empty,
        [empty](Function& f) { flip_operand(f, empty, 2, 1); }, {{barrier_of("empty")}});
  plant(10, "the release names the next stage's barrier", release, more(release, 1, 8),
        {{barrier_of("empty"), kStage}});
  plant(30, "one warp too few frees a stage", at_ring("mbarrier.init", "prologue", "empty"),
        count_changed("empty", -1), {{barrier_of("empty"), kStage}});
  plant(64, "no proxy fence between the reads of a stage and the copy that fills it again", reads,
        erased(places_.find("fence.proxy", "load_role")), {{kUnfenced}});
}

void Sm90Plants::preparing() {
  const size_t a_full = at_ring("mbarrier.try_wait", role_, "a_full");
  const size_t ready = at_ring("mbarrier.try_wait", "multiply_role", "ready");
  const size_t bytes = at_ring("mbarrier.arrive.expect_tx", "load_role", "a_full");
  const size_t arrive = at_ring("mbarrier.arrive", role_, "ready");
  const size_t fence = at("fence.proxy", role_);
  const size_t together = next(fence, "bar.warp.sync");
  // Bytes of a copy: of the factors of A in a stage, or of a panel of an A of 16 bits.
  const int64_t copy = plan_.packed_a() ? plan_.scales.sfa_bytes : a16_.bytes / plan_.mma.steps;
  plant(2, "too few bytes expected on a_full: one of the copies forgotten", bytes, more(bytes, 2, -copy),
        {{barrier_of("a_full"), kStage}});
  plant(3, "too many bytes expected on a_full: one of the copies counted twice", bytes, more(bytes, 2, copy),
        {{barrier_of("a_full")}});
  plant(8, "the warps that prepare A do not wait for it", a_full, no_wait(a_full),
        {{barrier_of("a_full"), kStage}});
  plant(8, "no wait for the warps that prepare A", ready, no_wait(ready), {{barrier_of("ready"), kSums}});
  plant(4, "the wait for the warps that prepare A starts with the wrong parity", ready,
        [ready](Function& f) { flip_operand(f, ready, 2, 1); }, {{barrier_of("ready"), kSums}});
  plant(30, "one warp too few completes ready", at_ring("mbarrier.init", "prologue", "ready"),
        count_changed("ready", -1), {{barrier_of("ready"), kSums}});
  plant(12, "no fence.proxy.async between the stores of what is prepared and the wgmma", fence,
        erased({fence}), {{kUnfenced}});
  plant(12, "the warps that prepare A arrive on ready before their fence", fence,
        [fence, behind = next(arrive, "bar.warp.sync")](Function& f) { move_behind(f, fence, behind); },
        {{kUnfenced}});
  plant(13, "one lane fences for its warp, before that has met", fence,
        [fence](Function& f) {
          Operand lane;
          lane.kind = Operand::Kind::kSpecial;
          lane.name = "%laneid";
          const Operand copy = of_register(fresh_register(f, sim::ptx::Type::kB32));
          const Operand first = of_register(fresh_register(f, sim::ptx::Type::kPred));
          const Statement like = f.body[fence];
          f.body[fence].guarded = true;
          f.body[fence].guard = first.reg;
          insert(f, fence, make(like, "setp.eq.u32", {first, copy, integer(0)}));
          insert(f, fence, make(like, "mov.u32", {copy, lane}));
        },
        {{kUnfenced}});
  plant(39, "the elected lane arrives on ready before its warp has met", together, erased({together}),
        {{{{"warp-*", "race-*", "proxy-*"}, {}, {}, {}}}});
  if (!plan_.orders_a()) return;
  const size_t loaded = at("bar.warp.sync", "order_role/order_rows");
  plant(71, "lanes write A in order over what others may still have to load", loaded, erased({loaded}),
        {{{{"race-lanes"}, {"ld.shared", "st.shared"}, {}, {}}}});
}

void Sm90Plants::panels() {
  const size_t full = at_ring("mbarrier.try_wait", "multiply_role", "panel_full");
  const size_t empty = at_ring("mbarrier.try_wait", "load_panels_role", "panel_empty");
  const size_t bytes = at_ring("mbarrier.arrive.expect_tx", "load_panels_role", "panel_full");
  const size_t release = at_ring("mbarrier.arrive", "multiply_role", "panel_empty");
  constexpr int64_t kRows = 8 * 128;  // bytes of eight rows of a panel
  plant(2, "too few bytes expected of a panel: eight rows forgotten", bytes, more(bytes, 2, -kRows),
        {{barrier_of("panel_full"), kStage}});
  plant(8, "no wait for a panel", full, no_wait(full), {{barrier_of("panel_full"), kStage}});
  plant(9, "no wait for an empty panel", empty, no_wait(empty), {{barrier_of("panel_full"), kStage}});
  plant(10, "the release names the next panel's barrier", release, more(release, 1, 8),
        {{barrier_of("panel_empty"), kStage}});
}

void Sm90Plants::multiplication() {
  const std::vector<size_t> waits = places_.find("wgmma.wait_group", "multiply_role");
  const size_t fence = at("wgmma.fence", "multiply_role"), mma = at("wgmma.mma_async", "multiply_role");
  plant(11, "a stage is freed while wgmma may still read it: two groups may be under way", waits.at(0),
        more(waits[0], 0, 1), {{kStage, kInFlight}});
  plant(82, "the sums are taken while the last wgmma add to them", waits.back(), erased({waits.back()}),
        {{kInFlight}});
  plant(81, "no wgmma.fence between the fragments and the wgmma that read them", fence, erased({fence}),
        {{{{}, {}, {}, {"wgmma.fence"}}}});
  plant(27, "the descriptor of A says 64-byte swizzle, the tensor map 128", mma,
        [all = places_.find("wgmma.mma_async", "multiply_role")](Function& f) {
          for (size_t n = all.size(); n-- > 0;) flip_operand(f, all[n], 2, int64_t(3) << 62);
        },
        {{{{"descriptor-swizzle"}, {"wgmma"}, {}, {"matrix descriptor"}}}});
}

// Sums are sent to the CTA that finishes their rows: where they lie in the rings when all CTAs have left
// theirs, else to memory of their own when the barriers are initialised (reduce.cuh).
void Sm90Plants::split() {
  const size_t bytes = at_ring("mbarrier.arrive.expect_tx", "prologue", "sums_full");
  const size_t sums = at_ring("mbarrier.try_wait", "multiply_role/compute/reduce", "sums_full");
  const size_t met = at("barrier.cluster.wait", "multiply_role/compute/reduce");
  constexpr int64_t kOfWarp = 32 * 16;  // bytes of a block of eight rows of one warp
  const Answer counted = barrier_of("sums_full");
  plant(1, "the sums of others are expected without their bytes", bytes, without_bytes(bytes),
        {{counted, kSent}});
  plant(2, "too few bytes of sums expected: those of a warp forgotten", bytes, more(bytes, 2, -kOfWarp),
        {{counted, kSent}});
  plant(3, "too many bytes of sums expected: a warp counted twice", bytes, more(bytes, 2, kOfWarp),
        {{counted}});
  plant(30, "one arrival more than there is completes the barrier of sums",
        at_ring("mbarrier.init", "prologue", "sums_full"), count_changed("sums_full", 1), {{counted}});
  plant(68, "sums of others are added without a wait for them", sums, no_wait(sums), {{counted, kSent}});
  // The barrier's address comes before the places.
  const size_t barrier = at("mapa", "multiply_role/compute/reduce", 0),
               place = at("mapa", "multiply_role/compute/reduce", 1);
  plant(52, "sums count on a barrier of the wrong rank", barrier,
        [barrier](Function& f) { flip_operand(f, barrier, 2, 1); }, {{counted, kSent, kOtherCta}});
  plant(52, "sums go to a place of the wrong rank", place,
        [place](Function& f) { flip_operand(f, place, 2, 1); }, {{counted, kSent, kOtherCta}});
  if (!sums_in_rings()) {
    // Results of eight rows of 32 columns lie where an A in NVFP4 was, which those that multiply do not read.
    const size_t all = at("barrier.cta.sync", "multiply_role/compute/reduce");
    if (plan_.tile.m > 8 || plan_.consumers.columns > 32)
      plant(47, "results are written where the rings were before all warps have read theirs", all,
            erased({all}), {{kSums}});
    const size_t fence = at("fence.mbarrier_init", "prologue");
    plant(22, "sums are sent before the barrier that they count on need be initialised", met, erased({met}),
          {{{{"mbarrier-init-order", "cluster-start"}, {}, {}, {"no mbarrier was initialised"}}}});
    plant(23, "no fence.mbarrier_init before a relaxed cluster arrive", fence, erased({fence}),
          {{{{"mbarrier-init-fence"}, {}, {}, {}}}});
    return;
  }
  plant(49, "sums are sent over the rings of their owner before all need have read them", met, erased({met}),
        {{kSent}});
  // Those that multiply have their own copy of the arrival, and the other roles one.
  plant(49, "the arrivals before sums are sent over rings release nothing", met,
        [arrives = places_.find("barrier.cluster.arrive", "meet_cluster")](Function& f) {
          for (size_t i : arrives) replace_qualifier(f.body[i], "release", "relaxed");
        },
        {{kSent}});
}

// CTAs leave the sums of their parts in global memory, and the last one to come adds them up
// (stream_parts.cuh).
void Sm90Plants::stream() {
  const size_t look = at("ld.acquire", "gather"), count = at("atom", "gather"),
               met = at("barrier.cta.sync", "gather");
  const Answer parts = {{"race-data"}, {"ld.global", "st.global", "ld.acquire", "atom"}, {}, {}};
  const auto qualified = [](size_t i, const char* from, const char* to) {
    return [=](Function& f) { replace_qualifier(f.body[i], from, to); };
  };
  plant(76, "parts are counted without a release", count, qualified(count, "acq_rel", "acquire"), {{parts}});
  plant(76, "the last to count has not acquired", count, qualified(count, "acq_rel", "release"), {{parts}});
  plant(76, "parts are counted at CTA scope", count, qualified(count, "gpu", "cta"), {{parts}});
  plant(76, "a CTA that finds all others there has not acquired", look, qualified(look, "acquire", "relaxed"),
        {{parts}});
  plant(70, "a CTA counts itself before all of its threads have left their sums", met, erased({met}),
        {{parts}});
  plant(77, "parts are counted without an atomic", count,
        [count](Function& f) {
          const Statement like = f.body[count];
          const Operand sum = of_register(fresh_register(f, sim::ptx::Type::kB32));
          f.body[count] = make(like, "st.global.u32", {like.operands[1], sum});
          insert(f, count, make(like, "add.u32", {sum, like.operands[0], like.operands[2]}));
          insert(f, count, make(like, "ld.global.u32", {like.operands[0], like.operands[1]}));
        },
        {{parts}});
  // The number of others is compared with what the look has found, and what the count.
  const size_t others = writer(statement(next(look, "setp.eq.s32")).operands[2].reg, "add.s32");
  plant(50, "a CTA adds up when one part is missing", others, more(others, 2, -1), {{parts}, true});
  const size_t shared = writer(statement(look).operands[1].items.at(0).reg, "add.s64");
  plant(53, "the tiles of a team share a number of parts", shared,
        [shared](Function& f) {
          f.body[shared] =
              make(f.body[shared], "mov.b64", {f.body[shared].operands[0], f.body[shared].operands[1]});
        },
        {{parts}, true});
  // Which place a part has: twice the number of its CTA, and 1 where it begins its tile.
  const size_t left = at("selp.u32", "gather/leave"), added = at("selp.u32", "gather/add");
  plant(53, "both parts of a CTA have the same place", left,
        [left, added](Function& f) {
          for (const size_t i : {left, added}) f.body[i].operands[1] = integer(0);
        },
        {{parts}, true});
  const size_t place = at("mad.lo.s32", "gather/leave");
  plant(52, "a part has the place of the next member", place, more(place, 2, 1), {{parts}, true});
  // Numbers of 16 bits hide the order. The loop over the parts compares each with the CTA's own.
  if (!bench_.subject().instance->epilogue.general) return;
  const size_t own = at("setp.eq.s32", "gather/add");
  const size_t end = at("setp.lt.s32", "gather/add", 1);
  plant(106, "who adds up adds its own part first, then those that follow it", own,
        [own, end](Function& f) {
          const Operand index = f.body[own].operands[1], first = f.body[own].operands[2],
                        count = f.body[end].operands[2];
          const Operand sum = of_register(fresh_register(f, sim::ptx::Type::kB32));
          const Operand turned = of_register(fresh_register(f, sim::ptx::Type::kB32));
          for (size_t i = own; i < end; ++i) {
            if (is(f.body[i], "add.s32")) continue;  // that of the loop
            for (size_t n = 1; n < f.body[i].operands.size(); ++n)
              if (f.body[i].operands[n].kind == Operand::Kind::kRegister &&
                  f.body[i].operands[n].reg == index.reg)
                f.body[i].operands[n] = turned;
          }
          const Statement like = f.body[own];
          insert(f, own, make(like, "rem.u32", {turned, sum, count}));
          insert(f, own, make(like, "add.u32", {sum, index, first}));
        },
        {{}, true});
}

void Sm90Plants::results() {
  const size_t barrier = at("barrier.cta.sync", "multiply_role/compute/finish");
  plant(70, "no barrier between the results of a warpgroup and the lanes that store them", barrier,
        erased(places_.find("barrier.cta.sync", "multiply_role/compute/finish")), {{kSums}});
}

void Sm90Plants::grids() {
  const std::vector<Answer> stale = {{{"race-grids"}, {}, {}, {}}};
  if (plan_.tile.grouped) {
    const size_t wait = at("griddepcontrol.wait", "prologue");
    plant(42, "no griddepcontrol.wait before the sizes of the groups are read", wait, erased({wait}),
          {stale});
    return;  // all others come after this one
  }
  // The kernel behind a pass over A starts when the pass has ended, since the bench limits the launch by
  // max_sms: none of its waits matters there.
  if (a16_.from_pass) return;
  // Those that multiply touch nothing of a launch before A has come from the load role, which has waited.
  const size_t of_multiply_role = next(at("setmaxnreg.inc", ""), "griddepcontrol.wait");
  const std::vector<size_t> waits = places_.find("griddepcontrol.wait", "");
  for (size_t n = 0; n < waits.size(); ++n)
    if (waits[n] != of_multiply_role)
      plant(42, fmt::format("no griddepcontrol.wait in role {} of {}", n + 1, waits.size()), waits[n],
            erased({waits[n]}), {stale});
}

void Sm90Plants::set_up() {
  const size_t barrier = at("barrier.cta.sync", "prologue"), fence = at("fence.mbarrier_init", "prologue");
  const size_t registers = at("setmaxnreg.inc", "");
  plant(plan_.tile.grouped ? 63 : 22, "no barrier between the set-up and the first use of it", barrier,
        erased({barrier}),
        {{{{"race-*", "mbarrier-*"},
           {"mbarrier.init", "st.shared"},
           {},
           {"no mbarrier was initialised", "was never written"}}}});
  if (!plan_.tile.grouped) {
    const size_t arrive = at("barrier.cta.arrive", "prologue");
    plant(41, "the warp that goes on at once is not counted at the barrier of the CTA", arrive,
          erased({arrive}), {{{{"deadlock", "barrier-*"}, {}, {}, {"barrier"}}}});
    plant(41, "the warp that goes on at once counts a warp fewer than the others", arrive,
          more(arrive, 1, -32), {{{{"deadlock", "barrier-*"}, {}, {}, {"barrier"}}}});
  }
  // The other load roles execute fence.proxy.async before every copy.
  if (a16_.stages > 0)
    plant(84, "no fence between mbarrier.init and the first copy", fence, erased({fence}),
          {{{{"mbarrier-init-fence"}, {}, {}, {}}}});
  plant(46, "setmaxnreg asks for more than the other warps gave back", registers, more(registers, 0, 16),
        {{{{"setmaxnreg-*", "deadlock"}, {}, {}, {"setmaxnreg"}}}});
}

std::vector<Planted> Sm90Plants::run() {
  load_roles();
  if (a16_.warps > 0) preparing();
  if (a16_.stages > 0) panels();
  multiplication();
  if (plan_.tile.split_k > 1) split();
  if (plan_.tile.stream_k) stream();
  results();
  grids();
  set_up();
  return std::move(out_);
}

// In the pass a warp hands rows of its own on from lane to lane through shared memory.
class PassPlants : public Planter {
 public:
  using Planter::Planter;
  std::vector<Planted> run();
};

std::vector<Planted> PassPlants::run() {
  const size_t wait = at("griddepcontrol.wait", "for_each_tile");
  const size_t written = at("bar.warp.sync", "prepare_kernel", 0),
               read = at("bar.warp.sync", "prepare_kernel", 1);
  const std::vector<Answer> lanes = {{{"race-lanes"}, {"ld.shared", "st.shared"}, {}, {}}};
  plant(42, "no griddepcontrol.wait before A is read", wait, erased({wait}),
        {{{{"race-grids"}, {}, {}, {}}}});
  plant(71, "rows are read before all lanes need have written them", written, erased({written}), {lanes});
  plant(71, "rows are written again before all lanes need have read them", read, erased({read}), {lanes});
  if (!plan_.tile.grouped) return std::move(out_);
  const size_t table = at("bar.sync", "for_each_tile");
  plant(63, "no barrier between the table of groups and its readers", table, erased({table}),
        {{{{"race-data"}, {"ld.shared", "st.shared"}, {}, {"was never written"}}}});
  return std::move(out_);
}

}  // namespace

std::vector<Planted> planted_in_sm90(const Bench& bench) { return Sm90Plants(bench).run(); }
std::vector<Planted> planted_in_pass(const Bench& bench) { return PassPlants(bench).run(); }

}  // namespace mutation
