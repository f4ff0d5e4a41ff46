// report_test.cpp -- what a reader sees of a finding, and that JSON loses none of it.
#include "sim/judge/report.h"

#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "sim/text.h"
#include "support/catch.hpp"

namespace report_test {

static sim::Report full() {
  sim::Report report;
  report.rule = "race-async-write-read";
  report.severity = 'S';
  report.evidence = "documented";
  report.section = "PTX ISA 9.7.9.27";
  report.says = "a copy may write only what nobody reads any more";
  report.summary = "TMA load overwrites what tcgen05.mma may still read";
  report.later = {"k<1>", "CTA 1 (1,0,0), warp 4, lane 0", 83,
                  1187,   "cp.async.bulk.tensor.3d ...;",  "a.cu:212 in load <- a.cu:90"};
  report.earlier = {"k<1>", "CTA 0 (0,0,0), warp 5, lane 0", 0, 1420, "tcgen05.mma ...;", ""};
  report.others = {
      "bulk load of shared [0x8400,0x8480) of CTA 1, CTA 0, warp 1, lane 2\nPTX line 7: `cp ...;`"};
  report.region = {"shared", true, 1, 0x8400, 0x4000, 0, 0, 0, 0, "A stage 2"};
  report.mbarrier = {1, 0x420, "mbarrier 2 of 5 initialised at a.cu:41"};
  report.missing = "a wait for empty[3]";
  report.notes = {"the producer waited for empty[2]\nphase 2"};
  report.every_schedule = true;
  report.declared_align = 16;
  report.seen = {{"late", 17, 3}};
  return report;
}

TEST_CASE(
    "a report names both sites, the bytes, the barrier, what is missing, the rule and how to see it again",
    "[report]") {
  CHECK(sim::render(full(), "./test --shape '1 2'") ==
        R"(S race-async-write-read: TMA load overwrites what tcgen05.mma may still read
  later     CTA 1 (1,0,0), warp 4, lane 0, operation 83 of kernel k<1>
            PTX line 1187: `cp.async.bulk.tensor.3d ...;`
            a.cu:212 in load <- a.cu:90
  earlier   CTA 0 (0,0,0), warp 5, lane 0 of kernel k<1>
            PTX line 1420: `tcgen05.mma ...;`
  and       bulk load of shared [0x8400,0x8480) of CTA 1, CTA 0, warp 1, lane 2
            PTX line 7: `cp ...;`
  bytes     shared memory [0x8400, 0xc400) of CTA 1, written
            A stage 2
  barrier   mbarrier at shared offset 0x420 of CTA 1
            mbarrier 2 of 5 initialised at a.cu:41
  missing   a wait for empty[3]
  note      the producer waited for empty[2]
            phase 2
  certain   for every schedule: it follows from the order of synchronisation
  rule      a copy may write only what nobody reads any more
            PTX ISA 9.7.9.27 (documented)
  seen      3 times
  replay    dualgemm-sim --mode late --seed 17 ./test --shape '1 2'
)");
}

TEST_CASE("long names of kernels are cut from the inside", "[report]") {
  using sim::short_name;
  CHECK(short_name("exchange<false>(int*)") == "exchange<false>(int*)");
  const std::string space = "some_library_with_a_long_name";
  CHECK(
      short_name(
          "void (anonymous namespace)::kernel<float, 128>(float const*, float const*, float*, int, int, int)") ==
      "kernel<float, 128>(float const*, float const*, float*, int, int, int)");
  CHECK(short_name("void k<" + space + "::Shape<128, 128, 64>, " + space + "::Epilogue<float>>(" + space +
                   "::Params)") == "k<...>(...)");
  CHECK(short_name("void k<T<A<" + space + ">, B<" + space + ">>>(Params)") == "k<T<A<...>, B<...>>>(...)");
}

TEST_CASE("a report without sites and bytes has no empty lines", "[report]") {
  sim::Report report;
  report.rule = "machine-deadlock";
  report.summary = "nothing can move";
  report.says = "a wait ends";
  report.section = "none";
  report.evidence = "assumed";
  report.every_schedule = false;
  CHECK(sim::render(report, "./p") == R"(E machine-deadlock: nothing can move
  certain   for this schedule; another one may not show it
  rule      a wait ends
            none (assumed)
)");
}

TEST_CASE("a fault under a schedule that aligns shared memory no better than declared says so", "[report]") {
  sim::Report report = full();
  const std::string says = "in this run dynamic shared memory is aligned to 16 bytes only";
  CHECK(sim::render(report, "p").find(says) == std::string::npos);  // a race has nothing to do with it
  report.rule = "machine-bounds";
  CHECK(sim::render(report, "p").find(says) != std::string::npos);
  report.declared_align = 0;
  CHECK(sim::render(report, "p").find(says) == std::string::npos);
}

TEST_CASE("JSON holds all of a report", "[report]") {
  const nlohmann::json json = full();
  const nlohmann::json expected = nlohmann::json::parse(R"json({
    "rule": "race-async-write-read", "severity": "S", "evidence": "documented",
    "section": "PTX ISA 9.7.9.27", "says": "a copy may write only what nobody reads any more",
    "summary": "TMA load overwrites what tcgen05.mma may still read",
    "later": {"kernel": "k<1>", "where": "CTA 1 (1,0,0), warp 4, lane 0", "operation": 83, "ptx_line": 1187,
              "text": "cp.async.bulk.tensor.3d ...;", "source": "a.cu:212 in load <- a.cu:90"},
    "earlier": {"kernel": "k<1>", "where": "CTA 0 (0,0,0), warp 5, lane 0", "operation": 0, "ptx_line": 1420,
                "text": "tcgen05.mma ...;", "source": ""},
    "region": {"memory": "shared", "write": true, "cta": 1, "address": 33792, "bytes": 16384, "lane": 0,
               "lanes": 0, "column": 0, "columns": 0, "name": "A stage 2"},
    "mbarrier": {"cta": 1, "offset": 1056, "name": "mbarrier 2 of 5 initialised at a.cu:41"},
    "others": ["bulk load of shared [0x8400,0x8480) of CTA 1, CTA 0, warp 1, lane 2\nPTX line 7: `cp ...;`"],
    "missing": "a wait for empty[3]", "notes": ["the producer waited for empty[2]\nphase 2"],
    "every_schedule": true, "declared_align": 16, "seen": [{"mode": "late", "seed": 17, "count": 3}]})json");
  CHECK(json == expected);
  const auto back = json.get<sim::Report>();
  CHECK(nlohmann::json(back) == json);
  CHECK(sim::render(back, "p") == sim::render(full(), "p"));
}

TEST_CASE("a report in JSON may lack its earlier site, bytes and barrier", "[report]") {
  sim::Report report = full();
  report.earlier.reset();
  report.region.reset();
  report.mbarrier.reset();
  const auto back = nlohmann::json(report).get<sim::Report>();
  CHECK_FALSE(back.earlier);
  CHECK_FALSE(back.region);
  CHECK_FALSE(back.mbarrier);
}

TEST_CASE("findings of many runs are one when rule and instructions are the same", "[report]") {
  std::vector<sim::Report> all;
  sim::Report report = full();
  sim::merge(all, report);
  report.seen = {{"late", 18, 1}};
  report.later.where = "CTA 7 (7,0,0), warp 0, lane 0";
  sim::merge(all, report);
  report.seen = {{"late", 17, 2}};
  sim::merge(all, report);
  REQUIRE(all.size() == 1);
  REQUIRE(all[0].seen.size() == 2);
  CHECK(all[0].seen[0].count == 5);
  CHECK(all[0].seen[1].seed == 18);
  report.earlier->ptx_line = 1421;
  sim::merge(all, report);
  CHECK(all.size() == 2);
}

TEST_CASE("what a kernel lacks of alignment is one finding, wherever runs show it", "[report]") {
  sim::Report report = sim::report_of(sim::rule("shared-alignment"));
  report.later.kernel = "a";
  report.later.source = "k.cu:1";
  sim::Report elsewhere = report, of_another = report;
  elsewhere.later.source = "k.cu:2";
  of_another.later.kernel = "b";
  CHECK(report.key() == elsewhere.key());
  CHECK(report.key() != of_another.key());
}

TEST_CASE("copies of one source line that unrolling made are one finding", "[report]") {
  const auto key = [](uint32_t ptx_line, const std::string& text, const std::string& source) {
    sim::Report report = sim::report_of(sim::rule("race-data"));
    report.later = {"k", "", 0, ptx_line, text, source};
    return report.key();
  };
  const std::string there = "k.cu:7 in store <- k.cu:30";
  const std::string one = key(10, "st.shared.b32 [%r1], %r2", there);
  CHECK(key(14, "st.shared.b32 [%r5], %r6", there) == one);
  CHECK(key(18, "@%p1 st.shared.b32 [%r5], %r6", there) == one);
  CHECK(key(22, "@!%p2 st.shared.b32 [%r8], %r9", there) == one);
  CHECK(key(14, "st.shared.v2.b32 [%r5], {%r6, %r7}", there) != one);
  CHECK(key(14, "st.shared.b32 [%r5], %r6", "k.cu:7 in store <- k.cu:31") != one);
  // Without line information every instruction is a place of its own.
  CHECK(key(10, "st.shared.b32 [%r1], %r2", "") != key(14, "st.shared.b32 [%r1], %r2", ""));
}

TEST_CASE("every rule cites its sources in one style", "[report]") {
  const std::regex style(
      R"((PTX ISA [0-9]+(\.[0-9]+)* [a-zA-Z][^;:]*|CUDA C\+\+ Programming Guide, [^;:]+|tool: [^;:]+))");
  for (const sim::Rule& rule : sim::kAllRules) {
    std::istringstream sources(std::string(rule.section) + ";");
    INFO(rule.id << ": " << rule.section);
    for (std::string source; std::getline(sources >> std::ws, source, ';');)
      CHECK(std::regex_match(source, style));
  }
}

TEST_CASE("a range of tensor memory is columns and lanes", "[report]") {
  const sim::RegionText region{"tensor", false, 3, 0, 0, 32, 32, 128, 32, ""};
  CHECK(sim::range_text(region) == "tensor memory columns 128..159, lanes 32..63 of CTA 3");
}

TEST_CASE("every kind of fault has its machine rule, and what the simulator does not know is of class U",
          "[report]") {
  using enum sim::FaultKind;
  const std::pair<sim::FaultKind, std::string> rules[] = {
      {kSyntax, "machine-unsupported"}, {kUnsupported, "machine-unsupported"},
      {kAlignment, "shared-alignment"}, {kPoison, "machine-poison"},
      {kBounds, "machine-bounds"},      {kMisaligned, "machine-misaligned"},
      {kProtocol, "machine-protocol"},  {kDeadlock, "machine-deadlock"},
      {kTrap, "machine-trap"},          {kLaunch, "machine-launch"},
      {kAssert, "machine-trap"},        {kGivenUp, "machine-unsupported"},
  };
  for (const auto& [kind, id] : rules) {
    CHECK(sim::rule_of(kind) == id);
    const sim::Rule& rule = sim::rule(sim::rule_of(kind));
    CHECK(sim::severity_letter(rule) == (id == "machine-unsupported" ? 'U' : kind == kAlignment ? 'S' : 'E'));
  }
}

TEST_CASE("words of a command line survive a shell", "[report]") {
  CHECK(sim::shell_word("./a-b_c=1,2:3") == "./a-b_c=1,2:3");
  CHECK(sim::shell_word("") == "''");
  CHECK(sim::shell_word("it's $HOME") == "'it'\\''s $HOME'");
}

}  // namespace report_test
