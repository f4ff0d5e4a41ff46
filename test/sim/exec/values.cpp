// values.cpp -- operands of an executing instruction: registers with their written lanes, constants, special
// registers, addresses.

#include "sim/exec/exec.h"
#include "sim/exec/report.h"
#include "sim/text.h"

namespace sim {

// Returns a time that advances with every instruction, and faster while all warps only read clocks.
static uint64_t read_clock(const Exec& x) {
  x.warp.clock_read_at = x.grid.stats.warp_instructions;
  return x.grid.stats.warp_instructions + x.grid.skipped;
}

static uint64_t special_value(const Exec& x, Special special, uint32_t lane) {
  const LaunchConfig& config = x.grid.config;
  const Dim3 &b = config.block, &g = config.grid, &c = config.cluster;
  const uint32_t thread = x.warp.index * 32 + lane;
  const uint32_t* ctaid = x.cta.ctaid;
  switch (special) {
#define X(id, text, value) \
  case Special::id:        \
    return value;
#include "sim/decode/specials.def"
#undef X
  }
  return 0;
}

static uint64_t width_of(const Value& value) {
  return value.bits < 64 ? (uint64_t(1) << value.bits) - 1 : ~uint64_t(0);
}

static Fault unwritten(const Exec& x, uint32_t reg, uint32_t lane) {
  const std::string what =
      "register " + x.grid.kernel.register_names[reg] + " is read by lane " + std::to_string(lane);
  const auto known = x.warp.poisoned.find(uint64_t(reg) * 32 + lane);
  if (known == x.warp.poisoned.end()) return Fault(FaultKind::kPoison, what + " but was never written");
  const auto& [origin, unknown] = known->second;
  return Fault(FaultKind::kPoison, what + (unknown == kWhole ? " but" : " but in the bits " + hex(unknown)) +
                                       " holds no value: " + origin->cause + "; it came by " +
                                       describe(*origin->inst->statement));
}

void merge_origin(std::shared_ptr<const Poison>* into, const std::shared_ptr<const Poison>& more) {
  if (*into == nullptr || ((*into)->copied && !more->copied)) *into = more;
}

std::shared_ptr<const Poison> computed(const std::shared_ptr<const Poison>& from) {
  if (from == nullptr || !from->copied) return from;
  return std::make_shared<const Poison>(Poison{from->inst, from->cause});
}

void Exec::make_up(uint32_t reg, uint32_t lane) const {
  outlive(unwritten(*this, reg, lane), 1u << lane);
  Value made_up;
  made_up.kind = Value::Kind::kRegister;
  made_up.reg = reg;
  warp.registers[reg * 32 + lane] = bits(made_up, lane).known;
  warp.written[reg] |= 1u << lane;
}

uint64_t Exec::source(const Value& value, uint32_t lane) const {
  uint64_t out = 0;
  switch (value.kind) {
    case Value::Kind::kRegister:
      if ((warp.written[value.reg] >> lane & 1) == 0) make_up(value.reg, lane);
      out = warp.registers[value.reg * 32 + lane];
      break;
    case Value::Kind::kConstant: out = value.constant; break;
    case Value::Kind::kShared:
      out = (uint64_t(cta.rank) << kRankShift) | (grid.shared_shift + value.constant);
      break;
    case Value::Kind::kParam: out = grid.param_base + value.constant; break;
    case Value::Kind::kSpecial: out = special_value(*this, value.special, lane); break;
    case Value::Kind::kSink: throw Fault(FaultKind::kUnsupported, "_ has no value");
  }
  return value.negated ? out ^ 1 : out;
}

const uint64_t* Exec::sources(const Value& value, uint64_t scratch[32]) const {
  if (value.kind == Value::Kind::kRegister && !value.negated) {
    const uint32_t missing = mask & ~warp.written[value.reg];
    SIM_FOR_LANES(lane, missing) make_up(value.reg, lane);
    return &warp.registers[value.reg * 32];
  }
  const bool same_for_all = value.kind == Value::Kind::kConstant || value.kind == Value::Kind::kShared ||
                            value.kind == Value::Kind::kParam;
  if (same_for_all) {
    const uint64_t one = source(value, 0);
    for (int lane = 0; lane < 32; ++lane) scratch[lane] = one;
    return scratch;
  }
  SIM_FOR_LANES(lane, mask) scratch[lane] = source(value, lane);
  return scratch;
}

uint64_t Exec::uniform(const Value& value, const char* what) const {
  const uint64_t first = source(value, uint32_t(__builtin_ctz(mask)));
  SIM_FOR_LANES(lane, mask) {
    if (source(value, lane) != first)
      throw Fault(FaultKind::kProtocol, std::string(what) + " differs between the lanes of a warp");
  }
  return first;
}

uint64_t Exec::address(const Operand& operand, uint32_t lane) const {
  return source(operand.value, lane) + uint64_t(operand.offset);
}

void Exec::write(const Value& destination, uint32_t lane, uint64_t bits) {
  if (destination.kind == Value::Kind::kSink) return;
  if (destination.bits < 64) bits &= (uint64_t(1) << destination.bits) - 1;
  warp.registers[destination.reg * 32 + lane] = bits;
  warp.written[destination.reg] |= 1u << lane;
}

std::shared_ptr<const Poison> Exec::origin(const std::string& cause, bool copied) const {
  return std::make_shared<const Poison>(Poison{&grid.kernel.code[fragment->pc], cause, copied});
}

std::shared_ptr<const Poison> Exec::origin(const Value& value, uint32_t lane) const {
  const auto known = warp.poisoned.find(uint64_t(value.reg) * 32 + lane);
  if (known != warp.poisoned.end()) return known->second.origin;
  return origin("register " + grid.kernel.register_names[value.reg] + " was never written");
}

Bits Exec::bits(const Value& value, uint32_t lane) const {
  if (value.kind != Value::Kind::kRegister || (warp.written[value.reg] >> lane & 1) != 0)
    return {source(value, lane), 0};
  const auto known = warp.poisoned.find(uint64_t(value.reg) * 32 + lane);
  if (known == warp.poisoned.end()) return {0, width_of(value)};
  const uint64_t held = warp.registers[value.reg * 32 + lane], unknown = known->second.unknown;
  return {(value.negated ? held ^ 1 : held) & ~unknown, unknown & width_of(value)};
}

void Exec::write(const Value& destination, uint32_t lane, Bits bits, std::shared_ptr<const Poison> origin) {
  const uint64_t whole = width_of(destination), unknown = bits.unknown & whole;
  write(destination, lane, bits.known & ~unknown);
  if (unknown == 0 || destination.kind != Value::Kind::kRegister) return;
  warp.written[destination.reg] &= ~(1u << lane);
  warp.poisoned[uint64_t(destination.reg) * 32 + lane] = {std::move(origin),
                                                          unknown == whole ? kWhole : unknown};
}

uint32_t Exec::elected_lane() const {
  if ((mask & (mask - 1)) != 0)
    throw Fault(FaultKind::kProtocol, std::to_string(__builtin_popcount(mask)) +
                                          " lanes execute an instruction that one thread must issue");
  return uint32_t(__builtin_ctz(mask));
}

void Exec::report(SyncEvent& event, uint32_t lanes) const {
  if (grid.observer == nullptr) return;
  tell_accesses();
  event.thread = thread(uint32_t(__builtin_ctz(lanes)));
  event.mask = lanes;
  event.inst = &grid.kernel.code[fragment->pc];
  grid.observer->sync(event);
}

void Exec::remark(const char* rule, const std::string& text, const char* missing) const {
  const Inst& inst = grid.kernel.code[fragment->pc];
  if (grid.observer == nullptr || !grid.remarked.insert({rule, &inst}).second) return;
  grid.observer->remark({rule, text, missing, thread(uint32_t(__builtin_ctz(mask))), mask, &inst});
}

bool Exec::prefetches(const Value& value, const char* rule) const {
  const uint32_t missing = holes(value);
  if (missing == 0) return true;
  remark(rule,
         std::string("what is prefetched is undefined: ") +
             unwritten(*this, value.reg, uint32_t(__builtin_ctz(missing))).what(),
         "");
  return false;
}

// If a policy woke waits again and again, the machine would never find out that nothing can move.
bool Exec::wakes_early() {
  constexpr uint32_t kMost = 4;  // between two changes that a wait of the cluster may depend on
  if (warp.woken_at != cluster.events) {
    warp.woken_at = cluster.events;
    warp.woken = 0;
  }
  if (warp.woken == kMost || !grid.policy.wake_early()) return false;
  ++warp.woken;
  return true;
}

void Exec::launch_async(AsyncOp::Kind kind, uint32_t lane, uint32_t ranks, std::function<void()> land,
                        AsyncIssue&& facts) {
  auto op = std::make_unique<AsyncOp>();
  op->kind = kind;
  op->lane = lane;
  op->ranks = ranks;
  op->land = std::move(land);
  for (const AsyncIssue::Signal& signal : facts.barriers) op->signals.push_back(signal.barrier);
  issue(std::move(op), std::move(facts));
}

void Exec::launch_copy(uint32_t lane, std::unique_ptr<Copy> copy, AsyncIssue&& facts) {
  auto op = std::make_unique<AsyncOp>();
  op->lane = lane;
  op->ranks = copy->ranks();
  if (grid.observer != nullptr) copy->footprint(facts);
  op->copy = std::move(copy);
  issue(std::move(op), std::move(facts));
}

void Exec::launch_parts(AsyncOp::Kind kind, uint32_t first, const std::vector<uint64_t>& numbers,
                        std::function<void()> land) {
  auto op = std::make_unique<AsyncOp>();
  op->kind = kind;
  op->id = numbers.back();
  op->others.assign(numbers.begin(), numbers.end() - 1);
  op->warp = first;
  op->ranks = 1u << cta.rank;
  op->land = std::move(land);
  start(std::move(op));
}

uint64_t Exec::announce(uint32_t lane, AsyncIssue&& facts) {
  facts.id = grid.next_op++;
  if (grid.observer == nullptr) return facts.id;
  facts.instruction = grid.stats.warp_instructions;
  facts.thread = thread(lane);
  if (facts.mask == 0) facts.mask = 1u << lane;
  facts.inst = &grid.kernel.code[fragment->pc];
  grid.observer->issue(facts);
  return facts.id;
}

void Exec::issue(std::unique_ptr<AsyncOp> op, AsyncIssue&& facts) {
  op->warp = warp.index;
  op->id = announce(op->lane, std::move(facts));
  start(std::move(op));
}

void Exec::start(std::unique_ptr<AsyncOp> op) {
  op->inst = &grid.kernel.code[fragment->pc];
  op->issuer = &cta;
  cluster.pending.push_back(std::move(op));
  ++cluster.pending_changes;
  ++grid.stats.async_operations;
  changed();
  if (grid.policy.at_once()) complete_youngest(cluster);
}

}  // namespace sim
