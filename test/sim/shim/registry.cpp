// registry.cpp -- see registry.h. The extern "C" half is the protocol between nvcc's generated code and the
// runtime.
#include "sim/shim/registry.h"

#include <cuda_runtime_api.h>

#include "sim/shim/fatbin.h"
#include "sim/shim/held.h"
#include "sim/shim/judging.h"
#include "sim/shim/one_kernel.h"
#include "sim/shim/state.h"

namespace sim::shim {

FatBinary* Registry::add(const void* wrapper) {
  auto binary = std::make_unique<FatBinary>();
  binary->wrapper = wrapper;
  FatBinary* handle = binary.get();
  binaries_.emplace(handle, std::move(binary));
  return handle;
}

void Registry::remove(FatBinary* binary) {
  std::erase_if(kernels_, [&](const auto& entry) { return entry.second->owner == binary; });
  std::erase_if(variables_, [&](const auto& entry) { return entry.second.owner == binary; });
  for (auto& [device, image] : binary->images) retire(image);
  binaries_.erase(binary);
}

void Registry::add_kernel(FatBinary* binary, const void* host_stub, const char* name) {
  Kernel& kernel = binary->kernels.try_emplace(name, Kernel{binary, name, {}}).first->second;
  kernels_[host_stub] = &kernel;
  kernels_[&kernel] = &kernel;
}

void Registry::add_variable(FatBinary* binary, const void* host_variable, const char* name, void** managed) {
  variables_.insert_or_assign(host_variable, Variable{binary, name, managed});
}

Kernel& Registry::kernel(const void* stub_or_handle) {
  const auto found = kernels_.find(stub_or_handle);
  if (found == kernels_.end())
    fail(cudaErrorInvalidDeviceFunction, "the function is no kernel that a loaded object registered");
  return *found->second;
}

GlobalVariable Registry::variable(const void* host_variable, GlobalMemory& memory, int device) {
  const auto found = variables_.find(host_variable);
  if (found == variables_.end())
    fail(cudaErrorInvalidSymbol, "the symbol is no device variable that a loaded object registered");
  const Variable& variable = found->second;
  const GlobalVariable* global = module(*variable.owner, memory, device).find_global(variable.name);
  if (!global)
    fail(cudaErrorInvalidSymbol, "the PTX of the object does not define variable " + variable.name);
  return *global;
}

const std::string& Registry::text(FatBinary& binary) {
  if (binary.text.empty())
    binary.text = unpack_ptx(select_ptx(fatbin_entries(binary.wrapper), runtime().machine));
  return binary.text;
}

template <class Load>
const Module& Registry::loaded(Image& image, const Load& load) {
  if (image.load_error.empty()) {
    try {
      return load();
    } catch (const FatbinError& error) {
      image.load_error_code = cudaErrorNoKernelImageForDevice;
      image.load_error = error.what();
    } catch (const Fault& fault) {
      judge_fault(runtime(), fault.kind(), fault.what());
      image.load_error_code =
          fault.kind() == FaultKind::kSyntax ? cudaErrorInvalidPtx : cudaErrorUnsupportedPtxVersion;
      image.load_error = fault.what();
    }
  }
  fail(static_cast<cudaError_t>(image.load_error_code), image.load_error);
}

const Module& Registry::module(FatBinary& binary, GlobalMemory& memory, int device) {
  Image& image = binary.images[device];
  if (image.module) return *image.module;
  return loaded(image, [&]() -> const Module& {
    std::string whole = text(binary);
    if (cut_) cut_(whole);
    image.module = Module::load(whole, memory, edit_, device);
    return *image.module;
  });
}

const Module& Registry::module(const Kernel& kernel, GlobalMemory& memory, int device) {
  FatBinary& binary = *kernel.owner;
  Image& image = binary.images[device];
  if (image.module || edit_ || cut_) return module(binary, memory, device);
  std::unique_ptr<Module>& part = image.parts[kernel.name];
  if (part) return *part;
  return loaded(image, [&]() -> const Module& {
    std::string one = text(binary);
    if (!kernels_stand_alone(one) || !keep_kernel(one, kernel.name)) return module(binary, memory, device);
    part = Module::load(one, memory, {}, device);
    return *part;
  });
}

const KernelInfo& Registry::info(const Kernel& kernel, GlobalMemory& memory, int device) {
  const KernelInfo* info = module(kernel, memory, device).find_kernel(kernel.name);
  if (!info)
    fail(cudaErrorInvalidDeviceFunction, "the PTX of the object does not define kernel " + kernel.name);
  return *info;
}

std::vector<std::string> Registry::loaded_kernels(int device) const {
  std::vector<std::string> names;
  const auto add = [&](const Module& module) {
    for (const KernelInfo& kernel : module.kernels()) names.push_back(kernel.name);
  };
  for (const auto& [handle, binary] : binaries_) {
    const auto image = binary->images.find(device);
    if (image == binary->images.end()) continue;
    if (image->second.module) add(*image->second.module);
    for (const auto& [name, part] : image->second.parts)
      if (part) add(*part);
  }
  return names;
}

void Registry::retire(Image& image) {
  if (image.module && runtime().judge) {
    image.module->release_variables();
    retired_.push_back(std::move(image.module));
  }
  if (runtime().judge)
    for (auto& [name, part] : image.parts)
      if (part) retired_.push_back(std::move(part));
  image = Image{};
}

void Registry::reload() {
  for (auto& [handle, binary] : binaries_) {
    for (auto& [device, image] : binary->images) retire(image);
    binary->text.clear();
  }
}

void Registry::unload(int device) {
  for (auto& [handle, binary] : binaries_)
    if (const auto image = binary->images.find(device); image != binary->images.end()) retire(image->second);
}

void Registry::unload_all() {
  reload();
  for (auto& [handle, binary] : binaries_)
    for (auto& [name, kernel] : binary->kernels) kernel.attributes.clear();
}

void Registry::bind_managed(FatBinary& binary, GlobalMemory& memory, int device) {
  for (const auto& [host, variable] : variables_)
    if (variable.owner == &binary && variable.managed_pointer)
      *variable.managed_pointer = reinterpret_cast<void*>(this->variable(host, memory, device).address);
}

}  // namespace sim::shim

using namespace sim::shim;

// Run from constructors, before any static object of this library exists, so they touch nothing but
// runtime(), which builds itself on first use.
extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  Runtime& runtime = sim::shim::runtime();
  std::lock_guard lock(runtime.mutex);
  return reinterpret_cast<void**>(runtime.registry.add(wrapper));
}

// Nothing is resolved at registration, so its end is no event.
void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void** handle) {
  Runtime& runtime = sim::shim::runtime();
  std::lock_guard lock(runtime.mutex);
  sim::shim::run_held_quietly(runtime, "__cudaUnregisterFatBinary");
  runtime.registry.remove(reinterpret_cast<FatBinary*>(handle));
}

void __cudaRegisterFunction(void** handle, const char* host_stub, char*, const char* device_name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  Runtime& runtime = sim::shim::runtime();
  std::lock_guard lock(runtime.mutex);
  runtime.registry.add_kernel(reinterpret_cast<FatBinary*>(handle), host_stub, device_name);
}

void __cudaRegisterVar(void** handle, char* host_variable, char*, const char* device_name, int, size_t, int,
                       int) {
  Runtime& runtime = sim::shim::runtime();
  std::lock_guard lock(runtime.mutex);
  runtime.registry.add_variable(reinterpret_cast<FatBinary*>(handle), host_variable, device_name, nullptr);
}

void __cudaRegisterManagedVar(void** handle, void** host_pointer, char*, const char* device_name, int, size_t,
                              int, int) {
  Runtime& runtime = sim::shim::runtime();
  std::lock_guard lock(runtime.mutex);
  runtime.registry.add_variable(reinterpret_cast<FatBinary*>(handle), host_pointer, device_name,
                                host_pointer);
}

// Is called before the host touches a __managed__ variable, which is the only moment at which a module must
// load without a launch.
char __cudaInitModule(void** handle) {
  return sim::shim::call("__cudaInitModule", [&](Runtime& runtime) {
           runtime.registry.bind_managed(*reinterpret_cast<FatBinary*>(handle), runtime.memory,
                                         sim::shim::current_device());
         }) == cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host_stub) {
  return sim::shim::call("__cudaGetKernel", [&](Runtime& runtime) {
    *kernel = reinterpret_cast<cudaKernel_t>(&runtime.registry.kernel(host_stub));
  });
}

}  // extern "C"
