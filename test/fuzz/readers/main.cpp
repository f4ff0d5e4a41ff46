// main.cpp -- the simulator's readers under libFuzzer. An input that begins with a container's magic number
// is a fat binary, any other is PTX text. It is read up to a loaded module, or refused with an error that
// says where.

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>

#include "fuzz/readers/mutate.h"
#include "sim/decode/program.h"
#include "sim/launch.h"
#include "sim/shim/fatbin.h"
#include "sim/shim/one_kernel.h"

using namespace dualgemm_fuzz;

static void require(bool holds, const char* what, std::string_view text = {}) {
  if (holds) return;
  std::fprintf(stderr, "%s: %.*s\n", what, int(text.size()), text.data());
  std::abort();
}

// Is there a number behind the word?
static bool names(const std::string& text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    if (at + word.size() < text.size() && std::isdigit(uint8_t(text[at + word.size()]))) return true;
  return false;
}

// Every index of a decoded kernel is one of something.
static void check(const sim::Kernel& kernel) {
  const size_t registers = kernel.register_names.size(), code = kernel.code.size();
  const auto value = [&](const sim::Value& v) {
    if (v.kind == sim::Value::Kind::kRegister) require(v.reg < registers, "register", kernel.info.name);
  };
  for (const sim::Inst& inst : kernel.code) {
    require(inst.statement != nullptr, "statement", kernel.info.name);
    if (inst.guarded) require(inst.guard < registers, "guard", inst.statement->text);
    for (const sim::Operand& operand : inst.operands) {
      value(operand.value);
      for (const sim::Value& item : operand.items) value(item);
      if (operand.kind == sim::Operand::Kind::kLabel)
        require(uint64_t(operand.offset) < code, "label", inst.statement->text);
    }
    for (const uint32_t target : inst.targets) require(target < code, "target", inst.statement->text);
    require(inst.rejoin == sim::kNowhere || inst.rejoin < code, "rejoin", inst.statement->text);
    require(inst.callee == sim::kNowhere || inst.callee < kernel.functions.size(), "callee",
            inst.statement->text);
    for (const uint32_t reg : inst.wgmma_registers)
      require(reg < kernel.wgmma_registers.size(), "wgmma register", inst.statement->text);
  }
  require(kernel.info.static_smem == kernel.static_smem_end - uint64_t{sim::Machine::kReservedSmemPerBlock},
          "static shared memory", kernel.info.name);
}

// Loading a large variable takes time and finds nothing.
static void leave_small(sim::ptx::Module& module) {
  uint64_t bytes = 0;
  for (const sim::ptx::Variable& variable : module.variables) {
    if (variable.size > 1 << 20 || (bytes += variable.size) > 1 << 20)
      throw sim::Fault(sim::FaultKind::kUnsupported, "ptx:0:0: too large for this test");
  }
}

static bool load(const std::string& text) {
  try {
    sim::GlobalMemory memory;
    const auto module = sim::Module::load(text, memory, leave_small);
    bool whole = true;
    for (const sim::Kernel& kernel : module->program().kernels) {
      if (kernel.refused.empty()) check(kernel);
      else require(names(kernel.refused, "PTX line "), "a refusal without a line", kernel.refused);
      whole = whole && kernel.refused.empty();
    }
    return whole;
  } catch (const sim::Fault& fault) {
    require(names(fault.what(), "ptx:") || names(fault.what(), "PTX line "), "a fault without a line",
            fault.what());
    return false;
  }
}

// As the runtime does: the module whole, or a kernel of it that stands alone.
static bool read_text(const std::string& text) {
  const bool whole = load(text);
  constexpr std::string_view kEntry = ".visible .entry ";
  const size_t at = text.find(kEntry), end = text.find('(', at);
  if (at == std::string::npos || end == std::string::npos) return whole;
  std::string one = text;
  if (sim::shim::kernels_stand_alone(one) &&
      sim::shim::keep_kernel(one, text.substr(at + kEntry.size(), end - at - kEntry.size())) && one != text)
    load(one);
  return whole;
}

static bool read_container(std::string bytes) {
  // How many bytes lie in memory is not for the reader to know: what the linker put there has them all.
  uint16_t header;
  uint64_t rest;
  if (bytes.size() < 16) return false;
  std::memcpy(&header, bytes.data() + 6, sizeof header);
  std::memcpy(&rest, bytes.data() + 8, sizeof rest);
  if (header > bytes.size()) return false;
  rest = std::min<uint64_t>(rest, bytes.size() - header);
  std::memcpy(bytes.data() + 8, &rest, sizeof rest);
  const struct {
    uint32_t magic = 0x466243B1, version = 1;
    const void* data;
    const void* unused = nullptr;
  } wrapper = {.data = bytes.data()};

  std::vector<sim::shim::FatbinEntry> entries;
  bool whole = false;
  try {
    entries = sim::shim::fatbin_entries(&wrapper);
    for (const sim::shim::FatbinEntry& entry : entries)
      if (entry.kind == sim::shim::FatbinEntry::Kind::kPtx) whole = read_text(sim::shim::unpack_ptx(entry));
  } catch (const sim::shim::FatbinError& error) {
    require(names(error.what(), "byte "), "an error without an offset", error.what());
    return false;
  }
  for (const sim::Machine& machine : {sim::kB200, sim::kB300, sim::kH200}) {
    try {
      sim::shim::select_ptx(entries, machine);
    } catch (const sim::shim::FatbinError& error) {
      require(std::strstr(error.what(), machine.name) != nullptr, "an error without the machine",
              error.what());
    }
  }
  return whole;
}

static bool read(std::string input) {
  return is_container(input) ? read_container(std::move(input)) : read_text(input);
}

extern "C" const char* __asan_default_options() {
  return "detect_leaks=1:detect_stack_use_after_return=0:quarantine_size_mb=32:malloc_context_size=4";
}

// What the inputs grow from has to be read, or all of them might be refused for the same reason.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view kOption = "-seed_inputs=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument = (*argv)[i];
    if (!argument.starts_with(kOption)) continue;
    std::istringstream list{std::string(argument.substr(kOption.size()))};
    for (std::string path; std::getline(list, path, ',');) {
      std::ifstream file(path, std::ios::binary);
      require(file.good() && read({std::istreambuf_iterator<char>(file), {}}), "a first input is not read",
              path);
    }
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  Random random(seed);
  std::string input(reinterpret_cast<const char*>(data), size);
  if (is_container(input)) mutate_container(input, random);
  else if (mutate_text(input, random); random() % 32 == 0) input = pack(input, random);
  input.resize(std::min(input.size(), most));
  std::copy(input.begin(), input.end(), data);
  return input.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  read({reinterpret_cast<const char*>(data), size});
  return 0;
}
