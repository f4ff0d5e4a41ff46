// report.h -- a finding in words: what a reader needs, without a pointer into the run that it came from. The
// judge writes one for every finding, `dualgemm-sim` reads them back as JSON and merges those of many runs;
// both print them with the same function.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/check/finding.h"
#include "sim/fault.h"

namespace sim {

struct SiteText {
  std::string kernel;
  std::string where;       // "CTA 3 (3,0,0), warp 4, lane 0"
  uint64_t operation = 0;  // of an asynchronous one
  uint32_t ptx_line = 0;   // 0: the place has no instruction
  std::string text;        // the instruction as written
  std::string source;      // "sm100/mma.cuh:41 in mma_role <- sm100/dual_gemm.cuh:80", may be empty
};

struct RegionText {
  std::string memory;  // "global", "shared", "tensor"
  bool write = false;
  uint64_t cta = 0;      // owner; unused for global memory
  uint64_t address = 0;  // global: offset in its allocation
  uint32_t bytes = 0;
  uint32_t lane = 0, lanes = 0, column = 0, columns = 0;
  std::string name;
};

struct BarrierText {
  uint64_t cta = 0;
  uint32_t offset = 0;
  std::string name;
};

// A run that showed a finding, and how often.
struct Seen {
  std::string mode;
  uint64_t seed = 0;
  uint64_t count = 0;
};

struct Report {
  std::string rule;
  char severity = 'E';  // E, S, A or U, as in check/finding.h
  std::string evidence, section, says;
  std::string summary;
  SiteText later;
  std::optional<SiteText> earlier;
  std::vector<std::string> others;  // further earlier parties, each with its place
  std::optional<RegionText> region;
  std::optional<BarrierText> mbarrier;
  std::string missing;
  std::vector<std::string> notes;
  bool every_schedule = true;
  // The alignment that the module declares for dynamic shared memory, if the schedule has aligned that memory
  // no better; else 0.
  uint32_t declared_align = 0;
  std::vector<Seen> seen;

  // Two findings count as one when the same rule is broken at the same pair of source lines, or of
  // instructions if no line is known. Findings that rest on the alignment of shared memory count as one in
  // the same kernel.
  std::string key() const;
};

Report report_of(const Rule& rule);  // that it was broken

char severity_letter(const Rule& rule);
const char* evidence_name(Evidence evidence);  // "H200", "proven kernel", "documented", "assumed"
const char* rule_of(FaultKind kind);           // id of the machine rule

// `program` is the program and its arguments as typed, for the line that shows the finding again.
std::string render(const Report& report, const std::string& program);
std::string replay_line(const Seen& run, const std::string& program);
// Returns the options that a replay needs besides mode and seed, and the program, as render and replay_line
// take them.
struct ReplayOptions {
  std::string machine, checks, names;
  bool go_on = false, elect_lowest = false;
  uint64_t patience = kDefaultPatience;
};
std::string replay_words(const ReplayOptions& options, const std::string& program);
std::string range_text(const RegionText& region);  // "shared memory [0x400, 0x800) of CTA 1"

// Adds `more` to `all`: a finding that is already there only adds the runs that showed it.
void merge(std::vector<Report>& all, const Report& more);

// Says which mbarriers behave the same in every schedule (check/certificate.h), over one or many runs.
struct CertificateText {
  struct Refused {
    std::string init;    // where such barriers are initialised
    std::string reason;  // of the first
    uint64_t count = 0;
  };
  uint64_t barriers = 0, certified = 0;
  std::vector<Refused> refused;  // one for each place
};
void merge(CertificateText& all, const CertificateText& more);
std::string render(const CertificateText& certificate);  // empty when there was no mbarrier
void to_json(nlohmann::json& out, const CertificateText& certificate);
void from_json(const nlohmann::json& in, CertificateText& certificate);

void to_json(nlohmann::json& out, const Report& report);
void from_json(const nlohmann::json& in, Report& report);

// Returns a word of a command line, quoted where a shell would take it apart.
std::string shell_word(const std::string& word);

}  // namespace sim
