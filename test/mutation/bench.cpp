// bench.cpp -- see bench.h.
#include "mutation/bench.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "mutation/judges.h"
#include "ref/formats.h"
#include "sim/decode/program.h"
#include "sim/shim/one_kernel.h"
#include "sim/shim/shim.h"
#include "support/compare.h"
#include "support/expected.h"

namespace mutation {
namespace {

using dualgemm_test::Data;
using dualgemm_test::NamedInstance;

// The barriers follow the rings, whose sizes are multiples of this, and shared memory moves by such
// multiples.
constexpr uint32_t kRingsStep = 1024;
constexpr uint64_t kPatience = 64 << 20;  // warp instructions without change; no right kernel waits so long
constexpr size_t kMostSightings = 64;     // of one run; what follows a first error is rarely news
constexpr int32_t kStreamCtas = 9;        // of a launch with stream-K

NamedInstance instance_named(const std::string& name) {
  for (const int32_t products : {2, 1})
    for (const NamedInstance& instance : dualgemm_test::instances_of_device(products))
      if (instance.name == name) return instance;
  throw std::runtime_error("the library has no instance " + name);
}

std::string place_of(const sim::Site& site) {
  if (site.inst == nullptr || site.inst->statement == nullptr) return {};
  return spelling(*site.inst->statement) + " @ " + path_of(*site.inst->statement);
}

uint32_t line_of(const sim::Site& site) {
  return site.inst == nullptr || site.inst->statement == nullptr ? 0 : site.inst->statement->site.ptx_line;
}

Outcome strongest(const Run& run) {
  const auto has = [&](sim::Severity severity) {
    return std::any_of(run.sightings.begin(), run.sightings.end(),
                       [&](const Sighting& s) { return s.severity == severity; });
  };
  if (has(sim::Severity::kError)) return Outcome::kError;
  const auto says = [&](const char* text) { return run.fault.find(text) != std::string::npos; };
  if (says("deadlock") || says("livelock") || says("gave up")) return Outcome::kHang;
  if (!run.fault.empty()) return Outcome::kFault;
  if (has(sim::Severity::kStrict)) return Outcome::kStrict;
  return run.values.empty() ? Outcome::kClean : Outcome::kWrongValues;
}

// Notes the names of the kernels launched.
struct Names : sim::Observer {
  std::vector<std::string> all;
  void start(const sim::GridStart& grid) override { all.push_back(grid.kernel->info.name); }
};

// Notes which instructions of a kernel are executed, and which of them works on which barrier.
struct Executed : sim::Observer {
  explicit Executed(std::string kernel_) : kernel(std::move(kernel_)) {}

  std::string kernel;
  std::set<uint32_t> lines;                      // of the PTX
  std::set<uint32_t> offsets;                    // in a CTA
  std::set<std::pair<uint32_t, uint32_t>> used;  // PTX line, offset
  void start(const sim::GridStart& grid) override {
    if (grid.kernel->info.name != kernel) return;
    first_ = grid.kernel->code.data();
    behind_ = first_ + grid.kernel->code.size();
    seen_.assign(grid.kernel->code.size(), false);
  }
  void instruction(const sim::Thread&, uint32_t, const sim::Inst& inst) override {
    if (!is_own(&inst) || seen_[static_cast<size_t>(&inst - first_)]) return;
    seen_[static_cast<size_t>(&inst - first_)] = true;
    lines.insert(inst.statement->site.ptx_line);
  }
  void sync(const sim::SyncEvent& e) override {
    using Kind = sim::SyncEvent::Kind;
    if (e.kind > Kind::kMbarrierTest || !is_own(e.inst)) return;
    if (e.kind == Kind::kMbarrierInit) offsets.insert(e.mbarrier.offset);
    used.insert({e.inst->statement->site.ptx_line, e.mbarrier.offset});
  }

 private:
  bool is_own(const sim::Inst* inst) const {
    return first_ <= inst && inst < behind_ && inst->statement != nullptr;
  }
  const sim::Inst *first_ = nullptr, *behind_ = nullptr;
  std::vector<bool> seen_;
};

// A ring of barriers, or a set of them, and how many there are.
struct Ring {
  const char* name;
  int32_t count;
};

// Returns the barriers of a CTA in their order in shared memory.
std::vector<Ring> rings_of_plan(const dualgemm::Plan& plan) {
  const int32_t stages = plan.operands.stages;
  if (plan.arch == dualgemm::Arch::kSm90) {
    const int32_t of_warps = plan.a16.warps > 0 ? stages : 0, panels = plan.a16.stages;
    return {{"full", stages},
            {"empty", stages},
            {"a_full", of_warps},
            {"panel_full", panels},
            {"panel_empty", panels},
            {"ready", of_warps},
            {"sums_full", plan.tile.split_k > 1 ? 1 : 0}};
  }
  return {{"full", stages},
          {"empty", stages},
          {"scale_full", plan.scales.stages},
          {"scale_empty", plan.scales.stages},
          {"acc_full", plan.tmem.acc_barriers},
          {"acc_empty", plan.tmem.acc_barriers},
          {"window_free", plan.tmem.resident_scales ? 0 : plan.tmem.windows},
          {"sums_full", plan.tile.split_k > 1 ? 1 : 0}};
}

// Returns the rows of a grouped problem: a small group, one of two tiles where there are enough, and another
// small one, among empty ones. The table of groups is made for 32 of them at a time: one with rows lies in
// each half of these, and one beyond.
std::vector<int32_t> groups_of(int32_t m) {
  std::vector<int32_t> rows(34);
  rows[7] = std::min(3, m);
  rows.back() = std::min(9, m - rows[7]);
  rows[20] = m - rows[7] - rows.back();
  return rows;
}

dualgemm_test::ProblemSet problems_of(const dualgemm_instance_info_t& info, const Shape& shape) {
  const auto a_dtype = static_cast<dualgemm_dtype_t>(info.a_dtype);
  const bool fp8 = a_dtype == DUALGEMM_DTYPE_FP8_E4M3;
  const int32_t k = fp8 ? (shape.k + 31) / 32 * 32 : shape.k;  // whole blocks of MXFP4
  dualgemm_test::ProblemSet set =
      info.grouped ? dualgemm_test::make_offsets(Data::kFullRange, groups_of(shape.m), shape.n, k, 1)
                   : dualgemm_test::make_batch(Data::kFullRange, 1, shape.m, shape.n, k, 1);
  uint64_t seed = 1;
  for (dualgemm_test::Problem& p : set.problems) {
    ++seed;
    if (fp8) {
      p = with_fp8(p, dualgemm_test::Mx::kFullRange, seed);
      for (const int side : {0, 1}) give_exponents(p, side, 0, seed);
    } else if (a_dtype != DUALGEMM_DTYPE_NVFP4) {
      p = with_sixteen_bits(p, a_dtype, seed);  // numbers that only 16 bits have
    }
  }
  return set;
}

// Compares each problem that has rows with its reference.
std::string first_mismatch(const std::vector<dualgemm_test::Output>& out,
                           const std::vector<const ref::Matrix*>& expected) {
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i].m == 0) continue;
    const dualgemm_test::Comparison result = compare(out[i], *expected[i]);
    if (!result.first.empty()) return result.first;
    // Of NVFP4 few codes are within the bound and not those of the exact values.
    if (result.exceptions > 2 + out[i].m * out[i].n / 1000)
      return std::to_string(result.exceptions) + " codes are not those of the exact values";
  }
  return {};
}

size_t first_with_rows(const dualgemm_test::ProblemSet& set) {
  size_t index = 0;
  while (set.problems[index].m == 0) ++index;
  return index;
}

PrecedingBuffers weights_of(const dualgemm_args_t& args, const dualgemm_test::ProblemSet& set) {
  const size_t index = first_with_rows(set);
  const dualgemm_test::Problem& first = set.problems[index];
  PrecedingBuffers out{};
  const auto add = [&](const void* data, size_t bytes) {
    if (data != nullptr)
      out.buffer[out.count++] = spread(static_cast<const uint8_t*>(data) + index * bytes, bytes, false);
  };
  add(args.b1, first.b1.size());
  add(args.b2, first.b2.size());
  add(args.sfb1, first.sfb1.size());
  add(args.sfb2, first.sfb2.size());
  return out;
}

PrecedingBuffers buffers_of(const dualgemm_args_t& args, const dualgemm_test::ProblemSet& set) {
  PrecedingBuffers out{};
  const auto add = [&](const void* data, size_t bytes, bool write) {
    out.buffer[out.count++] = spread(data, bytes, write);
  };
  // What each problem has of its own is that of the first one with rows. C and what lies as it does begin
  // with these rows.
  const size_t index = first_with_rows(set);
  const dualgemm_test::Problem& first = set.problems[index];
  const auto add_own = [&](const void* data, size_t bytes) {
    if (data != nullptr) add(static_cast<const uint8_t*>(data) + index * bytes, bytes, true);
  };
  const size_t problems = set.problems.size(), elements = size_t(first.m) * set.n;
  add(args.a, first.a_of(static_cast<dualgemm_dtype_t>(args.a_dtype)).size(), true);
  if (args.sfa != nullptr) add(args.sfa, first.sfa.size(), true);
  add_own(args.b1, first.b1.size());
  add_own(args.b2, first.b2.size());
  add_own(args.sfb1, first.sfb1.size());
  add_own(args.sfb2, first.sfb2.size());
  add_own(args.b1_row_exponent, first.b1_exponents.size() * sizeof(int16_t));
  add_own(args.b2_row_exponent, first.b2_exponents.size() * sizeof(int16_t));
  add_own(args.alpha1_dev, sizeof(float));
  add_own(args.alpha2_dev, sizeof(float));
  if (args.group_rows != nullptr) add(args.group_rows, problems * sizeof(int32_t), true);
  if (args.a_row_scale != nullptr) add(args.a_row_scale, size_t(first.m) * sizeof(float), true);
  if (args.c_row_scale != nullptr) add(args.c_row_scale, size_t(first.m) * sizeof(float), true);
  const size_t bias = args.bias_dtype == DUALGEMM_DTYPE_FP32 ? sizeof(float) : sizeof(uint16_t);
  add_own(args.bias1, set.n * bias);
  add_own(args.bias2, set.n * bias);
  if (args.c_add != nullptr) add(args.c_add, elements * 2, true);  // all, or a part
  add_own(args.c_global_scale_dev, sizeof(float));
  if (args.amax_out != nullptr) add(args.amax_out, sizeof(float), true);          // a launch reads it, too
  if (args.workspace != nullptr) add(args.workspace, args.workspace_size, true);  // of a launch before
  if (args.sfc != nullptr) add(args.sfc, ref::sf_bytes(first.m, set.n), false);
  if (args.d1 != nullptr) add(args.d1, elements * 2, false);  // all, or a part
  if (args.d2 != nullptr) add(args.d2, elements * 2, false);
  add(args.c, elements / 2, false);  // of an NVFP4 C all, of any other a part
  return out;
}

}  // namespace

const char* name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kClean: return "clean";
    case Outcome::kFault: return "machine fault";
    case Outcome::kHang: return "hang";
    case Outcome::kError: return "E finding";
    case Outcome::kStrict: return "S finding";
    case Outcome::kWrongValues: return "wrong values";
  }
  return "?";
}

Shape smoke_shape(const NamedInstance& instance) {
  const dualgemm_instance_info_t& info = instance.info;
  const int32_t depth = std::max(info.stages, info.scale_stages * info.scale_k_tiles);  // in k-tiles
  // With split-K there is one tile, ragged, whose last share of columns is not empty, and twice as many
  // k-tiles in each slice as the rings hold.
  // Columns are ragged, too, as far as an NVFP4 output allows it.
  const int32_t eight = instance.dtype == DUALGEMM_DTYPE_NVFP4 ? 16 : 8;
  // On 9.0 it is one k-tile more: the last one lies in the first stage, where the sums are kept after it.
  const int32_t more = info.cc_major == 9 ? 1 : 0;
  // With stream-K three teams of three CTAs share five tiles, of as few k-tiles as are worth it. Two teams
  // have two tiles, and their second members parts of both. The members of the third one come to the end of
  // their parts of one tile at the same time.
  if (info.stream_k != 0) return {info.tile_m - 40, 4 * info.tile_n + 16 + eight % 16, 9 * info.tile_k - 144};
  if (info.split_k > 1)
    return {info.tile_m - std::min(8, info.tile_m / 4), info.tile_n - eight,
            info.split_k * (2 * depth + more) * info.tile_k - 144};
  // With groups there are four tiles, in two of the groups one each.
  if (info.grouped) return {info.tile_m + 20, info.tile_n - eight, (depth - 2) * info.tile_k + 112};
  // A pair is twice the work, so it gets two tiles of nearly twice as many k-tiles as the rings hold, or with
  // two accumulators three tiles of as many as they hold; overlapping ones get four tiles, so that each is
  // written twice.
  if (info.cta_group == 2 && !info.overlapped)
    return {info.tile_m - 40, info.acc_stages * info.tile_n + 16 + eight % 16,
            (2 * info.stages / info.acc_stages - 1) * info.tile_k + 112};
  if (info.overlapped)
    return {info.tile_m - 40, 3 * info.tile_n + 16 + eight % 16, (depth - 2) * info.tile_k + 112};
  // With two pairs of accumulators there are 2 x 3 tiles of four k-tiles. With one there are 2 x 2 tiles,
  // each of more k-tiles than there are stages, or the wait for the pair would stand in for the waits inside
  // a tile. The last k-tile has two of its four steps.
  // Without any (9.0) there are 2 x 2 tiles of four k-tiles, too.
  const int32_t columns = std::max(info.acc_stages, 1) * info.tile_n,
                k_tiles = info.acc_stages == 1 ? depth : 3;
  return {info.tile_m + std::min(40, info.tile_m - 3), columns + 16 + eight % 16,
          k_tiles * info.tile_k + 112};
}

Bench* Bench::loaded_ = nullptr;

Bench::~Bench() {
  if (loaded_ != this) return;
  loaded_ = nullptr;
  sim::shim::set_module_editor({});
  sim::shim::reload_modules();
}

Bench::Bench(const std::string& name, Part part, const Shape* shape) {
  const NamedInstance instance = instance_named(name);
  const bool is_pass = part == Part::kPass;
  subject_ = {(is_pass ? "the pass of " : "") + name, &dualgemm::instance(instance.id - 1), is_pass};
  shape_ = shape != nullptr ? *shape : smoke_shape(instance);
  if (is_pass) shape_.m -= 3;  // a warp makes eight rows, the last one fewer
  set_ = problems_of(instance.info, shape_);
  dualgemm_test::SetOptions options = dualgemm_test::use_all_of(instance, set_);
  for (const dualgemm_test::Problem& problem : set_.problems)
    expected_.push_back(dualgemm_test::expected(problem, options, dualgemm_test::parts_of(instance.info)));
  options.max_sms = instance.info.stream_k != 0 ? kStreamCtas : subject_.plan().cluster_size();
  options.flags = DUALGEMM_FLAG_PDL;
  options.alphas_on_device = true;
  // Rows of fp32 would all start at full sectors otherwise.
  if (options.dtype == DUALGEMM_DTYPE_FP32) options.ldc_padding = 1;
  device_ = std::make_unique<dualgemm_test::DeviceSet>(set_, options);
  preceding_ = buffers_of(device_->args(), set_);
  weights_ = weights_of(device_->args(), set_);
  // The library sets the attributes of all its kernels at its first launch; from here on only those of this
  // launch are decoded.
  sim::shim::set_module_editor({});
  sim::shim::reload_modules();
  Names launched;
  launch_to_load(launched);
  launched_ = launched.all;
  // The preceding kernel comes first and the following one last, and between them a pass, if there is one.
  entry_ = launched_.at(is_pass ? 1 : launched_.size() - 2);
  use([this](sim::ptx::Function& f) { kernel_ = f; });
  Executed executed(entry_);
  launch_to_load(executed);
  reached_ = executed.lines;
  name_barriers(executed.offsets);
  for (const auto& [line, offset] : executed.used) add_ring(offset, rings_[line]);
  bits_ = device_->download();
  use(nullptr);
}

const std::set<std::string>& Bench::rings_of(uint32_t ptx_line) const {
  static const std::set<std::string> none;
  const auto found = rings_.find(ptx_line);
  return found == rings_.end() ? none : found->second;
}

void Bench::launch() const {
  launch_preceding(preceding_, nullptr);
  device_->launch(nullptr);
  launch_following(weights_, nullptr);
}

void Bench::launch_to_load(sim::Observer& observer) {
  sim::shim::set_launch_options({nullptr, &observer});
  try {
    launch();
  } catch (const std::runtime_error&) {  // a kernel that fails: its first run will say so
    sim::shim::clear_fault();
  }
  sim::shim::set_launch_options({});
}

void Bench::use(std::function<void(sim::ptx::Function&)> edit, bool in_entry) {
  edit_ = std::move(edit);
  in_entry_ = in_entry || !subject_.instance->epilogue.general || subject_.is_sm90();
  load();
}

void Bench::load() {
  loaded_ = this;
  sim::shim::set_module_editor(
      [this](sim::ptx::Module& module) {
        const auto other = [this](const sim::ptx::Function& f) { return f.name != entry_; };
        // This module is not the library's.
        if (std::all_of(module.functions.begin(), module.functions.end(), other)) return;
        for (sim::ptx::Function& f : module.functions)
          if (edit_ && !f.is_declaration && f.is_entry == in_entry_) edit_(f);
      },
      [this](std::string& text) {  // the first and the last share a module
        for (size_t i = 1; i + 1 < launched_.size(); ++i) sim::shim::keep_kernel(text, launched_[i]);
      });
  sim::shim::reload_modules();
}

void Bench::name_barriers(const std::set<uint32_t>& offsets) {
  if (subject_.is_pass) return;
  std::set<uint32_t> barriers;
  for (const uint32_t offset : offsets) barriers.insert(offset % kRingsStep);
  auto barrier = barriers.begin();
  for (const Ring& ring : rings_of_plan(subject_.plan()))
    for (int32_t i = 0; i < ring.count && barrier != barriers.end(); ++i) ring_of_[*barrier++] = ring.name;
  if (ring_of_.size() != barriers.size())
    throw std::runtime_error(subject_.name + " has " + std::to_string(barriers.size()) +
                             " barriers, and its plan " + std::to_string(ring_of_.size()));
}

void Bench::add_ring(uint32_t offset, std::set<std::string>& rings) const {
  const auto found = ring_of_.find(offset % kRingsStep);
  if (found != ring_of_.end()) rings.insert(found->second);
}

// Reports name a barrier by its shared offset: "mbarrier 0x2fc08", "mbarrier at shared offset 0x2fc08".
std::set<std::string> Bench::rings_in(const std::string& text) const {
  std::set<std::string> out;
  for (const std::string before : {"mbarrier 0x", "mbarrier at shared offset 0x", "mbarrier at offset 0x",
                                   "no mbarrier was initialised at shared offset 0x"})
    for (size_t at = text.find(before); at != std::string::npos; at = text.find(before, at + 1)) {
      const std::string digits = text.substr(at + before.size(), 10);
      add_ring(static_cast<uint32_t>(std::stoul(digits, nullptr, 16)), out);
    }
  return out;
}

Sighting Bench::sighting(const sim::Finding& finding) const {
  std::string said = finding.summary + "\n" + finding.missing;
  for (const std::string& note : finding.notes) said += "\n" + note;
  std::set<std::string> rings = rings_in(said);
  if (finding.has_mbarrier) add_ring(finding.mbarrier.offset, rings);
  return {finding.rule->id,
          finding.summary,
          finding.rule->severity,
          place_of(finding.later),
          finding.has_earlier ? place_of(finding.earlier) : std::string(),
          line_of(finding.later),
          finding.has_earlier ? line_of(finding.earlier) : 0,
          std::move(rings)};
}

std::string Bench::compare_output() {
  try {
    const std::vector<dualgemm_test::Output> out = device_->download();
    std::vector<const ref::Matrix*> c, d[2];
    for (const auto& of_problem : expected_) {
      c.push_back(&of_problem->c);
      for (int side : {0, 1}) d[side].push_back(&of_problem->d[side]);
    }
    const std::string first = first_mismatch(out, c);
    if (first.empty() && out != bits_) return "other bits than in the first run of the kernel as it ships";
    if (!first.empty() || !subject_.instance->epilogue.general) return first;
    for (int side = 0; side < set_.problems[0].products; ++side) {
      const std::string of_d = first_mismatch(device_->download_d(side), d[side]);
      if (!of_d.empty()) return "D" + std::to_string(side + 1) + ": " + of_d;
    }
    const float amax = device_->amax();
    return dualgemm_test::may_be_amax(amax, c, out.front().split_k) ? "" : "amax = " + std::to_string(amax);
  } catch (const std::runtime_error& error) {  // a guard byte was written
    return error.what();
  }
}

Run Bench::run(const Schedule& schedule) {
  Run run;
  run.schedule = schedule;
  if (loaded_ != this) load();
  device_->poison();
  // The statements of a finding die with the module of the next run: reduce them at once.
  Judges judges([&](const sim::Finding& finding) {
    if (finding.rule->severity == sim::Severity::kAdvice || run.sightings.size() >= kMostSightings) return;
    run.sightings.push_back(sighting(finding));
  });
  const auto policy = policy_of(schedule);
  sim::shim::set_launch_options({.policy = policy.get(), .observer = &judges, .patience = kPatience});
  try {
    launch();
    run.values = compare_output();
  } catch (const std::runtime_error& error) {
    run.fault = sim::shim::last_fault_text();
    if (run.fault.empty()) run.fault = error.what();
    run.fault_rings = rings_in(run.fault);
    sim::shim::clear_fault();
  }
  sim::shim::set_launch_options({});
  run.outcome = strongest(run);
  return run;
}

}  // namespace mutation
