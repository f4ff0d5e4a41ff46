// mutation_main.cpp -- `make mutation`: plants bugs in the PTX that ships and reports which of them the
// simulator catches, and whether it names the cause. It exits non-zero on any survivor, any bug planted by
// hand whose report is not the right one, any wrong or idle table entry, any unclean control.
#include <fmt/core.h>
#include <fnmatch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <set>

#include "mutation/command.h"
#include "mutation/equivalent.h"
#include "mutation/judges.h"
#include "mutation/parallel.h"
#include "mutation/planted.h"
#include "mutation/score.h"
#include "support/device_problem.h"

namespace mutation {
namespace {

constexpr unsigned kSecondsPerMutant = 60;
constexpr size_t kUnchanged = 3;  // schedules for what must survive: equivalents and controls

struct Options {
  std::string only = "*", instance = "*", json;
  unsigned workers = default_workers();
  size_t schedules = escalation().size();
  bool list = false, progress = false, repeat = false;
};

// This says what is done to which instance. The same change of the same instruction is made in the first
// instance that has it, and in later ones as long as the earlier ones could not tell: there the depths of the
// rings, say, make up for it. Beside an instance stands what the bugs planted in it by hand are about. A run
// takes those that are for the GPU that is simulated.
struct Campaigned {
  const char* instance;
  bool planted;
  Breadth breadth;
  Part part = Part::kKernel;
};
constexpr Campaigned kCampaign[] = {
    {"m128n64k256_fp16", true, Breadth::kAll},                // one CTA per tile, grid dependencies
    {"m256n64k256_fp16", true, Breadth::kSynchronisation},    // CTA pairs, scale stages of two k-tiles
    {"m64n128k256g_fp16", true, Breadth::kSynchronisation},   // groups
    {"m64n128k256s4_fp16", true, Breadth::kSynchronisation},  // the exchange of split-K
    {"m256n128k256o_fp16", true, Breadth::kSynchronisation},  // overlapping accumulators, windows
    {"m256n192k256_fp16", false, Breadth::kSynchronisation},
    {"m256n128k256og_fp16", false, Breadth::kSynchronisation},
    {"m256n128k256s2_fp16", true, Breadth::kSynchronisation},  // the exchange between pairs
    {"m128n128k256_fp16", false, Breadth::kSynchronisation},
    // Of general instances the epilogue is attacked, with its stores and what its lanes exchange. What is
    // planted is that it waits for no preceding grid. With split-K or groups it touches nothing of a launch
    // before it has met other warps, which have waited.
    {"m128n64k256_general_nvfp4", true, Breadth::kAll},     // stores along rows, factors of blocks
    {"m64n128k256s4_general_nvfp4", false, Breadth::kAll},  // a transposition, an exchange of partial sums
    {"m256n128k256o_general_bf16", true, Breadth::kAll},    // pairs, overlapping accumulators
    {"m64n128k256_general_fp8", true, Breadth::kAll},       // stores of single elements down columns
    {"m128n128k256g_general_fp32", false, Breadth::kAll},   // groups, stores of whole sectors
    // One product.
    {"m128n128k256_one_fp16", true, Breadth::kAll},                // one CTA per tile, one mma per step
    {"m256n128k256_one_fp16", true, Breadth::kSynchronisation},    // CTA pairs, scale stages of two k-tiles
    {"m64n128k256g_one_fp16", true, Breadth::kSynchronisation},    // groups
    {"m64n128k256s4_one_fp16", true, Breadth::kSynchronisation},   // the exchange of split-K
    {"m256n256k256o_one_fp16", true, Breadth::kSynchronisation},   // overlapping accumulators, windows
    {"m256n256k256s2_one_fp16", true, Breadth::kSynchronisation},  // the exchange between pairs
    {"m128n128k256_one_general_bf16", true, Breadth::kAll},        // an addend along rows
    {"m64n128k256s4_one_general_fp32", false, Breadth::kAll},      // an addend down columns
    // Those for compute capability 9.0 are attacked as a whole, general ones too.
    {"sm90m8n32k256s2_fp16", true, Breadth::kSynchronisation},    // expanders, the exchange of split-K
    {"sm90m16n128k256g_fp16", true, Breadth::kSynchronisation},   // groups, results through stmatrix
    {"sm90m64n64k256s2x_fp16", true, Breadth::kSynchronisation},  // A from a pass
    {"sm90m128n64k256x_fp16", true, Breadth::kSynchronisation},   // a ring of panels
    {"sm90m16n32k256s2_general_nvfp4", false, Breadth::kSynchronisation},
    // An A of 16 bits. After a pass its kernels are those of an A in NVFP4, but for the type of the wgmma.
    {"sm90m16n64k256s2_afp16_fp16", true, Breadth::kSynchronisation},  // orderers, the exchange of split-K
    {"sm90m64n64k256_abf16_bf16", true, Breadth::kSynchronisation},    // rows by turns, whole tiles
    // One product: a warpgroup has twice the columns.
    {"sm90m8n64k256s2_one_fp16", true, Breadth::kSynchronisation},
    {"sm90m16n128k256g_one_fp16", true, Breadth::kSynchronisation},
    {"sm90m64n64k256s4x_one_fp16", true, Breadth::kSynchronisation},
    {"sm90m128n128k256x_one_fp16", true, Breadth::kSynchronisation},
    {"sm90m128n128k256skx_one_fp16", true, Breadth::kSynchronisation},  // the exchange of stream-K
    {"sm90m128n128k256skx_one_general_fp32", true, Breadth::kNothing},  // its order, which fp32 shows
    {"sm90m192n64k256skx_fp16", false, Breadth::kSynchronisation},      // sums of two products, in turns
    {"sm90m32n64k256s4_one_fp16", false, Breadth::kSynchronisation},
    {"sm90m16n64k256s2_one_general_bf16", false, Breadth::kSynchronisation},  // an addend
    {"sm90m64n128k256_one_general_bf16", false, Breadth::kSynchronisation},   // two groups of columns
    {"sm90m16n64k256s4_one_afp16_fp16", true, Breadth::kSynchronisation},
    {"sm90m64n128k256_one_abf16_bf16", true, Breadth::kSynchronisation},
    // The pass over A, small enough for everything.
    {"sm90m128n64k256xg_fp16", true, Breadth::kAll, Part::kPass},         // expands NVFP4, of groups
    {"sm90m64n64k256s2x_afp16_fp16", true, Breadth::kAll, Part::kPass},   // puts 16 bits in order
    {"sm90m128n128k256skx_one_fp16", false, Breadth::kAll, Part::kPass},  // sets the numbers of parts to 0
};

std::vector<Scored> campaign(Bench& bench, std::vector<Scored> jobs, const std::vector<Expectation>& expected,
                             const Options& options) {
  const auto told = [&](const Scored& s) {
    if (!options.progress) return;
    fmt::print("{} / {}: {} after {}{}\n", s.mutant.subject.name, s.mutant.id, name(s.verdict.outcome),
               s.verdict.runs, s.verdict.diagnosed ? "" : ", not diagnosed");
    std::fflush(stdout);
  };
  run_forked(
      jobs.size(), options.workers, kSecondsPerMutant,
      [&](size_t i) {
        const size_t most =
            jobs[i].equivalent.empty() ? options.schedules : std::min(options.schedules, kUnchanged);
        return nlohmann::json(try_out(bench, jobs[i].mutant, expected[i], most)).dump();
      },
      [&](size_t i, const std::string& text) {
        jobs[i].verdict = nlohmann::json::parse(text).get<Verdict>();
        const Verdict& v = jobs[i].verdict;
        const bool failed = v.outcome == Outcome::kHang || v.outcome == Outcome::kFault ||
                            v.rules.find("deadlock") != std::string::npos;
        if (failed && may_fail(jobs[i].mutant)) jobs[i].equivalent.clear();
        told(jobs[i]);
      },
      [&](size_t i, const std::string& how) {
        jobs[i].verdict.id = jobs[i].mutant.id;
        jobs[i].verdict.outcome = Outcome::kHang;
        jobs[i].verdict.crash = how;
        told(jobs[i]);
      });
  return jobs;
}

class Campaign {
 public:
  explicit Campaign(const Options& options) : options_(options) {}

  void run() {
    const auto is_sm90 = [](const std::string& instance) { return instance.starts_with("sm90"); };
    const bool on_sm90 = is_sm90(dualgemm_test::all_instances().at(0).name);
    bool any = false;
    for (const Campaigned& c : kCampaign) {
      if (is_sm90(c.instance) != on_sm90) continue;
      Bench bench(c.instance, c.part);
      const bool run = fnmatch(options_.instance.c_str(), bench.subject().name.c_str(), 0) == 0;
      any = any || run;
      if (run && c.planted) run_planted(bench);
      if (c.breadth != Breadth::kNothing) run_sweep(bench, c.breadth, run);
      if (run) run_controls(bench);
    }
    if (!any)
      throw std::runtime_error("the campaign on this machine has no instance " + options_.instance +
                               "; SIM_MACHINE says which machine it is");
  }

  int report() const {
    if (options_.list) return 0;
    print_planted(planted_);
    print_by_group(sweep_);
    print_exceptions(sweep_);
    const std::vector<std::string> idle = idle_entries(mutants_);
    for (const std::string& entry : idle) fmt::print("IDLE ENTRY      {}\n", entry);
    print_controls(controls_);
    if (!options_.json.empty())
      std::ofstream(options_.json) << nlohmann::json{{"planted", json_of(planted_)},
                                                     {"sweep", json_of(sweep_)},
                                                     {"controls", json_of(controls_)}}
                                          .dump(1)
                                   << "\n";
    const Tally s = tally(sweep_), p = tally(planted_), c = tally(controls_);
    const size_t misnamed = p.killed - p.diagnosed + s.killed - s.diagnosed;
    return s.survivors + s.wrong_table + idle.size() + p.survivors + misnamed + c.killed == 0 ? 0 : 1;
  }

 private:
  bool wanted(const Mutant& mutant) const {
    if (fnmatch(options_.only.c_str(), mutant.id.c_str(), 0) != 0) return false;
    if (options_.list) fmt::print("{} / {}\n    {}\n", mutant.subject.name, mutant.id, mutant.source);
    return !options_.list;
  }

  void run_planted(Bench& bench) {
    std::vector<Scored> jobs;
    std::vector<Expectation> expected;
    for (Planted& p : planted_bugs(bench)) {
      if (!p.absent.empty()) {
        if (!options_.list) planted_.push_back({{}, {}, {}, p.number, p.bug, p.absent});
      } else if (wanted(p.mutant)) {
        jobs.push_back({std::move(p.mutant), {}, {}, p.number, p.bug, {}});
        expected.push_back(std::move(p.expected));
      }
    }
    append(planted_, campaign(bench, std::move(jobs), expected, options_));
  }

  void run_sweep(Bench& bench, Breadth breadth, bool run) {
    std::vector<Scored> jobs;
    std::vector<Expectation> expected;
    std::set<std::string> settled;
    for (Mutant& m : sweep(bench.kernel(), bench.subject(), breadth)) {
      if (!bench.reaches(m.ptx_line)) continue;
      mutants_.push_back(m);
      const std::set<std::string>& rings = bench.rings_of(m.ptx_line);
      const std::string key = key_of(m, rings);
      std::string reason = why_equivalent(m);
      if (reason.empty() || equivalent_everywhere(m)) settled.insert(key);
      if (!options_.repeat && settled_.contains(key)) continue;
      if (!run || !wanted(m)) continue;
      expected.push_back(expectation_of(m, rings));
      jobs.push_back({std::move(m), {}, std::move(reason)});
    }
    append(sweep_, campaign(bench, std::move(jobs), expected, options_));
    settled_.merge(settled);
  }

  void run_controls(Bench& bench) {
    std::vector<Scored> jobs;
    for (Mutant& m : controls(bench.kernel(), bench.subject()))
      if (wanted(m)) jobs.push_back({std::move(m), {}, "a control"});
    const std::vector<Expectation> expected(jobs.size());
    append(controls_, campaign(bench, std::move(jobs), expected, options_));
  }

  static void append(std::vector<Scored>& all, std::vector<Scored> more) {
    all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }

  Options options_;
  // Names a change of one instruction, wherever it is unrolled or inlined to: in the same function, on the
  // same rings, for one CTA or for a pair, for one product or two, in the kernel or in an epilogue that is a
  // function of its own.
  static std::string key_of(const Mutant& m, const std::set<std::string>& rings) {
    const dualgemm::Plan& plan = m.subject.plan();
    std::string key = fmt::format("{} {} @ {} {} {} {} {}", m.operation, m.opcode, m.path, plan.mma.cta_group,
                                  plan.mma.products, plan.packed_a(), m.subject.instance->epilogue.general);
    for (const std::string& ring : rings) key += " " + ring;
    return key;
  }

  std::set<std::string> settled_;  // keys that need no run in a later instance
  std::vector<Mutant> mutants_;    // of all instances, whether run or not
  std::vector<Scored> planted_, sweep_, controls_;
};

int run(const Options& options) {
  const auto begin = std::chrono::steady_clock::now();
  Campaign campaign(options);
  campaign.run();
  const int result = campaign.report();
  fmt::print("{:.0f} s\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  return result;
}

}  // namespace
}  // namespace mutation

int main(int argc, char** argv) {
  mutation::Options options;
  CLI::App app("Plants bugs in the shipping kernel and reports which of them the simulator catches.",
               "mutation");
  app.add_option("--only", options.only, "mutants whose id matches this shell pattern");
  app.add_option("--instance", options.instance, "instances whose name matches this shell pattern");
  app.add_option("--json", options.json, "write every verdict to this file");
  app.add_option("--workers", options.workers, "processes at once");
  app.add_option("--schedules", options.schedules, "schedules tried on a mutant, of the default first");
  app.add_flag("--progress", options.progress, "a line per mutant as it ends");
  app.add_flag("--repeat", options.repeat, "also what an earlier instance has settled");
  app.add_flag("--list", options.list, "print the mutants and stop");
  return mutation::command(app, argc, argv, [&] { return mutation::run(options); });
}
