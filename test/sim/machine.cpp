// machine.cpp -- finding a machine by its name, and which code runs on it.
#include "sim/machine.h"

#include <strings.h>

#include <cstdlib>
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

const Machine& machine_named(const std::string& name) {
  std::string known;
  for (const Machine* machine : kMachines) {
    if (strcasecmp(machine->name, name.c_str()) == 0) return *machine;
    known += (known.empty() ? "" : ", ") + std::string(machine->name);
  }
  throw std::invalid_argument("no machine is named \"" + name + "\"; the machines are " + known);
}

}  // namespace sim
