// judge_test.cpp -- a judge by itself: names learned from events and tables, findings and faults turned into
// reports once each, what the environment may ask for.
#include "sim/judge/judge.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/decode/program.h"
#include "sim/engine/tensor_map.h"
#include "sim/judge/trace.h"
#include "support/catch.hpp"

namespace judge_test {

using dualgemm_test::contains;

// This is an instruction at a line of the source.
struct Code {
  Code(uint32_t line, const std::string& text, const std::string& source) {
    statement.opcode = text.substr(0, text.find('.'));
    statement.site = {line, source};
    statement.text = text;
    inst.statement = &statement;
  }
  Code(const Code&) = delete;
  sim::ptx::Statement statement;
  sim::Inst inst;
};

static sim::SyncEvent init(const Code& code, uint64_t cta, uint32_t offset) {
  sim::SyncEvent event;
  event.kind = sim::SyncEvent::Kind::kMbarrierInit;
  event.mbarrier = {cta, offset};
  event.inst = &code.inst;
  return event;
}

static sim::Region shared(uint64_t cta, uint64_t address, uint32_t bytes) {
  sim::Region region;
  region.memory = sim::Memory::kShared;
  region.cta = cta;
  region.address = address;
  region.bytes = bytes;
  region.write = true;
  return region;
}

static sim::Region tensor(uint64_t cta, uint16_t column, uint16_t columns) {
  sim::Region region;
  region.memory = sim::Memory::kTensor;
  region.cta = cta;
  region.lanes = 128;
  region.column = column;
  region.columns = columns;
  return region;
}

// This is a file of the test that goes with it.
struct File {
  explicit File(const std::string& text) : path("judge_test." + std::to_string(getpid())) {
    std::ofstream(path) << text;
  }
  ~File() { std::remove(path.c_str()); }
  File(const File&) = delete;
  std::string path;
};

struct Environment {
  explicit Environment(const std::map<std::string, std::string>& set) {
    for (const char* name : kNames) unsetenv(name);
    for (const auto& [name, value] : set) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const char* name : kNames) unsetenv(name);
  }
  static constexpr const char* kNames[] = {"SIM_MODE", "SIM_SEED",  "SIM_CHECKS",  "SIM_TRACE",
                                           "SIM_JSON", "SIM_NAMES", "SIM_PATIENCE"};
};

TEST_CASE("a barrier is called after the line that initialised it, not after its wrapper", "[judge]") {
  sim::GlobalMemory memory;
  sim::Names names(memory);
  const Code full(10, "mbarrier.init.shared.b64 [%r1], 1;",
                  "ptx/mbarrier.cuh:9 in mbarrier_init <- k.cu:41 in prologue <- k.cu:80");
  const Code empty(12, "mbarrier.init.shared.b64 [%r2], 1;",
                   "ptx/mbarrier.cuh:9 in mbarrier_init <- k.cu:43 in prologue <- k.cu:80");
  for (uint32_t i = 0; i < 5; ++i) names.sync(init(full, 2, 0x400 + 8 * i));
  names.sync(init(empty, 2, 0x500));
  names.sync(init(full, 3, 0x400));
  names.sync(init(full, 2, 0x400));  // again: no further one
  CHECK(names.of(sim::MbarrierRef{2, 0x408}) == "mbarrier 2 of 5 initialised at k.cu:41");
  CHECK(names.of(sim::MbarrierRef{2, 0x500}) == "mbarrier 1 of 1 initialised at k.cu:43");
  CHECK(names.of(sim::MbarrierRef{3, 0x400}) == "mbarrier 1 of 1 initialised at k.cu:41");
  CHECK(names.of(sim::MbarrierRef{3, 0x408}).empty());
  CHECK(names.of(shared(2, 0x40C, 4)) == "mbarrier 2 of 5 initialised at k.cu:41");
  names.start({});
  CHECK(names.of(sim::MbarrierRef{2, 0x408}).empty());
}

TEST_CASE("shared memory is called after the load that fills it", "[judge]") {
  sim::GlobalMemory memory;
  sim::Names names(memory);
  sim::Kernel kernel;
  kernel.info.param_bytes = 512;
  sim::GridStart grid;
  grid.kernel = &kernel;
  grid.param_base = 0x10000;
  names.start(grid);
  const Code load(24, "cp.async.bulk.tensor.2d ...;", "load.cuh:24 in load_stage <- k.cu:90");
  const sim::TensorMap map;
  sim::AsyncIssue issue;
  issue.kind = sim::AsyncIssue::Kind::kTensorLoad;
  issue.map = &map;
  issue.map_address = 0x10080;
  issue.inst = &load.inst;
  for (uint32_t stage = 0; stage < 3; ++stage) {
    issue.writes = {shared(0, 0x800 + 0x400 * stage, 0x200), shared(0, 0xA00 + 0x400 * stage, 0x200)};
    names.issue(issue);
  }
  names.issue(issue);  // the same stage again
  CHECK(names.of(shared(0, 0x1100, 16)) ==
        "destination 3 of the TMA load at load.cuh:24 (tensor map at parameter+0x80)");
  CHECK(names.of(shared(0, 0x7F0, 0x20)) ==
        "destination 1 of the TMA load at load.cuh:24 (tensor map at parameter+0x80)");
  CHECK(names.of(shared(0, 0x1400, 16)).empty());
  CHECK(names.of(shared(1, 0x1100, 16)).empty());
}

TEST_CASE("a trace calls operations what findings call them", "[judge]") {
  const std::string file =
      std::filesystem::temp_directory_path() / ("judge_test." + std::to_string(getpid()) + ".trace");
  {
    sim::Trace trace(file);
    sim::AsyncIssue issue;
    for (const auto kind : {sim::AsyncIssue::Kind::kTensorLoad, sim::AsyncIssue::Kind::kTensorStore,
                            sim::AsyncIssue::Kind::kBulkShared, sim::AsyncIssue::Kind::kMma,
                            sim::AsyncIssue::Kind::kTmemCopy, sim::AsyncIssue::Kind::kCommit,
                            sim::AsyncIssue::Kind::kTmemLoad, sim::AsyncIssue::Kind::kTmemStore}) {
      issue.kind = kind;
      ++issue.id;
      trace.issue(issue);
    }
    trace.finish(nullptr);
  }
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::remove(file.c_str());
  for (const char* line : {"issue 1 TMA load\n", "issue 2 TMA store\n", "issue 3 bulk copy between CTAs\n",
                           "issue 4 tcgen05.mma\n", "issue 5 tcgen05.cp\n", "issue 6 tcgen05.commit\n",
                           "issue 7 tcgen05.ld\n", "issue 8 tcgen05.st\n"})
    CHECK_THAT(text, contains(line));
}

TEST_CASE("tensor memory is called after what writes it", "[judge]") {
  sim::GlobalMemory memory;
  sim::Names names(memory);
  const Code copy(30, "tcgen05.cp ...;", "mma.cuh:30"), mma(33, "tcgen05.mma ...;", "mma.cuh:33");
  sim::AsyncIssue issue;
  issue.kind = sim::AsyncIssue::Kind::kTmemCopy;
  issue.inst = &copy.inst;
  issue.writes = {tensor(0, 128, 32)};
  names.issue(issue);
  issue.kind = sim::AsyncIssue::Kind::kMma;
  issue.inst = &mma.inst;
  issue.writes = {tensor(0, 0, 128)};
  names.issue(issue);
  CHECK(names.of(tensor(0, 130, 2)) == "columns 128..159 (scale factors copied at mma.cuh:30)");
  CHECK(names.of(tensor(0, 127, 1)) == "columns 0..127 (accumulator of tcgen05.mma at mma.cuh:33)");
  CHECK(names.of(tensor(0, 160, 1)).empty());
}

TEST_CASE("global memory is called after its allocation, at an offset that does not move between runs",
          "[judge]") {
  sim::GlobalMemory memory;
  sim::Judge judge({}, memory);
  auto* data = static_cast<uint8_t*>(memory.allocate(4096, "cudaMalloc 3"));
  sim::Finding finding;
  finding.rule = &sim::rule("machine-bounds");
  finding.has_region = true;
  finding.region.address = reinterpret_cast<uint64_t>(data) + 0x120;
  finding.region.bytes = 16;
  judge.add(finding);
  REQUIRE(judge.reports().size() == 1);
  CHECK(sim::range_text(*judge.reports()[0].region) == "global memory [0x120, 0x130)");
  CHECK(judge.reports()[0].region->name == "cudaMalloc 3 of 4096 bytes");
}

TEST_CASE("a table of names goes before what was learned and moves with the shared window", "[judge]") {
  sim::GlobalMemory memory;
  sim::Names names(memory);
  const File file(R"({"shared": [{"offset": 1024, "bytes": 256, "name": "A stage 0"}],
                      "tensor": [{"column": 8, "columns": 8, "name": "scales"}]})");
  names.set_table(sim::read_names(file.path));
  sim::Kernel kernel;
  kernel.dynamic_smem_offset = 1024;
  sim::LaunchConfig config;
  config.dynamic_smem = 4096;
  sim::GridStart grid;
  grid.kernel = &kernel;
  grid.config = &config;
  names.start(grid);
  sim::SyncEvent event;
  event.kind = sim::SyncEvent::Kind::kCtaStart;
  event.object = 1024 + 4096;
  names.sync(event);
  CHECK(names.of(shared(0, 1024 + 255, 4)) == "A stage 0");
  CHECK(names.of(shared(0, 1024 + 256, 4)).empty());
  CHECK(names.of(tensor(0, 12, 1)) == "scales");
  event.object += 2048;
  names.sync(event);
  CHECK(names.of(shared(0, 1024 + 255, 4)).empty());
  CHECK(names.of(shared(0, 3072, 4)) == "A stage 0");
}

TEST_CASE("a wrong table of names is refused by name", "[judge]") {
  CHECK_THROWS_WITH(sim::read_names("no/such/file"), contains("no/such/file"));
  const File unknown(R"({"share": []})");
  CHECK_THROWS_WITH(sim::read_names(unknown.path), contains("\"share\""));
  const File incomplete(R"({"shared": [{"offset": 1}]})");
  CHECK_THROWS_WITH(sim::read_names(incomplete.path), contains("bytes"));
}

TEST_CASE("the line of a source is quoted where it can be read", "[judge]") {
  const File file("one\n  two;  \n");
  CHECK(sim::quote_source(file.path + ":2") == "two;");
  CHECK(sim::quote_source(file.path + ":3").empty());
  CHECK(sim::quote_source("no/such/file.cu:2").empty());
}

TEST_CASE("a finding is reported once a pair of instructions, with a count", "[judge]") {
  sim::GlobalMemory memory;
  sim::JudgeOptions options;
  options.seed = 5;
  options.program = "./p";
  sim::Judge judge(options, memory);
  const Code a(1, "st.shared ...;", "k.cu:1"), b(2, "ld.shared ...;", "k.cu:2"),
      c(3, "ld.shared ...;", "k.cu:3");
  const auto add = [&](const Code& earlier, const Code& later) {
    sim::Finding finding;
    finding.rule = &sim::rule("machine-protocol");
    finding.summary = "said";
    finding.has_earlier = true;
    finding.earlier.inst = &earlier.inst;
    finding.later.inst = &later.inst;
    finding.later.mask = 3;
    judge.add(finding);
  };
  add(a, b);
  add(a, b);
  judge.observer().start({});
  add(a, b);
  add(a, c);
  REQUIRE(judge.reports().size() == 2);
  CHECK(judge.reports()[0].seen[0].count == 3);
  CHECK(judge.reports()[0].later.where == "CTA 0, warp 0, lanes 0x3");
  CHECK(judge.reports()[0].later.source == "k.cu:2");
  CHECK_THAT(judge.take_text(), contains("replay    dualgemm-sim --mode default --seed 5 ./p"));
  CHECK(judge.take_text().empty());
}

TEST_CASE("a replay repeats the checks and the names", "[judge]") {
  CHECK(sim::replay_words({"B200", "all", ""}, "./p") == "./p");
  CHECK(sim::replay_words({"H200", "race", "a b.txt", true, true, 9}, "./p") ==
        "--machine H200 --checks race --names 'a b.txt' --continue --elect-lowest --patience 9 ./p");
  for (const char* checks : {"all", "none", "race", "protocol,certificate", "race,protocol"})
    CHECK(sim::words_of(sim::parse_checks(checks)) == checks);
  CHECK_THROWS_WITH(sim::parse_checks("races"), contains("\"races\"; the checks are race"));
}

TEST_CASE("certificates of runs add up, the refused by the place of their initialisation", "[judge]") {
  sim::CertificateText all;
  CHECK(sim::render(all).empty());
  sim::merge(all, {4, 2, {{"a.cu:1", "one", 1}, {"a.cu:1", "two", 1}}});
  sim::merge(all, {3, 2, {{"b.cu:2", "three", 1}}});
  CHECK(sim::render(nlohmann::json(all).get<sim::CertificateText>()) ==
        "certificate: 4 of 7 mbarriers certified for all schedules\n"
        "  not certified: 2 of a.cu:1, because one\n"
        "  not certified: 1 of b.cu:2, because three\n");
}

TEST_CASE("a fault becomes a report with the place that its text names", "[judge]") {
  sim::GlobalMemory memory;
  sim::Judge judge({}, memory);
  judge.fault(sim::FaultKind::kPoison,
              "read of nothing\n  in kernel _Z1kPi, CTA (1,0,0), warp 2, lanes 0xf\n"
              "  at PTX line 12: `ld.global.u32 %r1, [%rd1]` (k.cu:3 in f <- k.cu:9)");
  judge.fault(sim::FaultKind::kDeadlock,
              "deadlock in kernel _Z1kPi: nothing can move\n  CTA (0,0,0), warp 0, lane 0 waits\n");
  judge.fault(sim::FaultKind::kUnsupported, "PTX line 3: `foo.bar`: no such instruction");
  REQUIRE(judge.reports().size() == 3);
  const sim::Report& poison = judge.reports()[0];
  CHECK(poison.rule == "machine-poison");
  CHECK(poison.summary == "read of nothing");
  CHECK(poison.later.kernel == "k(int*)");
  CHECK(poison.later.where == "CTA (1,0,0), warp 2, lanes 0xf");
  CHECK(poison.later.ptx_line == 12);
  CHECK(poison.later.text == "ld.global.u32 %r1, [%rd1]");
  CHECK(poison.later.source == "k.cu:3 in f <- k.cu:9");
  CHECK_FALSE(poison.every_schedule);
  const sim::Report& deadlock = judge.reports()[1];
  CHECK(deadlock.summary == "deadlock in kernel k(int*): nothing can move");
  CHECK(deadlock.notes == std::vector<std::string>{"CTA (0,0,0), warp 0, lane 0 waits"});
  CHECK(judge.reports()[2].severity == 'U');
}

TEST_CASE("the environment asks for a judge, or for none, or for what does not exist", "[judge]") {
  sim::JudgeOptions options;
  {
    const Environment none({});
    CHECK_FALSE(sim::options_from_environment(options));
  }
  {
    const Environment all({{"SIM_MODE", "default"},
                           {"SIM_SEED", "18446744073709551615"},
                           {"SIM_CHECKS", "race"},
                           {"SIM_TRACE", "t"},
                           {"SIM_JSON", "j"},
                           {"SIM_NAMES", "n"},
                           {"SIM_PATIENCE", "5"}});
    REQUIRE(sim::options_from_environment(options));
    CHECK(options.mode == "default");
    CHECK(options.seed == UINT64_MAX);
    CHECK(options.patience == 5);
    CHECK((options.checks.race && !options.checks.protocol));
    CHECK((options.trace == "t" && options.json == "j" && options.names == "n"));
  }
  const auto refused = [&](const char* name, const char* value) {
    const Environment one(std::map<std::string, std::string>{{name, value}});
    CHECK_THROWS_WITH(sim::options_from_environment(options), contains(std::string(name) + "=" + value));
  };
  refused("SIM_MODE", "lat");
  refused("SIM_SEED", "-1");
  refused("SIM_SEED", "1x");
  refused("SIM_SEED", "18446744073709551616");
  refused("SIM_CHECKS", "races");
  refused("SIM_PATIENCE", "0");
  refused("SIM_PATIENCE", "long");
}

TEST_CASE("the report file says whether the run came to its end", "[judge]") {
  sim::GlobalMemory memory;
  const File file("");
  sim::JudgeOptions options;
  options.json = file.path;
  sim::Judge judge(options, memory);
  const auto read = [&] {
    std::ifstream in(file.path);
    return nlohmann::json::parse(in);
  };
  CHECK(read().at("finished") == false);
  judge.fault(sim::FaultKind::kTrap, "trap");
  CHECK(read().at("findings").size() == 1);
  judge.write_json(true);
  CHECK(read().at("finished") == true);
  options.json = "no/such/folder/file";
  CHECK_THROWS_WITH(sim::Judge(options, memory), contains("no/such/folder/file"));
}

}  // namespace judge_test
