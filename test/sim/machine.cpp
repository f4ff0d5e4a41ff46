// machine.cpp -- finding a machine by its name, and which code runs on it.
#include "sim/machine.h"

#include <strings.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>
#include <set>
#include <stdexcept>

namespace sim {
namespace {

constexpr const Machine* kMachines[] = {&kB200, &kB300, &kH200, &kH100};

// Compute capability 10.1 was the first number of a chip that is not of the family of 10.0; the chip is 11.0
// now.
constexpr uint32_t kRenumbered = 101;

bool same_family(uint32_t older, uint32_t newer) {
  return older / 10 == newer / 10 && older <= newer && older != kRenumbered;
}

void require(bool holds, const std::string& why) {
  if (!holds) throw std::invalid_argument(why);
}

const Machine& whole_machine(const std::string& name) {
  std::string known;
  for (const Machine* machine : kMachines) {
    if (strcasecmp(machine->name, name.c_str()) == 0) return *machine;
    known += (known.empty() ? "" : ", ") + std::string(machine->name);
  }
  throw std::invalid_argument("no machine is named \"" + name + "\"; the machines are " + known);
}

// What differs from the whole GPU, where it is said.
struct PartOfGpu {
  std::optional<int> sms, clusters_of_2, clusters_of_4;
};

// Reads "sms=78" and the like behind the comma at `at`, separated by commas. `name` is all that was said.
PartOfGpu part_named(const std::string& name, size_t at) {
  PartOfGpu part;
  const struct {
    const char* word;
    std::optional<int>* number;
  } kinds[] = {
      {"sms", &part.sms}, {"clusters_of_2", &part.clusters_of_2}, {"clusters_of_4", &part.clusters_of_4}};
  while (at < name.size()) {
    const size_t end_of_text = std::min(name.find(',', at + 1), name.size());
    const std::string text = name.substr(at + 1, end_of_text - at - 1);
    at = end_of_text;
    const std::string said = name + ": \"" + text + "\" ";
    const size_t equals = std::min(text.find('='), text.size());
    const auto kind = std::find_if(std::begin(kinds), std::end(kinds),
                                   [&](const auto& k) { return text.substr(0, equals) == k.word; });
    require(kind != std::end(kinds) && equals < text.size(),
            said + "is none of sms=N, clusters_of_2=N, clusters_of_4=N");
    require(!*kind->number, said + "says " + kind->word + " twice");
    int number = 0;
    const char *const first = text.c_str() + equals + 1, *const last = text.c_str() + text.size();
    const auto [end, error] = std::from_chars(first, last, number);
    require(error != std::errc::result_out_of_range || end != last || *first == '-',
            said + "is beyond " + std::to_string(std::numeric_limits<int>::max()));
    require(error == std::errc() && end == last && number >= 0, said + "has no number");
    *kind->number = number;
  }
  return part;
}

using Groups = decltype(Machine::cluster_groups);

Groups first_sms(const Groups& whole, int sms) {
  Groups part{};
  size_t kinds = 0;
  for (const auto& [groups, size] : whole) {
    if (groups == 0 || sms == 0) break;
    const int full = std::min(groups, sms / size);
    if (full > 0) part.at(kinds++) = {full, size};
    sms -= full * size;
    if (full == groups) continue;
    if (sms > 0) part.at(kinds++) = {1, sms};
    break;
  }
  return part;
}

int clusters_in(const Machine& machine, int size) {
  int clusters = 0;
  for (const auto& [groups, sms] : machine.cluster_groups) clusters += groups * (sms / size);
  return clusters;
}

// A machine's name outlives every value of it.
const char* kept(const std::string& name) {
  static std::set<std::string> names;
  return names.insert(name).first->c_str();
}

}  // namespace

std::string Target::text() const {
  return std::to_string(arch) + (suffix != '\0' ? std::string(1, suffix) : "");
}

Target parse_target(const std::string& text) {
  const size_t digits = text.find_first_of("0123456789");
  if (digits == std::string::npos) return {};
  char* end = nullptr;
  const uint32_t arch = uint32_t(std::strtoul(text.c_str() + digits, &end, 10));
  return {arch, *end == 'a' || *end == 'f' ? *end : '\0'};
}

bool Machine::compiles(const Target& ptx) const {
  switch (ptx.suffix) {
    case 'a': return ptx.arch == arch();
    case 'f': return same_family(ptx.arch, arch());
    default: return ptx.arch <= arch();
  }
}

bool Machine::executes(const Target& cubin) const {
  return cubin.suffix == 'a' ? cubin.arch == arch() : same_family(cubin.arch, arch());
}

Machine machine_named(const std::string& name) {
  const std::string word = name.substr(0, name.find(','));
  Machine machine = whole_machine(word);
  const PartOfGpu part = part_named(name, word.size());
  if (part.sms) {
    require(*part.sms >= 1 && *part.sms <= machine.sms,
            name + ": sms must be from 1 to " + std::to_string(machine.sms));
    machine.cluster_groups = first_sms(machine.cluster_groups, *part.sms);
    machine.sms = *part.sms;
  }
  if (part.clusters_of_2 || part.clusters_of_4) {
    const int twos = part.clusters_of_2.value_or(clusters_in(machine, 2));
    const int fours = part.clusters_of_4.value_or(std::min(clusters_in(machine, 4), twos / 2));
    require(2 * twos <= machine.sms && 2 * fours <= twos,
            name + ": " + std::to_string(machine.sms) + " SMs do not hold " + std::to_string(twos) +
                " clusters of two CTAs, of which two each are one of the " + std::to_string(fours) +
                " clusters of four");
    machine.cluster_groups = {{{fours, 4}, {twos - 2 * fours, 2}, {machine.sms - 2 * twos, 1}}};
  }
  if (word.size() < name.size()) machine.name = kept(machine.name + name.substr(word.size()));
  return machine;
}

}  // namespace sim
