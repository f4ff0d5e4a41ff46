// conformance_test.cpp -- the simulator against an H200: the same program, record by record. golden.txt.gz is
// what the H200 printed (record.sh). Exact records must be equal bit for bit, unless kExplained says why they
// cannot be; tables of approximate functions must lie within the ISA's error bound of the H200's results;
// free records are printed. Nothing is left out: a record missing on either side is a failure.
// Where an exact record differs, `conformance --images FILE` writes its bytes, in the simulator as on the
// H200.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "sim/conformance/record.h"
#include "sim/conformance/table.h"
#include "sim/engine/numerics.h"
#include "sim/parse/module.h"
#include "sim/shim/fatbin.h"
#include "sim/shim/shim.h"
#include "support/catch.hpp"

namespace {

using conformance::Bytes;
using conformance::Record;

// These records may differ, and here is why. Names ending in '*' are prefixes.
struct Explanation {
  const char* name;
  const char* why;
};
const std::vector<Explanation> kExplained = {};

const Explanation* explanation(const std::string& name) {
  for (const Explanation& e : kExplained) {
    const std::string pattern = e.name;
    if (pattern.back() == '*' ? name.compare(0, pattern.size() - 1, pattern, 0, pattern.size() - 1) == 0
                              : name == pattern)
      return &e;
  }
  return nullptr;
}

// Returns the lines of the record by the names of their records.
std::map<std::string, std::string> read_golden() {
  std::ifstream in(CONFORMANCE_GOLDEN);
  std::map<std::string, std::string> out;
  std::string suite;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name == "table" || name == "free") words >> name;
    if (name == "#") words >> suite;
    else REQUIRE(out.emplace(suite + '/' + name, line).second);
  }
  return out;
}

const std::vector<Record>& simulated() {
  static const std::vector<Record> records = conformance::run(
      "", [] { sim::shim::clear_fault(); }, [](const Record&) {});
  return records;
}

// Returns what the H200 computed: its line holds it relative to correctly rounded results, and its hash.
Bytes results_of(const Record& table, const std::string& line) {
  std::istringstream words(line);
  std::string kind, name, hash, text;
  words >> kind >> name >> hash >> text;
  Bytes results = conformance::table_results(table.name, table.inputs, text);
  INFO(table.name
       << ": a changed line, or a C library that rounds otherwise than the one it was recorded with");
  REQUIRE(conformance::hash_of(results) == std::stoull(hash, nullptr, 16));
  return results;
}

// ---- approximate functions -------------------------------------------------------------------------------

// A bound of the PTX ISA allows some units in the last place of the result's format, or a relative error, or
// an absolute one, whichever allows more. For sin and cos the ISA bounds the error by 2^-20.5 up to pi, by
// 2^-14.7 up to 100 pi and not at all beyond 100 pi: there the result only has to lie in the range of the
// function. An H200 truncates ex2 results that are subnormal in f16, so there the last place is free.
struct Bound {
  const char* prefix;
  double ulps, relative, absolute;
  bool periodic = false;
};
// The ISA's tables state these bounds of ex2, lg2, rcp, rsqrt, sqrt, sin, cos, tanh for f32 (full range, .ftz
// alike).
constexpr Bound kBounds[] = {
    {"approximate/ex2.approx.f32", 2, 0, 0},
    {"approximate/ex2.approx.ftz.f32", 2, 0, 0},
    {"approximate/lg2.approx.f32", 1, 0x1p-22, 0x1p-22},
    {"approximate/lg2.approx.ftz.f32", 1, 0x1p-22, 0x1p-22},
    {"approximate/rcp.approx", 1, 0, 0},
    {"approximate/rsqrt.approx", 0, 0x1.8p-23, 0},
    {"approximate/sqrt.approx", 0, 0x1p-23, 0},
    {"approximate/sin.approx", 0, 0, 0x1p-20, true},
    {"approximate/cos.approx", 0, 0, 0x1p-20, true},
    {"approximate/tanh.approx.f32", 0, 0x1p-11, 0},
    {"approximate/ex2.approx.f16", 0, 0x1p-9, 0x1p-24},
    {"approximate/ex2.approx.ftz.bf16", 0, 0x1p-7, 0},
    {"approximate/tanh.approx.f16", 0, 0, 0x1p-10},
    {"approximate/tanh.approx.bf16", 0, 0, 0x1p-8},
};

const Bound* bound_of(const std::string& name) {
  const Bound* best = nullptr;
  for (const Bound& bound : kBounds)
    if (name.rfind(bound.prefix, 0) == 0 &&
        (best == nullptr || std::string(bound.prefix).size() > std::string(best->prefix).size()))
      best = &bound;
  return best;
}

std::vector<double> values(const std::string& name, const Bytes& bytes, int* mantissa_bits) {
  std::vector<double> out;
  const bool half = name.find(".f16") != std::string::npos, brain = name.find("bf16") != std::string::npos;
  *mantissa_bits = half ? 10 : brain ? 7 : 23;
  const size_t size = half || brain ? 2 : 4;
  for (size_t i = 0; i + size <= bytes.size(); i += size) {
    uint32_t bits = 0;
    for (size_t k = 0; k < size; ++k) bits |= uint32_t(bytes[i + k]) << (8 * k);
    out.push_back(half    ? sim::f16_to_f32(uint16_t(bits))
                  : brain ? sim::bf16_to_f32(uint16_t(bits))
                          : std::bit_cast<float>(bits));
  }
  return out;
}

struct TableResult {
  size_t different = 0, outside = 0, first_outside = 0;
  double largest = 0;  // in ulps
};

double absolute_bound(const Bound& bound, double input) {
  if (!bound.periodic || std::fabs(input) <= 3.1415926) return bound.absolute;
  return std::fabs(input) <= 314.15926 ? 0x1.3bp-14 : 2;  // the ISA's 2^-14.7 on either side
}

TableResult compare_table(const Record& ours, const Bytes& theirs) {
  const std::string& name = ours.name;
  TableResult result;
  int mantissa = 0;
  const std::vector<double> x = values(name, ours.bytes, &mantissa), y = values(name, theirs, &mantissa);
  const Bound* bound = bound_of(name);
  REQUIRE(bound != nullptr);
  const std::vector<double> input = values(name, ours.inputs, &mantissa);
  REQUIRE(input.size() == x.size());
  REQUIRE(x.size() == y.size());
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::memcmp(&x[i], &y[i], sizeof x[i]) == 0 || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
    ++result.different;
    bool inside = false;
    if (std::isfinite(x[i]) && std::isfinite(y[i])) {
      const int floor = mantissa == 10 ? -14 : -126;
      const double size = std::max(std::fabs(x[i]), std::fabs(y[i]));
      const double ulp = std::ldexp(1.0, std::max(size == 0 ? floor : std::ilogb(size), floor) - mantissa);
      const double error = std::fabs(x[i] - y[i]);
      result.largest = std::max(result.largest, error / ulp);
      inside =
          error <= bound->ulps * ulp + bound->relative * size + absolute_bound(*bound, input[i]) + ulp / 2;
    }
    if (!inside && result.outside++ == 0) result.first_outside = i;
  }
  return result;
}

// ---- forms -----------------------------------------------------------------------------------------------

// Returns the forms of the PTX inside the objects that nvcc made of the sources, found by the container's
// magic number.
std::set<std::string> instruction_forms() {
  std::set<std::string> forms;
  std::istringstream objects(CONFORMANCE_OBJECTS);
  for (std::string path; std::getline(objects, path, ':');) {
    std::ifstream in(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    for (size_t at = 0; (at = bytes.find("\x50\xED\x55\xBA", at)) != std::string::npos; at += 4) {
      std::vector<uint64_t> container((bytes.size() - at + 7) / 8);
      std::memcpy(container.data(), bytes.data() + at, bytes.size() - at);
      const struct {
        uint32_t magic = 0x466243B1, version = 1;
        const void* data;
        const void* unused = nullptr;
      } wrapper{.data = container.data()};
      const auto entries = sim::shim::fatbin_entries(&wrapper);
      const sim::ptx::Module module =
          sim::ptx::parse(sim::shim::unpack_ptx(sim::shim::select_ptx(entries, sim::kH200)));
      for (const auto& function : module.functions)
        for (const auto& statement : function.body) {
          std::string form = statement.opcode;
          for (const std::string& qualifier : statement.qualifiers) form += "." + qualifier;
          forms.insert(form);
        }
    }
  }
  return forms;
}

}  // namespace

TEST_CASE("conformance: every record equals the H200's, or lies within the ISA's bound, or is explained",
          "[conformance]") {
  const std::map<std::string, std::string> golden = read_golden();
  REQUIRE_FALSE(golden.empty());
  std::set<std::string> seen;
  std::ostringstream report;  // an assertion in between would drop what INFO was told
  size_t exact = 0, tables = 0, free = 0, explained = 0, failures = 0;
  for (const Record& record : simulated()) {
    seen.insert(record.name);
    const auto found = golden.find(record.name);
    if (found == golden.end()) {
      report << record.name << " has no golden line" << '\n';
      ++failures;
      continue;
    }
    const std::string ours = conformance::line(record), &theirs = found->second;
    if (theirs.starts_with("free ")) {
      ++free;
      std::printf("free: %s\n      here %s\n      H200 %s\n", record.name.c_str(), ours.c_str(),
                  theirs.c_str());
    } else if (theirs.starts_with("table ") && record.error.empty()) {
      ++tables;
      const TableResult result = compare_table(record, results_of(record, theirs));
      std::printf("table: %-36s %5zu results differ, by %.2f ulp at most\n", record.name.c_str(),
                  result.different, result.largest);
      if (result.outside != 0) {
        report << record.name << ": " << result.outside << " results outside the bound, first at "
               << result.first_outside << '\n';
        ++failures;
      }
    } else {
      ++exact;
      if (ours == theirs) continue;
      if (const Explanation* e = explanation(record.name)) {
        std::printf("explained: %s: %s\n", record.name.c_str(), e->why);
        ++explained;
        continue;
      }
      report << record.name << "\n  here " << ours << "\n  H200 " << theirs << '\n';
      ++failures;
    }
  }
  for (const auto& [name, line] : golden)
    if (seen.count(name) == 0) {
      report << name << " was recorded on the H200 and not here" << '\n';
      ++failures;
    }
  std::printf("%zu exact records (%zu of them explained), %zu tables, %zu free; %zu failures\n", exact,
              explained, tables, free, failures);
  INFO(report.str());
  CHECK(failures == 0);
}

TEST_CASE("conformance: the instruction forms that the records execute are counted from their PTX",
          "[conformance]") {
  const std::set<std::string> forms = instruction_forms();
  std::map<std::string, int> by_opcode;
  for (const std::string& form : forms) ++by_opcode[form.substr(0, form.find('.'))];
  for (const auto& [opcode, count] : by_opcode) std::printf("%s %d, ", opcode.c_str(), count);
  std::printf("\n%zu instruction forms of %zu opcodes\n", forms.size(), by_opcode.size());
  CHECK(forms.size() > 900);
}
