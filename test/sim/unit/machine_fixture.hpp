// machine_fixture.hpp -- a machine for tests: device memory, PTX text around a body,
// and a launch in one call.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "sim/launch.h"
#include "sim/unit/fault_of.hpp"

namespace sim_test {

// Returns one kernel `k` with the given parameter declarations and body; `before` holds module-scope
// declarations.
inline std::string kernel_text(const std::string& params, const std::string& body,
                               const std::string& before = "", const std::string& directives = "") {
  return ".version 8.8\n.target sm_100a\n.address_size 64\n" + before + "\n.visible .entry k(" + params +
         ")\n" + directives + "\n{\n" + body + "\n}\n";
}

struct Machine {
  sim::GlobalMemory memory;

  template <class T>
  T* make(size_t count) {  // unwritten
    return static_cast<T*>(memory.allocate(count * sizeof(T), "test buffer"));
  }
  template <class T>
  T* make(const std::vector<T>& values) {
    T* out = make<T>(values.size());
    std::memcpy(out, values.data(), values.size() * sizeof(T));
    memory.mark_written(reinterpret_cast<uint64_t>(out), values.size() * sizeof(T));
    return out;
  }
  // Throws Fault kPoison when the kernel did not write all of it.
  template <class T>
  std::vector<T> fetch(const T* from, size_t count) {
    std::vector<T> out(count);
    memory.read(reinterpret_cast<uint64_t>(from), out.data(), count * sizeof(T));
    return out;
  }

  sim::LaunchStats run(const std::string& ptx, const sim::LaunchConfig& config, std::vector<void*> args,
                       const sim::LaunchOptions& options = {}) {
    const auto module = sim::Module::load(ptx, memory);
    return sim::launch(*module, "k", config, args.data(), memory, options);
  }
};

inline sim::LaunchConfig shape(uint32_t grid, uint32_t block, uint32_t cluster = 1, size_t dynamic_smem = 0) {
  sim::LaunchConfig config;
  config.grid.x = grid;
  config.block.x = block;
  config.cluster.x = cluster;
  config.dynamic_smem = dynamic_smem;
  return config;
}

}  // namespace sim_test
