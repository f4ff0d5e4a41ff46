// registry.h -- what the constructors that nvcc plants in every object told us: fat binaries, the kernels and
// variables they declare, and the host addresses that stand for them. Modules are loaded when first used, so
// a fat binary with code that the simulator does not know harms only the program that uses it. The registry
// launches nothing.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/launch.h"

namespace sim::shim {

struct FatBinary;

// The attributes that a program set; -1 means the default.
struct FunctionAttributes {
  int max_dynamic_smem = -1;
  int smem_carveout = -1;
  int cluster_policy = 0;
  bool non_portable_cluster = false;
};

// A kernel is known by its fat binary and name, never by the name alone: static kernels of two files share
// one. Its address is the cudaKernel_t and the cudaFunction_t of the runtime.
struct Kernel {
  FatBinary* owner;
  std::string name;
  std::map<int, FunctionAttributes> attributes;  // by device; a reset of the device leaves them, as an H200
};

struct Variable {
  FatBinary* owner;
  std::string name;
  void** managed_pointer;  // host pointer to fill for __managed__ variables, null otherwise
};

// What of a fat binary is loaded on one device.
struct Image {
  std::unique_ptr<Module> module;  // null until first used
  // Kernels that stand alone are modules of their own, so that a program pays for those that it launches.
  std::map<std::string, std::unique_ptr<Module>> parts;
  std::string load_error;   // why loading failed: the same answer every time
  int load_error_code = 0;  // cudaError_t
};

struct FatBinary {
  const void* wrapper;
  std::string text;                       // the PTX, empty until first used
  std::map<int, Image> images;            // by device
  std::map<std::string, Kernel> kernels;  // by PTX name; node addresses are stable
};

class Registry {
 public:
  FatBinary* add(const void* wrapper);
  void remove(FatBinary* binary);
  void add_kernel(FatBinary* binary, const void* host_stub, const char* name);
  void add_variable(FatBinary* binary, const void* host_variable, const char* name, void** managed);

  // Takes a host stub, a cudaKernel_t or a cudaFunction_t, and throws Failure cudaErrorInvalidDeviceFunction
  // for anything else.
  Kernel& kernel(const void* stub_or_handle);
  // Throws Failure cudaErrorInvalidSymbol when the variable is unknown.
  GlobalVariable variable(const void* host_variable, GlobalMemory& memory, int device);
  // Loads the module at its first use on the device. Throws Failure with the loader's text when the PTX is
  // missing, malformed or unsupported.
  const Module& module(FatBinary& binary, GlobalMemory& memory, int device);
  const Module& module(const Kernel& kernel, GlobalMemory& memory, int device);  // which has this kernel
  const KernelInfo& info(const Kernel& kernel, GlobalMemory& memory, int device);
  // Returns the names of the kernels that are loaded on the device.
  std::vector<std::string> loaded_kernels(int device) const;
  // Sets what is applied to every module that is loaded from now on, and to its text.
  void set_editor(ModuleEditor edit, std::function<void(std::string&)> cut) {
    edit_ = std::move(edit);
    cut_ = std::move(cut);
  }
  // Forgets every loaded module; the next use loads afresh. Function attributes stay.
  void reload();
  // Forgets the modules that are loaded on the device; the next use loads afresh. Function attributes stay.
  void unload(int device);
  // Forgets every loaded module and function attribute.
  void unload_all();
  // Modules that were dropped live on while a judge may hold their instructions; this ends it.
  void forget_retired() { retired_.clear(); }
  // Points the host side of the binary's __managed__ variables at their memory.
  void bind_managed(FatBinary& binary, GlobalMemory& memory, int device);

 private:
  void retire(Image& image);
  // Returns the PTX of the binary for the simulated GPU. Throws FatbinError or Fault.
  const std::string& text(FatBinary& binary);
  // Calls load() unless it failed before; a failure gives the same answer every time.
  template <class Load>
  const Module& loaded(Image& image, const Load& load);

  ModuleEditor edit_;
  std::function<void(std::string&)> cut_;
  std::vector<std::unique_ptr<Module>> retired_;
  std::map<FatBinary*, std::unique_ptr<FatBinary>> binaries_;
  std::map<const void*, Kernel*> kernels_;     // by host stub and by handle
  std::map<const void*, Variable> variables_;  // by host address
};

}  // namespace sim::shim
