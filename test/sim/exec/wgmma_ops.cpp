// wgmma_ops.cpp -- the tensor core of Hopper as a program uses it. The operation is asynchronous and works on
// registers of its threads: from its issue until wgmma.wait_group of a group that holds it, accumulators and
// fragments of A belong to the tensor core, and an instruction that names one is an error (PTX ISA
// 9.7.15.7.3). After a thread has used such registers, a wgmma.fence has to come before the wgmma (PTX ISA
// 9.7.15.7.1). engine/wgmma has the layouts and descriptors, engine/numerics the arithmetic.
#include <algorithm>
#include <bit>

#include "sim/engine/numerics.h"
#include "sim/exec/exec.h"
#include "sim/exec/handlers.h"
#include "sim/exec/tmem_ops.h"

namespace sim {
namespace {

using Use = WgmmaWarp::Use;

uint32_t first_warp(const Warp& warp) { return warp.index / kWarpgroup * kWarpgroup; }
uint32_t part_of(const Warp& warp) { return warp.index % kWarpgroup; }

Warpgroup& group_of(const Warp& warp) {
  auto& groups = warp.cta->warpgroups;
  const size_t index = warp.index / kWarpgroup;
  if (index >= groups.size()) groups.resize(index + 1);
  if (!groups[index]) groups[index] = std::make_unique<Warpgroup>();
  return *groups[index];
}

WgmmaWarp& state_of(Exec& x) {
  if (!x.warp.wgmma) {
    x.warp.wgmma = std::make_unique<WgmmaWarp>();
    x.warp.wgmma->uses.resize(x.grid.kernel.wgmma_registers.size());
  }
  return *x.warp.wgmma;
}

[[noreturn]] void wrong(const std::string& text) { throw Fault(FaultKind::kProtocol, text); }

std::string register_name(const Exec& x, uint32_t id) {
  return "register " + x.grid.kernel.register_names[x.grid.kernel.wgmma_registers[id]];
}

std::string role(const Use& use) { return use.accumulator ? "an accumulator" : "a fragment of A"; }

[[noreturn]] void in_flight(const Exec& x, uint32_t id, const Use& use) {
  wrong(register_name(x, id) + " is " + role(use) + " of a wgmma in flight, which no wgmma.wait_group has " +
        "waited for: " + describe(*use.mma_inst->statement));
}

// Takes the warp to its next wgmma instruction, which has to be the same as that of the other warps of its
// warpgroup. Returns the step, or null if the warp sleeps until all its lanes have come.
Warpgroup::Step* step(Exec& x, const Inst& inst) {
  if (!op::whole_warp(x)) return nullptr;
  const uint32_t first = first_warp(x.warp);
  if (first + kWarpgroup > x.cta.warps.size())
    wrong("wgmma by warp " + std::to_string(x.warp.index) + " of a CTA of " +
          std::to_string(x.cta.warps.size()) + ": a warpgroup is 4 warps, the first of a multiple of 4");
  Warpgroup& group = group_of(x.warp);
  uint64_t& mine = group.at[part_of(x.warp)];
  for (uint32_t part = 0; part < kWarpgroup; ++part)
    if (x.cta.warps[first + part]->live == 0 && group.at[part] <= mine)
      wrong("warp " + std::to_string(first + part) +
            " of the warpgroup has exited and will not execute this");
  if (mine == group.past + group.steps.size()) group.steps.push_back({&inst, nullptr});
  Warpgroup::Step& step = group.steps[mine - group.past];
  if (step.inst != &inst)
    wrong("the warps of a warpgroup execute different wgmma instructions: another warp has executed " +
          describe(*step.inst->statement) + " instead");
  ++mine;
  return &step;
}

// Forgets the steps that all four warps have made.
void tidy(Warpgroup& group) {
  const uint64_t least = *std::min_element(group.at.begin(), group.at.end());
  for (; group.past < least; ++group.past) group.steps.pop_front();
}

void tell(const Exec& x, SyncEvent::Kind kind, int64_t amount = 0) {
  if (!x.watched()) return;
  SyncEvent event;
  event.kind = kind;
  event.cta = x.cta.linear;
  event.amount = amount;
  x.report(event, x.mask);
}

// ---- wgmma.mma_async ----

WgmmaOp wgmma_operands(const Exec& x, const Inst& inst) {
  constexpr size_t kBDesc = 2, kScaleD = 3, kScaleA = 4, kScaleB = 5;
  WgmmaOp op;
  op.n = inst.columns;
  op.formats = inst.formats;
  op.a_in_registers = inst.operands[1].kind == Operand::Kind::kVector;
  if (!op.a_in_registers) op.a_desc = x.uniform(inst.operands[1].value, "the descriptor of A");
  op.b_desc = x.uniform(inst.operands[kBDesc].value, "the descriptor of B");
  op.accumulate = x.uniform(inst.operands[kScaleD].value, "scale-d") != 0;
  const auto constant = [&](size_t i) { return int64_t(inst.operands[i].value.constant); };
  op.negate_a = constant(kScaleA) < 0;
  op.negate_b = constant(kScaleB) < 0;
  if (inst.operands.size() - 1 == kScaleB) return op;  // nothing is transposed
  op.b_mn_major = constant(inst.operands.size() - 1) != 0;
  op.a_mn_major = !op.a_in_registers && constant(inst.operands.size() - 2) != 0;
  return op;
}

void check_same(const WgmmaOp& mine, const WgmmaOp& theirs) {
  if (mine.a_desc != theirs.a_desc || mine.b_desc != theirs.b_desc)
    wrong("the descriptors of a wgmma differ between the warps of the warpgroup");
  if (mine.accumulate != theirs.accumulate)
    wrong("scale-d of a wgmma differs between the warps of the warpgroup");
}

// Checks that a wgmma.fence follows the last use of a register by the thread, or by the tensor core in
// another role.
void check_fenced(const Exec& x, uint32_t id, const Use& use, const WgmmaWarp& state, bool same_place) {
  if (use.user != nullptr && use.user_fences == state.fences)
    wrong(register_name(x, id) + " was last named by " + describe(*use.user->statement) +
          ", and no wgmma.fence comes after that");
  if (use.mma != 0 && !same_place && use.mma_fences == state.fences)
    wrong(register_name(x, id) + " was " + role(use) + " of a wgmma of another shape, " +
          describe(*use.mma_inst->statement) + ", and no wgmma.fence comes after that");
}

// Checks the registers of a wgmma and gives them to the tensor core.
void take_registers(Exec& x, const Inst& inst, bool accumulate) {
  WgmmaWarp& state = *x.warp.wgmma;
  const uint64_t number = state.issued + 1;
  const size_t accumulators = inst.columns / 2;
  const uint16_t depth = uint16_t(dense_depth(inst.formats));
  for (size_t i = 0; i < inst.wgmma_registers.size(); ++i) {
    const uint32_t id = inst.wgmma_registers[i];
    const bool accumulator = i < accumulators;
    const uint16_t place = uint16_t(accumulator ? i : 0);
    Use& use = state.uses[id];
    // The tensor core keeps accumulators of one shape in order by itself, and two uses that only read do not
    // conflict.
    const bool same_place =
        use.mma != 0 && use.accumulator == accumulator &&
        (!accumulator || (use.place == place && use.columns == inst.columns && use.depth == depth));
    const bool flies = use.mma > state.retired;
    if (flies && use.mma != number && !same_place) in_flight(x, id, use);
    check_fenced(x, id, use, state, same_place);
    const uint32_t reg = x.grid.kernel.wgmma_registers[id];
    if ((accumulator ? accumulate && !flies : true) && x.warp.written[reg] != x.mask) {
      Value unwritten;
      unwritten.kind = Value::Kind::kRegister;
      unwritten.reg = reg;
      x.source(unwritten, uint32_t(__builtin_ctz(x.mask & ~x.warp.written[reg])));
    }
    use.mma = number;
    use.accumulator = accumulator;
    use.place = place;
    use.columns = inst.columns;
    use.depth = depth;
    use.mma_fences = state.fences;
    use.mma_inst = &inst;
  }
}

void gather_fragments(Exec& x, const Inst& inst, WgmmaGathering& mma) {
  const int warp = int(part_of(x.warp)), size = element_bytes(mma.op.formats.a);
  for (int j = 0; j < int(inst.operands[1].items.size()); ++j)
    for (int lane = 0; lane < 32; ++lane) {
      const uint32_t bits = uint32_t(x.source(inst.operands[1].items[size_t(j)], uint32_t(lane)));
      const MatrixCell cell = wgmma_a_cell(warp, lane, j);
      float* to = &mma.a[size_t(cell.row * mma.op.depth() + cell.column / size)];
      for (int e = 0; e < 4 / size; ++e)
        to[e] = wgmma_element(mma.op, bits >> (8 * size * e) & (~0u >> (32 - 8 * size)), false);
    }
}

// Visits the accumulators of a warp, by register: visit(register, places), which are the indices into D of
// its lanes.
template <class Visit>
void for_accumulators(const Inst& inst, int part, Visit&& visit) {
  for (int i = 0; i < int(inst.operands[0].items.size()); ++i) {
    int places[32];
    for (int lane = 0; lane < 32; ++lane) {
      const MatrixCell cell = wgmma_d_cell(part, lane, i);
      places[lane] = cell.row * inst.columns + cell.column;
    }
    visit(inst.operands[0].items[size_t(i)].reg, places);
  }
}

void execute(Cta& cta, uint32_t first, const Inst& inst, WgmmaGathering& mma) {
  const WgmmaOp& op = mma.op;
  static thread_local std::vector<float> b, d;
  b.resize(size_t(op.n * op.depth()));
  d.resize(size_t(kWgmmaRows * op.n));
  if (!op.a_in_registers) read_wgmma_a(op, cta.shared, mma.a.data());
  read_wgmma_b(op, cta.shared, b.data());
  if (op.accumulate)
    for (uint32_t part = 0; part < kWarpgroup; ++part) {
      const uint64_t* registers = cta.warps[first + part]->registers.get();
      for_accumulators(inst, int(part), [to = d.data(), registers](uint32_t reg, const int(&places)[32]) {
        for (uint32_t lane = 0; lane < 32; ++lane)
          to[places[lane]] = std::bit_cast<float>(uint32_t(registers[reg * 32 + lane]));
      });
    }
  mma_dense_tile(mma.a.data(), b.data(), op.formats, kWgmmaRows, op.n, op.accumulate, d.data());
  for (uint32_t part = 0; part < kWarpgroup; ++part) {
    Warp& warp = *cta.warps[first + part];
    for_accumulators(inst, int(part), [&warp, from = d.data()](uint32_t reg, const int(&places)[32]) {
      uint64_t* to = &warp.registers[reg * 32];
      for (uint32_t lane = 0; lane < 32; ++lane) to[lane] = std::bit_cast<uint32_t>(from[places[lane]]);
      warp.written[reg] = 0xFFFFFFFF;
    });
  }
  ++group_of(*cta.warps[first]).complete;
}

AsyncIssue wgmma_facts(const Exec& x, const WgmmaOp& op) {
  AsyncIssue facts;
  facts.kind = AsyncIssue::Kind::kWgmma;
  facts.mask = x.mask;
  facts.wgmma = &op;
  for (const auto& ranges : {wgmma_bytes_of_a(op, int(part_of(x.warp))), wgmma_bytes_of_b(op)})
    for (const ByteRange& range : ranges) {
      Region region;
      region.memory = Memory::kShared;
      region.cta = x.cta.linear;
      region.address = range.offset;
      region.bytes = range.bytes;
      facts.reads.push_back(region);
    }
  return facts;
}

}  // namespace

void use_wgmma_registers(Exec& x, const Inst& inst) {
  WgmmaWarp& state = *x.warp.wgmma;
  for (const uint32_t id : inst.wgmma_registers) {
    Use& use = state.uses[id];
    if (use.mma > state.retired) in_flight(x, id, use);
    use.user = &inst;
    use.user_fences = state.fences;
  }
}

void check_wgmma_exit(const Warp& warp) {
  if (!warp.wgmma) return;
  const WgmmaWarp& state = *warp.wgmma;
  if (state.issued > state.retired)
    wrong("lanes exit, but warp " + std::to_string(warp.index) +
          " has not waited for its wgmma (wgmma.wait_group)");
  const Warpgroup& group = group_of(warp);
  const uint32_t first = first_warp(warp);
  if (warp.live != 0) return;
  for (uint32_t part = 0; part < kWarpgroup; ++part)
    if (group.at[part] > group.at[part_of(warp)])
      wrong("warp " + std::to_string(warp.index) + " exits, but warp " + std::to_string(first + part) +
            " of its warpgroup has executed a wgmma instruction that it has not");
}

std::string wgmma_wait_text(const Warp& warp, uint64_t operations) {
  const Warpgroup& group = group_of(warp);
  std::string out = "waits for " + std::to_string(operations) + " wgmma, of which " +
                    std::to_string(group.complete) + " are complete";
  for (uint32_t part = 0; part < kWarpgroup; ++part)
    if (group.at[part] < group.at[part_of(warp)])
      out += "; warp " + std::to_string(first_warp(warp) + part) + " of its warpgroup is behind, at wgmma " +
             "instruction " + std::to_string(group.at[part]) + " of " +
             std::to_string(group.at[part_of(warp)]);
  return out;
}

static void check_start(const Exec& x, const char* name, uint64_t descriptor) {
  const SmemDescriptor d = decode_wgmma_descriptor(descriptor);
  if (starts_inside_pattern(d))
    x.remark("descriptor-row",
             std::string(name) + " starts at " + hex(d.start) + ", in row " +
                 std::to_string(d.start / d.span % 8) + " of a swizzle pattern, but the base offset is 0",
             "a start in the first row of a pattern, or the base offset");
}

namespace op {

void wgmma_mma(Exec& x, const Inst& inst) {
  WgmmaWarp& state = state_of(x);
  Warpgroup::Step* const at = step(x, inst);
  if (at == nullptr) return;
  if (state.fences == 0) wrong("no wgmma.fence comes before the first wgmma of the warpgroup");
  const WgmmaOp op = wgmma_operands(x, inst);
  if (at->mma) {
    check_same(op, at->mma->op);
  } else {
    sim::check_wgmma(op);
    if (!op.a_in_registers) check_start(x, "matrix A", op.a_desc);
    check_start(x, "matrix B", op.b_desc);
    at->mma = std::make_shared<WgmmaGathering>();
    at->mma->op = op;
    at->mma->a.resize(size_t(kWgmmaRows * op.depth()));
  }
  const std::shared_ptr<WgmmaGathering> mma = at->mma;
  take_registers(x, inst, op.accumulate);
  if (op.a_in_registers) gather_fragments(x, inst, *mma);
  ++state.issued;
  const uint32_t first = first_warp(x.warp);
  mma->numbers.push_back(x.announce(0, x.watched() ? wgmma_facts(x, op) : AsyncIssue{}));
  if (mma->numbers.size() == kWarpgroup)
    x.launch_parts(AsyncOp::Kind::kWgmma, first, mma->numbers,
                   [&cta = x.cta, first, &inst, mma] { execute(cta, first, inst, *mma); });
  tidy(group_of(x.warp));
}

void wgmma_fence(Exec& x, const Inst& inst) {
  WgmmaWarp& state = state_of(x);
  if (step(x, inst) == nullptr) return;
  tidy(group_of(x.warp));
  ++state.fences;
  tell(x, SyncEvent::Kind::kWgmmaFence);
}

void wgmma_commit(Exec& x, const Inst& inst) {
  WgmmaWarp& state = state_of(x);
  if (step(x, inst) == nullptr) return;
  tidy(group_of(x.warp));
  state.groups.push_back(state.issued);
  tell(x, SyncEvent::Kind::kWgmmaCommit);
}

void wgmma_wait(Exec& x, const Inst& inst) {
  WgmmaWarp& state = state_of(x);
  if (!x.fragment->entered) {
    if (step(x, inst) == nullptr) return;
    tidy(group_of(x.warp));
  }
  const uint64_t allowed = x.uniform(inst.operands[0].value, "the number of groups");
  const uint64_t target = state.groups.size() > allowed ? state.groups[state.groups.size() - 1 - allowed] : 0;
  x.fragment->entered = group_of(x.warp).complete < target;
  if (x.fragment->entered) {
    Wait w;
    w.kind = Wait::Kind::kWgmma;
    w.generation = target;
    x.wait(std::move(w), false);
    return;
  }
  state.retired = std::max(state.retired, target);
  tell(x, SyncEvent::Kind::kWgmmaWait, int64_t(allowed));
}

}  // namespace op
}  // namespace sim
