// dualgemm_sim.cpp -- the command for users: runs a CUDA program on a simulated GPU under one or many
// schedules while the checkers observe it, merges what they found and answers with its exit status.
//
//     dualgemm-sim [options] ./program args...
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <climits>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include "sim/command/alignment.h"
#include "sim/command/run.h"
#include "sim/command/verdict.h"
#include "sim/judge/names.h"
#include "sim/judge/parts.h"
#include "sim/judge/report.h"
#include "sim/machine.h"
#include "sim/schedule/schedule.h"

namespace {

using namespace command;
using enum command::Status;
namespace fs = std::filesystem;

struct Usage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The options that all runs share, and how many runs there are: `mode` may name several modes, and `seed` is
// the first seed.
struct Options : RunOptions {
  Options() { machine = sim::kB200.name, mode = "default", checks = "all"; }
  std::string json;
  uint64_t seeds = 0;  // 0: only `seed`
  unsigned jobs = 1;
  std::vector<std::string> allow;
  bool list_modes = false, rules = false;
  char fail_on = 'S';
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');)
    if (!word.empty()) words.push_back(word);
  return words;
}

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::vector<std::string> modes_of(const std::string& text) {
  std::vector<std::string> known;
  for (const sim::Mode& mode : sim::modes()) known.push_back(mode.name);
  const std::vector<std::string> asked = split(text);
  if (asked.empty()) throw Usage("--mode: no mode is named");
  for (const std::string& mode : asked)
    if (mode != "all" && !has(known, mode))
      throw Usage(
          fmt::format("--mode {}: no such schedule mode; the modes are {}", mode, fmt::join(known, ", ")));
  return has(asked, "all") ? known : asked;
}

// A schedule beyond the letter of the ISA does not count for the verdict if only `all` included it, but
// counts if it was named.
bool beyond_counts(const std::string& text) {
  const std::vector<std::string> asked = split(text);
  return has(asked, command::kBeyond) || !has(asked, "all");
}

// Returns the ids of rules of class S or A. A file has one a line; what follows it on the line is the reason.
std::set<std::string> allowed_rules(const std::vector<std::string>& given) {
  std::vector<std::string> ids;
  for (const std::string& item : given) {
    std::ifstream file(item);
    if (!fs::is_regular_file(item) || !file) {
      for (const std::string& id : split(item)) ids.push_back(id);
      continue;
    }
    for (std::string line; std::getline(file, line);) {
      std::string id;
      std::istringstream(line) >> id;
      if (!id.empty() && id[0] != '#') ids.push_back(id);
    }
  }
  for (const std::string& id : ids) {
    const auto found = std::find_if(sim::kAllRules.begin(), sim::kAllRules.end(),
                                    [&](const sim::Rule& rule) { return rule.id == id; });
    if (found == sim::kAllRules.end())
      throw Usage(fmt::format("--allow {}: neither a file nor the id of a rule (--rules)", id));
    if (const char letter = sim::severity_letter(*found); letter == 'E' || letter == 'U')
      throw Usage(fmt::format("--allow {}: a rule of class {} cannot be allowed", id, letter));
  }
  return {ids.begin(), ids.end()};
}

// Returns the folder `sim` beside the command, which holds the simulated runtime.
std::string runtime_folder() {
  char self[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", self, sizeof self);
  if (n <= 0) throw std::runtime_error("/proc/self/exe cannot be read");
  const fs::path folder = fs::path(std::string(self, size_t(n))).parent_path() / "sim";
  const fs::path runtime = folder / fmt::format("libcudart.so.{}", CUDART_VERSION / 1000);
  if (!fs::exists(runtime))
    throw std::runtime_error(fmt::format("the simulated runtime {} is missing", runtime.string()));
  return folder.string();
}

void print_rules() {
  for (const sim::Rule& rule : sim::kAllRules)
    fmt::print("{} {:<34} {:<14} {}\n    {}\n", sim::severity_letter(rule), rule.id,
               sim::evidence_name(rule.evidence), rule.section, rule.says);
}

void print_modes() {
  for (const sim::Mode& mode : sim::modes()) fmt::print("{:<12} {}\n", mode.name, mode.says);
}

std::vector<RunOptions> plan(const Options& options, const std::set<std::string>& allow) {
  std::vector<std::string> modes = modes_of(options.mode);
  // The mode strict-tensor shows what breaking this rule could do; if the rule may be broken, the mode is
  // left out, unless it was named.
  if (!beyond_counts(options.mode) && allow.contains("tensor-unlisted-pair"))
    std::erase(modes, command::kBeyond);
  std::vector<uint64_t> seeds{options.seed};
  for (uint64_t i = 1; i < options.seeds; ++i) seeds.push_back(options.seed + i);
  std::vector<RunOptions> runs;
  for (const std::string& mode : modes)
    for (const uint64_t seed : seeds) {
      RunOptions run = options;
      run.runtime = runtime_folder();
      run.mode = mode;
      run.seed = seed;
      run.align_as_declared = !allow.contains("shared-alignment");
      runs.push_back(run);
    }
  if (runs.size() > 1 && !options.trace.empty())
    for (RunOptions& run : runs) run.trace += fmt::format(".{}.{}", run.mode, run.seed);
  return runs;
}

// Says on a terminal how far many runs have come, on a line that it takes away at the end.
class Progress {
 public:
  explicit Progress(size_t runs) : runs_(runs), shown_(runs > 1 && isatty(STDERR_FILENO) != 0) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (shown_) fmt::print(stderr, "\r\033[K");
  }
  void show(size_t done, const RunResult& run) {
    if (!shown_) return;
    with_errors_ += std::any_of(run.findings.begin(), run.findings.end(),
                                [](const sim::Report& report) { return report.severity == 'E'; });
    fmt::print(stderr, "\r\033[K{} of {} runs, {} with errors", done, runs_, with_errors_);
    std::fflush(stderr);
  }

 private:
  size_t runs_, with_errors_ = 0;
  bool shown_;
};

// If a run has errors that may come from the alignment of shared memory, it is repeated with the alignment of
// hardware.
RunResult run_and_blame(const RunOptions& options) {
  RunResult result = command::run(options);
  if (!command::may_lack_alignment(result)) return result;
  RunOptions again = options;
  again.align_as_declared = false;
  again.trace.clear();
  again.quiet = true;
  command::blame_alignment(result, command::run(again));
  return result;
}

std::vector<RunResult> run_all(const std::vector<RunOptions>& runs, unsigned jobs) {
  std::vector<RunResult> results(runs.size());
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  Progress progress(runs.size());
  size_t done = 0;
  const auto work = [&] {
    for (size_t i = next++; i < runs.size(); i = next++) {
      try {
        results[i] = run_and_blame(runs[i]);
        const std::lock_guard lock(mutex);
        progress.show(++done, results[i]);
      } catch (...) {
        const std::lock_guard lock(mutex);
        error = std::current_exception();
        next = runs.size();
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::min<size_t>(jobs, runs.size()); ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
  return results;
}

// True for a program with kernels in it that asks for no shared runtime: nvcc's default is a static one.
bool has_own_runtime(const std::string& program) {
  std::ifstream in(program, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  return bytes.find(".nv_fatbin") != std::string::npos && bytes.find("libcudart.so") == std::string::npos;
}

Status main_of(const Options& options) {
  if (options.rules) return print_rules(), kClean;
  if (options.list_modes) return print_modes(), kClean;
  if (options.program.empty()) throw Usage("no program is given; dualgemm-sim --help");
  std::string machine;
  try {
    machine = sim::machine_named(options.machine).name;
    sim::parse_checks(options.checks);
    if (!options.names.empty()) sim::read_names(options.names);
  } catch (const std::exception& error) {
    throw Usage(error.what());
  }
  const std::set<std::string> allow = allowed_rules(options.allow);
  std::string program;
  for (const std::string& word : options.program)
    program += (program.empty() ? "" : " ") + sim::shell_word(word);

  const std::vector<RunResult> runs = run_all(plan(options, allow), options.jobs);
  Verdict verdict = judge(runs, allow, beyond_counts(options.mode));
  const Status status = status_of(verdict, options.fail_on);
  print(verdict, runs,
        sim::replay_words(
            {machine, options.checks, options.names, options.go_on, options.elect_lowest, options.patience},
            program),
        status);
  // The simulated driver says so, too, but with --quiet nobody sees that.
  if (options.quiet &&
      std::none_of(runs.begin(), runs.end(), [](const RunResult& run) { return run.judged; }) &&
      has_own_runtime(options.program[0]))
    fmt::print("{} holds its own copy of the CUDA runtime: compile with -cudart shared -lineinfo\n",
               options.program[0]);
  if (!options.json.empty()) write_json(options.json, verdict, runs, program, status);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Runs a CUDA program on a simulated GPU and judges it: "
      "adversarial schedules, races, protocol of barriers and tensor memory.\n"
      "Use: dualgemm-sim [options] ./program args...\n"
      "Exit status: 0 no finding of class E or S (--fail-on), 1 such findings, 2 wrong usage, "
      "3 the program failed or could not be judged to the end.",
      "dualgemm-sim");
  app.add_option("--machine", options.machine,
                 "GPU: b200, b300, h200 or h100, or a part of one, h100,sms=78,clusters_of_4=0")
      ->envname("SIM_MACHINE")
      ->capture_default_str();
  app.add_option("--mode", options.mode, "Schedules: NAME[,NAME...] or all (--list-modes)")
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Seed of the first run of every mode")->capture_default_str();
  app.add_option("--seeds", options.seeds, "Runs of every mode, with rising seeds")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--jobs", options.jobs, "Runs at a time")->check(CLI::Range(1, 1024))->capture_default_str();
  app.add_option("--checks", options.checks, "race,protocol,certificate, all or none")->capture_default_str();
  app.add_option("--trace", options.trace,
                 "Write every instruction and event to FILE (FILE.mode.seed for several runs)");
  app.add_option("--json", options.json, "Write runs and findings to FILE");
  app.add_option("--names", options.names, "Names of shared and tensor memory")->check(CLI::ExistingFile);
  app.add_option("--allow", options.allow,
                 "Rules of class S or A that may be broken: ids, or a FILE with one a line")
      ->allow_extra_args(false);
  app.add_option("--fail-on", options.fail_on, "Class from which on findings fail: E, S or A")
      ->check(CLI::IsMember({'E', 'S', 'A'}))
      ->capture_default_str();
  app.add_flag("--continue", options.go_on,
               "Let errors end no program, so that what lies behind them is judged, too");
  app.add_flag("--elect-lowest", options.elect_lowest, "elect.sync elects the lowest lane in every schedule");
  app.add_option(
         "--patience", options.patience,
         "Warp instructions that may change nothing another thread could see, until a run is given up")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--timeout", options.timeout, "Seconds a run may take, 0: no limit")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_flag("--quiet", options.quiet, "Drop the output of the program");
  app.add_flag("--list-modes", options.list_modes, "Say which schedules there are");
  app.add_flag("--rules", options.rules, "Say which rules there are: class, id, evidence, section");
  app.prefix_command();  // what follows the first word that is no option is the program's
  try {
    app.parse(argc, argv);
    options.program = app.remaining();
    if (!options.program.empty() && options.program[0] == "--")
      options.program.erase(options.program.begin());
    else if (!options.program.empty() && options.program[0].starts_with('-'))
      throw CLI::ExtrasError({options.program[0]});
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::cerr << "dualgemm-sim: " << error.what() << '\n';
    return kUsage;
  }
  try {
    return main_of(options);
  } catch (const Usage& error) {
    std::cerr << "dualgemm-sim: " << error.what() << '\n';
    return kUsage;
  } catch (const std::exception& error) {
    std::cerr << "dualgemm-sim: " << error.what() << '\n';
    return kNotJudged;
  }
}
