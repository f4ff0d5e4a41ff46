// module.cpp -- loading a module: PTX text is parsed, its variables get memory, its kernels are decoded.
#include <cstring>
#include <vector>

#include "sim/decode/program.h"
#include "sim/launch.h"

namespace sim {

constexpr uint64_t kMostBytes = uint64_t{1} << 31;  // of all variables, for the reason that it is of one

Module::Module() : program_(std::make_unique<Program>()) {}

Module::~Module() { release_variables(); }

void Module::release_variables() {
  for (const GlobalVariable& variable : program_->globals)
    program_->memory->release(reinterpret_cast<void*>(variable.address));
  program_->globals.clear();
}

std::unique_ptr<Module> Module::load(const std::string& ptx, GlobalMemory& memory, const ModuleEditor& edit,
                                     int device) {
  std::unique_ptr<Module> module(new Module);
  Program& program = *module->program_;
  program.memory = &memory;
  program.text = ptx::parse(ptx);
  if (edit) edit(program.text);
  std::vector<const ptx::Variable*> variables;
  uint64_t bytes = 0;
  for (const ptx::Variable& variable : program.text.variables) {
    if (variable.space != "global" && variable.space != "const") continue;
    const auto refuse = [&](const std::string& why) {
      throw Fault(FaultKind::kUnsupported, "PTX line " + std::to_string(variable.ptx_line) + ": variable " +
                                               variable.name + " " + why);
    };
    if (variable.is_extern || variable.size == 0) refuse("is not defined in this module");
    bytes += variable.size;
    if (bytes > kMostBytes) refuse("does not fit: the variables of a module have at most 2^31 bytes");
    variables.push_back(&variable);
  }
  for (const ptx::Variable* variable : variables) {
    void* at = memory.allocate(variable->size, "__device__ " + variable->name, device);
    std::memset(at, 0, variable->size);
    for (const auto& [offset, pattern] : variable->initial)
      std::memcpy(static_cast<uint8_t*>(at) + offset, &pattern, size_t(ptx::bits(variable->type)) / 8);
    const uint64_t address = reinterpret_cast<uint64_t>(at);
    memory.mark_written(address, variable->size);
    program.globals.push_back({variable->name, address, variable->size});
    program.addresses[variable->name] = address;
  }
  decode(program);
  return module;
}

const KernelInfo* Module::find_kernel(const std::string& name) const {
  const Kernel* kernel = program_->find(name);
  return kernel == nullptr ? nullptr : &kernel->info;
}

const GlobalVariable* Module::find_global(const std::string& name) const {
  for (const GlobalVariable& variable : program_->globals)
    if (variable.name == name) return &variable;
  return nullptr;
}

const std::vector<KernelInfo>& Module::kernels() const { return program_->infos; }

}  // namespace sim
