// planted.cpp -- see planted.h.
#include <fmt/core.h>

#include "mutation/planter.h"

namespace mutation {
namespace {

using sim::ptx::Type;
using Edit = Planter::Edit;

// These bugs are planted in kernels with one CTA and two accumulator pairs, or of one product two
// accumulators.
class Plants : public Planter {
 public:
  using Planter::Planter;
  std::vector<Planted> run();

 private:
  const std::string covering_ = covering_ring();

  void full_and_empty();
  void accumulators();
  void set_up_and_teardown();
  void tensor_memory();
  void roles();
  void two_rings();
  void not_here();
};

void Plants::full_and_empty() {
  const size_t arrive_operands = at_ring("mbarrier.arrive.expect_tx", "load_role", "full");
  const size_t arrive_scales = at_ring("mbarrier.arrive.expect_tx", "load_role", "scale_full");
  const size_t wait_full = at_ring("mbarrier.try_wait", "mma_role/multiply/wait", "full");
  const Answer& covering_barrier = covering_ == "empty" ? kEmptyBarrier : kScaleBarrier;
  const size_t wait_empty = at_ring("mbarrier.try_wait", "load_role/wait", covering_);
  const size_t commit_empty = at_ring("tcgen05.commit", "mma_role", covering_);
  const auto other_parity = [](size_t i) { return [i](Function& f) { flip_operand(f, i, 2, 1); }; };

  plant(1, "arrive.expect_tx announces nothing: a plain arrive", arrive_operands,
        without_bytes(arrive_operands), {{kFullBarrier, kStageRace}});
  plant(2, "too few bytes expected: one scale-factor box forgotten", arrive_scales,
        [i = arrive_scales, box = plan_.scales.sfa_bytes](Function& f) { add_to_operand(f, i, 2, -box); },
        {{kScaleBarrier, kStageRace}});
  plant(
      3, "too many bytes expected: B counted twice", arrive_operands,
      [i = arrive_operands, box = plan_.operands.b_box_bytes](Function& f) { add_to_operand(f, i, 2, box); },
      {{kFullBarrier}});
  plant(4, "the consumer starts with the wrong parity", wait_full, other_parity(wait_full),
        {{kFullBarrier, kStageRace}});
  plant(5, "the producer starts with the wrong parity", wait_empty, other_parity(wait_empty),
        {{covering_barrier}});
  const size_t flip = writer(statement(wait_full).operands[2].reg, "xor");
  plant(6, "the phase bit is not flipped where the ring wraps", flip, [flip](Function& f) { erase(f, flip); },
        {{kFullBarrier, kStageRace}});
  const size_t wrap = at("setp.eq", "mma_role", 0);
  size_t ring = wrap;
  while (!(is(statement(ring), "setp.eq") && statement(ring).operands[2].value == plan_.operands.stages))
    ++ring;
  plant(7, "the consumer's ring is one stage shorter", ring,
        [ring](Function& f) { f.body[ring].operands[2].value -= 1; },
        {{kFullBarrier, kStageRace, kEmptyBarrier}});
  plant(8, "no wait for the full barrier", wait_full, no_wait(wait_full), {{kFullBarrier, kStageRace}});
  plant(9, "no wait for the empty barrier", wait_empty, no_wait(wait_empty), {{kStageRace, kFullBarrier}});
  plant(10, "the commit names the next stage's barrier", commit_empty,
        [i = commit_empty](Function& f) { add_to_operand(f, i, 0, 8); }, {{covering_barrier, kStageRace}});
  plant(11, "an arrive releases the stage instead of a commit", commit_empty, arrival_instead(commit_empty),
        {{kStageRace}});
  plant(30, "one arrival too few completes full", at_ring("mbarrier.init", "prologue", "full"),
        count_changed("full", -1), {{kFullBarrier, kStageRace}});
  plant(30, "one arrival too few completes scale_full", at_ring("mbarrier.init", "prologue", "scale_full"),
        count_changed("scale_full", -1), {{kScaleBarrier, kStageRace}});
  plant(30, "one arrival too many is needed for acc_empty", at_ring("mbarrier.init", "prologue", "acc_empty"),
        count_changed("acc_empty", 1), {{{{"mbarrier-*", "deadlock"}, {}, {"acc_empty"}, {}}}});
  const size_t arrive_a = at_ring("mbarrier.arrive.expect_tx", "load_role", "full", 1);
  const size_t tma_a =
      at_ring("cp.async.bulk.tensor", "load_role", "full", static_cast<size_t>(plan_.mma.products));
  plant(48, "only the bytes of a box that lie inside the tensor are expected", arrive_a,
        [i = arrive_a, row = statement(tma_a).operands[1].items.at(2)](Function& f) {
          const Operand bytes = f.body[i].operands[2];
          const Operand ragged = of_register(fresh_register(f, Type::kPred));
          const Operand fewer = of_register(fresh_register(f, Type::kB32));
          const Operand chosen = of_register(fresh_register(f, Type::kB32));
          const Statement like = f.body[i];
          f.body[i].operands[2] = chosen;
          insert(f, i, make(like, "selp.b32", {chosen, fewer, bytes, ragged}));
          insert(f, i, make(like, "add.s32", {fewer, bytes, integer(-88 * 128)}));
          insert(f, i, make(like, "setp.ge.s32", {ragged, row, integer(128)}));
        },
        {{kFullBarrier, kStageRace}});
}

void Plants::accumulators() {
  const size_t wait_acc = at("mbarrier.try_wait", "epilogue_role/wait");
  const size_t after = at("tcgen05.fence::after_thread_sync", "epilogue_role");
  const size_t before = at("tcgen05.fence::before_thread_sync", "epilogue_role");
  const size_t arrive = at("mbarrier.arrive", "epilogue_role");
  const size_t last_load = places_.find("tcgen05.wait::ld", "epilogue_role").back();
  const std::vector<Answer> tensor = {kTensorRace, kTensorFence};

  plant(15, "no fence::after_thread_sync after a relaxed wait for the accumulators", after,
        [wait_acc, after](Function& f) {
          erase(f, after);
          replace_qualifier(f.body[wait_acc], "acquire", "relaxed");
        },
        {tensor});
  plant(15, "no fence::after_thread_sync after an acquiring wait for the accumulators", after,
        [after](Function& f) { erase(f, after); }, {tensor});
  plant(16, "no fence::before_thread_sync before a relaxed arrival", before,
        [before, arrive](Function& f) {
          replace_qualifier(f.body[arrive], "release", "relaxed");
          erase(f, before);
        },
        {tensor});
  plant(16, "no fence::before_thread_sync before a releasing arrival", before,
        [before](Function& f) { erase(f, before); }, {tensor});
  plant(17, "the accumulators are released before wait::ld", last_load,
        [last_load](Function& f) { erase(f, last_load); }, {tensor});
  const size_t index = at("tcgen05.mma", "mma_role");
  const uint32_t d = statement(index).operands[0].items[0].reg;
  const size_t sum = writer(d, "add.s32");
  const size_t shift = writer(statement(sum).operands[1].reg, "shl.b32");
  plant(35, "the mma always writes the first of the two accumulator pairs", shift,
        [shift](Function& f) {
          f.body[shift] = make(f.body[shift], "mov.b32", {f.body[shift].operands[0], integer(0)});
        },
        {tensor});
}

void Plants::set_up_and_teardown() {
  const size_t barrier = at("bar.sync", "prologue"), alloc = at("tcgen05.alloc", "allocate_tensor_memory");
  plant(22, "no barrier between mbarrier.init and the first use", barrier,
        [barrier](Function& f) { erase(f, barrier); },
        {{{{"race-*", "mbarrier-*"},
           {"mbarrier.init", "tcgen05.alloc"},
           {},
           {"no mbarrier was initialised"}}}});
  const size_t fence = at("fence.mbarrier_init", "prologue");
  plant(84, "no fence between mbarrier.init and the first copy", fence, erased({fence}),
        {{{{"mbarrier-init-fence"}, {}, {}, {}}}});
  const size_t named = at("barrier.cta.sync", "allocate_tensor_memory");
  plant(24, "no barrier between tcgen05.alloc and the loads of the address", named,
        [named](Function& f) { erase(f, named); },
        {{{{"race-data"}, {"tcgen05.alloc", "ld.shared"}, {}, {"never written"}}}});
  const size_t dealloc = at("tcgen05.dealloc", "teardown");
  const std::vector<Answer> allocation = {{{}, {}, {}, {"tcgen05", "tensor memory"}}};
  plant(37, "tensor memory is not freed", dealloc, [dealloc](Function& f) { erase(f, dealloc); },
        {allocation});
  plant(37, "fewer columns are freed than were allocated", dealloc,
        [dealloc](Function& f) { f.body[dealloc].operands[1] = integer(256); }, {allocation});
  plant(37, "allocation after the permit was given up", alloc,
        [alloc](Function& f) { move_behind(f, alloc, alloc + 1); }, {allocation});
  plant(41, "the CTA barrier waits for 416 threads of 384", at("bar.sync", "teardown"),
        [i = at("bar.sync", "teardown")](Function& f) {
          f.body[i].operands = {integer(0), integer(416)};
        },
        {{{{"deadlock"}, {"bar"}, {}, {"416"}}}});
}

void Plants::tensor_memory() {
  // In front of the second box of the first scale stage lie the operands, and the factors of A.
  const int64_t second_box =
      int64_t{plan_.operands.stages} * plan_.operands.stage_bytes + plan_.scales.sfa_bytes;
  const auto every_mma = [this](auto change) {
    return [mmas = places_.find("tcgen05.mma", "mma_role"), change](Function& f) {
      for (size_t n = mmas.size(); n-- > 0;) change(f, mmas[n]);
    };
  };
  const size_t mma = at("tcgen05.mma", "mma_role");
  const std::vector<Answer> uninitialised = {kTensorRace, {{}, {}, {}, {"never written"}}};
  plant(25, "the scale factors of A are read 4 columns on", mma,
        [mma](Function& f) { add_to_operand(f, mma, 4, 4); }, {uninitialised});
  // The scale stage is free for the copy: the load warp waited for it. Its columns belong to the mma thread
  // alone.
  const size_t copy_of_sfa =
      at_ring("cp.async.bulk.tensor", "load_role", "scale_full", static_cast<size_t>(plan_.mma.products));
  plant(
      26, "another thread copies scale factors over columns that mma still read", copy_of_sfa,
      [i = copy_of_sfa, second_box, columns = plan_.tmem.scales, cp = statement(at("tcgen05.cp", "mma_role")),
       base = statement(at("ld.shared", "mma_role"))](Function& f) {
        const Operand start = of_register(fresh_register(f, Type::kB32));
        const Operand first = of_register(fresh_register(f, Type::kB32));
        const Operand descriptor = of_register(fresh_register(f, Type::kB64));
        const Statement like = f.body[i];
        Operand target = cp.operands[0];
        target.items[0] = first;
        Statement copy = make(like, spelling(cp), {target, descriptor});
        insert(f, i + 1, copy);
        insert(f, i + 1, make(like, "mov.b64", {descriptor, integer(70403103916032 + (second_box >> 4))}));
        insert(f, i + 1, make(like, "add.s32", {first, start, integer(columns)}));
        insert(f, i + 1, make(like, spelling(base), {start, base.operands[1]}));
      },
      {{{{"race-async", "race-tensor"}, {"tcgen05.cp"}, {}, {}}}});
  plant(27, "the descriptor of A says 64-byte swizzle, the tensor map 128", mma,
        every_mma([](Function& f, size_t i) { flip_operand(f, i, 1, int64_t(6) << 61); }),
        {{{{"descriptor-swizzle"}, {"tcgen05.mma"}, {}, {}}}});
  const std::vector<size_t> mmas = places_.find("tcgen05.mma", "mma_role");
  const auto per_step = static_cast<size_t>(plan_.mma.per_step);
  plant(28, "A advances 16 bytes a step instead of 32", mmas[per_step],
        [mmas, per_step](Function& f) {
          for (size_t n = mmas.size(); n-- > per_step;)
            add_to_operand(f, mmas[n], 1, -static_cast<int64_t>(n / per_step));
        },
        {{}, true});
  plant(29, "the first step of a tile accumulates", mma,
        [mmas, per_step](Function& f) {
          for (size_t n = per_step; n-- > 0;) {
            const Operand always = of_register(fresh_register(f, Type::kPred));
            f.body[mmas[n]].operands.back() = always;
            insert(f, mmas[n], make(f.body[mmas[n]], "mov.pred", {always, integer(-1)}));
          }
        },
        {uninitialised});
  const size_t load = at("tcgen05.ld", "epilogue_role");
  plant(38, "a warp loads the lanes of the next one", load,
        [load](Function& f) { add_to_operand(f, load, 1, int64_t(32) << 16); },
        {{{{"tmem-lane-bits"}, {}, {}, {}}}});
  plant(45, "the instruction descriptor says ue8m0 scale factors", mma,
        every_mma([](Function& f, size_t i) { flip_operand(f, i, 3, int64_t(1) << 23); }), {{}, true});
  plant(45, "the instruction descriptor names another scale factor of A", mma,
        every_mma([](Function& f, size_t i) { flip_operand(f, i, 3, int64_t(1) << 29); }),
        {{{{}, {}, {}, {"instruction descriptor"}}}});
}

void Plants::roles() {
  const size_t elect = at("elect.sync", "load_role", 1);
  plant(40, "all lanes of the load warp issue the TMA", elect,
        [elect](Function& f) {
          f.body[elect] = make(f.body[elect], "mov.pred", {f.body[elect].operands[0].items[1], integer(-1)});
        },
        {{kFullBarrier, kStageRace, {{}, {}, {"full"}, {"mbarrier"}}}});
  // The loop over the k-tiles ends last.
  const std::vector<size_t> loops = places_.find("setp.ne.s32", "mma_role");
  plant(44, "the consumer's loop ends one k-tile early", loops.back(),
        [i = loops.back()](Function& f) { add_to_operand(f, i, 2, -1); },
        {{kFullBarrier, kEmptyBarrier, kScaleBarrier, kStageRace}});
}

// Plants what the family has beside the list.
void Plants::two_rings() {
  const std::vector<size_t> waits = places_.find("griddepcontrol.wait", "kernel");
  for (size_t n = 0; n < waits.size(); ++n)
    plant(42, fmt::format("no griddepcontrol.wait in one of the {} roles that need it", waits.size()),
          waits[n], erased({waits[n]}), {{{{"race-grids"}, {}, {}, {}}}});
  // The weights of the next grid are those of the one before this one.
  plant(87, "the next grid is let in before this one has waited", waits[0],
        [](Function& f) {
          insert(f, 0, make(f.body[0], "griddepcontrol.launch_dependents", {}));
          f.body[0].guarded = false;
        },
        {{{{"race-grids"}, {}, {}, {}}}});
  plant(55, "no load role drains the stages", at_ring("mbarrier.try_wait", "load_role/drain", "empty"),
        no_waits(all_at_ring("mbarrier.try_wait", "load_role/drain", "empty")), {{kNotDrained}});
  plant(56, "no load role drains the scale stages",
        at_ring("mbarrier.try_wait", "load_role/drain", "scale_empty"),
        no_waits(all_at_ring("mbarrier.try_wait", "load_role/drain", "scale_empty")), {{kNotDrained}});
  // Where the stages cover the scale stages nobody can tell.
  if (covering_ == "empty") return;
  // This is the address of scale_empty[q], as it is computed where it is committed to: from that of
  // scale_full[q].
  const size_t commit = at_ring("tcgen05.commit", "mma_role", "scale_empty");
  const size_t copy = at("tcgen05.cp", "mma_role");
  plant(54, "a scale stage is given back before the mma that read it", commit,
        [commit, copy,
         address = writer(statement(commit).operands[0].items.at(0).reg, "add.s32")](Function& f) {
          const Statement early = f.body[commit], sum = f.body[address];
          erase(f, commit);
          insert(f, copy, early);
          insert(f, copy, sum);
        },
        {{kStageRace, kTensorRace, kScaleBarrier}});
}

void Plants::not_here() {
  const char* const store = "the epilogue stores from registers: no tile of C in shared memory, no TMA store";
  absent(12, "no fence.proxy.async between shared stores and the TMA store", store);
  absent(13, "fence.proxy.async by the storing thread before the barrier that joins the writers", store);
  absent(14, "no barrier between the writers and the TMA store", store);
  absent(18, "no wait::st before the mma reads tensor memory", "nothing is written with tcgen05.st");
  absent(19, "no wait_group.read before a shared tile is reused", store);
  absent(20, "no wait_group.read before the CTA exits", store);
  absent(21, "wait_group.read where the writes are published by a flag", store);
  absent(39, "the elected lane arrives before the lanes that read the stage have met it",
         "the lanes read tensor memory together, by tcgen05.ld and wait::ld of the whole warp; "
         "elect.sync gathers them before the arrival");
  absent(36, "a tile mailbox without a free barrier", "the tile schedule is static: every role computes it");
  absent(43, "a tensor map is patched without its fence", "the tensor maps are kernel parameters");
  absent(46, "setmaxnreg asks for more than the pool holds", "the kernel does not move registers");
  absent(47, "the tile of C aliases a stage that mma still read", store);
}

std::vector<Planted> Plants::run() {
  full_and_empty();
  accumulators();
  set_up_and_teardown();
  tensor_memory();
  roles();
  two_rings();
  not_here();
  return std::move(out_);
}

}  // namespace

std::vector<Planted> planted_in_cta(const Bench& bench) { return Plants(bench).run(); }

}  // namespace mutation
