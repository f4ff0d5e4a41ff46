// report.cpp -- see report.h.
#include "sim/judge/report.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <nlohmann/json.hpp>

#include "sim/check/place.h"
#include "sim/machine.h"
#include "sim/text.h"

// An optional member that is absent becomes null.
template <class T>
struct nlohmann::adl_serializer<std::optional<T>> {
  static void to_json(json& out, const std::optional<T>& value) {
    out = value ? json(*value) : json(nullptr);
  }
  static void from_json(const json& in, std::optional<T>& value) {
    if (!in.is_null()) value = in.get<T>();
  }
};

namespace sim {

constexpr const char* kMargin = "            ";  // under the first word of a field

// Adds "  later     ..." with further lines under the first one.
static void field(std::string& out, const char* name, const std::string& text) {
  out += "  ";
  out += name;
  out.append(10 - std::min<size_t>(9, std::strlen(name)), ' ');
  for (const char c : text) {
    out += c;
    if (c == '\n') out += kMargin;
  }
  out += '\n';
}

static std::string site_text(const SiteText& site) {
  std::string out = site.where;
  if (site.operation != 0) out += ", operation " + std::to_string(site.operation);
  if (!site.kernel.empty()) out += (out.empty() ? "kernel " : " of kernel ") + site.kernel;
  if (site.ptx_line != 0) out += "\nPTX line " + std::to_string(site.ptx_line) + ": `" + site.text + "`";
  if (!site.source.empty()) out += "\n" + site.source;
  return out;
}

static std::string site_key(const SiteText& site) {
  return site.kernel + ":" + place_key(site.source, site.ptx_line, site.text);
}

Report report_of(const Rule& rule) {
  Report report;
  report.rule = rule.id;
  report.severity = severity_letter(rule);
  report.evidence = evidence_name(rule.evidence);
  report.section = rule.section;
  report.says = rule.says;
  return report;
}

std::string Report::key() const {
  // A missing declaration of alignment is one cause for each kernel, at whatever place a run needs the
  // alignment first.
  if (rule == rule_of(FaultKind::kAlignment)) return rule + "|" + later.kernel;
  return rule + "|" + site_key(later) + "|" + (earlier ? site_key(*earlier) : "");
}

char severity_letter(const Rule& rule) {
  switch (rule.severity) {
    case Severity::kError: return 'E';
    case Severity::kStrict: return 'S';
    case Severity::kAdvice: return 'A';
    case Severity::kUnknown: return 'U';
  }
  return 'E';
}

const char* evidence_name(Evidence evidence) {
  switch (evidence) {
    case Evidence::kSeenOnH200: return "H200";
    case Evidence::kProvenKernel: return "proven kernel";
    case Evidence::kDoc: return "documented";
    case Evidence::kAssumed: return "assumed";
  }
  return "assumed";
}

const char* rule_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::kPoison: return "machine-poison";
    case FaultKind::kBounds: return "machine-bounds";
    case FaultKind::kMisaligned: return "machine-misaligned";
    case FaultKind::kAlignment: return "shared-alignment";
    case FaultKind::kProtocol: return "machine-protocol";
    case FaultKind::kDeadlock: return "machine-deadlock";
    case FaultKind::kTrap:
    case FaultKind::kAssert: return "machine-trap";
    case FaultKind::kLaunch: return "machine-launch";
    case FaultKind::kSyntax:
    case FaultKind::kUnsupported:
    case FaultKind::kGivenUp: break;
  }
  return "machine-unsupported";
}

std::string range_text(const RegionText& region) {
  const std::string owner = " of CTA " + std::to_string(region.cta);
  if (region.memory == "tensor")
    return "tensor memory columns " + std::to_string(region.column) + ".." +
           std::to_string(region.column + std::max(1u, region.columns) - 1) + ", lanes " +
           std::to_string(region.lane) + ".." + std::to_string(region.lane + std::max(1u, region.lanes) - 1) +
           owner;
  return region.memory + " memory [" + hex(region.address) + ", " + hex(region.address + region.bytes) + ")" +
         (region.memory == "shared" ? owner : "");
}

std::string shell_word(const std::string& word) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::strchr("-_./=,:+@%", c);
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') out += "'\\''";
    else out += c;
  }
  return out + "'";
}

std::string replay_line(const Seen& run, const std::string& program) {
  return "dualgemm-sim --mode " + run.mode + " --seed " + std::to_string(run.seed) + " " + program;
}

std::string replay_words(const ReplayOptions& options, const std::string& program) {
  std::string out;
  if (options.machine != kB200.name) out += "--machine " + shell_word(options.machine) + " ";
  if (!options.checks.empty() && options.checks != "all")
    out += "--checks " + shell_word(options.checks) + " ";
  if (!options.names.empty()) out += "--names " + shell_word(options.names) + " ";
  if (options.go_on) out += "--continue ";
  if (options.elect_lowest) out += "--elect-lowest ";
  if (options.patience != kDefaultPatience) out += "--patience " + std::to_string(options.patience) + " ";
  return out + program;
}

std::string render(const Report& report, const std::string& program) {
  std::string out = std::string(1, report.severity) + " " + report.rule + ": " + report.summary + "\n";
  if (const std::string site = site_text(report.later); !site.empty())
    field(out, report.earlier ? "later" : "at", site);
  if (report.earlier) field(out, "earlier", site_text(*report.earlier));
  for (const std::string& other : report.others) field(out, "and", other);
  if (report.region)
    field(out, "bytes",
          range_text(*report.region) + (report.region->write ? ", written" : ", read") +
              (report.region->name.empty() ? "" : "\n" + report.region->name));
  if (report.mbarrier)
    field(out, "barrier",
          "mbarrier at shared offset " + hex(report.mbarrier->offset) + " of CTA " +
              std::to_string(report.mbarrier->cta) +
              (report.mbarrier->name.empty() ? "" : "\n" + report.mbarrier->name));
  if (!report.missing.empty()) field(out, "missing", report.missing);
  for (const std::string& note : report.notes) field(out, "note", note);
  if (report.declared_align != 0 && report.rule.starts_with("machine-"))
    field(out, "note",
          "in this run dynamic shared memory is aligned to " + std::to_string(report.declared_align) +
              " bytes only, as its module declares");
  field(out, "certain",
        report.every_schedule ? "for every schedule: it follows from the order of synchronisation"
                              : "for this schedule; another one may not show it");
  field(out, "rule",
        report.says + "\n" + report.section + (report.section.empty() ? "(" : " (") + report.evidence + ")");
  if (!report.seen.empty()) {
    uint64_t count = 0;
    for (const Seen& run : report.seen) count += run.count;
    std::string seen = std::to_string(count) + (count == 1 ? " time" : " times");
    if (report.seen.size() > 1) seen += " in " + std::to_string(report.seen.size()) + " runs";
    field(out, "seen", seen);
    field(out, "replay", replay_line(report.seen.front(), program));
  }
  return out;
}

void merge(std::vector<Report>& all, const Report& more) {
  const std::string key = more.key();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Report& report) { return report.key() == key; });
  if (found == all.end()) {
    all.push_back(more);
    return;
  }
  for (const Seen& run : more.seen) {
    const auto same = std::find_if(found->seen.begin(), found->seen.end(), [&](const Seen& other) {
      return other.mode == run.mode && other.seed == run.seed;
    });
    if (same == found->seen.end()) found->seen.push_back(run);
    else same->count += run.count;
  }
}

void merge(CertificateText& all, const CertificateText& more) {
  all.barriers += more.barriers;
  all.certified += more.certified;
  for (const CertificateText::Refused& r : more.refused) {
    const auto same = std::find_if(all.refused.begin(), all.refused.end(),
                                   [&](const CertificateText::Refused& o) { return o.init == r.init; });
    if (same == all.refused.end()) all.refused.push_back(r);
    else same->count += r.count;
  }
}

std::string render(const CertificateText& c) {
  if (c.barriers == 0) return "";
  std::string out = "certificate: " + std::to_string(c.certified) + " of " + std::to_string(c.barriers) +
                    (c.barriers == 1 ? " mbarrier" : " mbarriers") + " certified for all schedules\n";
  for (const CertificateText::Refused& r : c.refused)
    out += "  not certified: " + std::to_string(r.count) + " of " + r.init + ", because " + r.reason + "\n";
  return out;
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SiteText, kernel, where, operation, ptx_line, text, source)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RegionText, memory, write, cta, address, bytes, lane, lanes, column,
                                   columns, name)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BarrierText, cta, offset, name)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Seen, mode, seed, count)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CertificateText::Refused, init, reason, count)

void to_json(nlohmann::json& out, const CertificateText& c) {
  out = {{"barriers", c.barriers}, {"certified", c.certified}, {"refused", c.refused}};
}

void from_json(const nlohmann::json& in, CertificateText& c) {
  c = {in.at("barriers"), in.at("certified"), in.at("refused")};
}

void to_json(nlohmann::json& out, const Report& report) {
  out = {{"rule", report.rule},
         {"severity", std::string(1, report.severity)},
         {"evidence", report.evidence},
         {"section", report.section},
         {"says", report.says},
         {"summary", report.summary},
         {"later", report.later},
         {"earlier", report.earlier},
         {"others", report.others},
         {"region", report.region},
         {"mbarrier", report.mbarrier},
         {"missing", report.missing},
         {"notes", report.notes},
         {"every_schedule", report.every_schedule},
         {"declared_align", report.declared_align},
         {"seen", report.seen}};
}

void from_json(const nlohmann::json& in, Report& report) {
  report = {in.at("rule"),
            in.at("severity").get<std::string>().at(0),
            in.at("evidence"),
            in.at("section"),
            in.at("says"),
            in.at("summary"),
            in.at("later"),
            {},
            in.at("others"),
            {},
            {},
            in.at("missing"),
            in.at("notes"),
            in.at("every_schedule"),
            in.at("declared_align"),
            in.at("seen")};
  in.at("earlier").get_to(report.earlier);
  in.at("region").get_to(report.region);
  in.at("mbarrier").get_to(report.mbarrier);
}

}  // namespace sim
