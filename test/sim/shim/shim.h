// shim.h -- what a test may ask of the simulated runtime beside the CUDA API: the text of the last fault, who
// watches, who schedules and who judges the launches, and what the last launch did. Programs that only use
// CUDA never include this.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/launch.h"

namespace sim {
class Judge;  // judge/judge.h
}

namespace sim::shim {

// Returns the full report of the last kernel fault or failed call, empty when there was none.
std::string last_fault_text();
// Forgets the sticky error, the fault text and this thread's last error, as a new process would. There is no
// other way to use a device after a fault. Memory, streams and modules stay as the faulting kernel left them.
void clear_fault();

// Applies to every launch from now on, graph launches included; both pointers must outlive those launches.
void set_launch_options(const LaunchOptions& options);
LaunchStats last_launch_stats();
// Sets the judge of all work from now on; null means none. It must outlive that work. Judge::names() takes a
// table of names. A program without a call of this is judged when the environment says so
// (options_from_environment in judge/judge.h), which is read at its first launch, copy or fill.
void set_judge(Judge* judge);

// Sets the GPU from now on, in place of the one that SIM_MACHINE names (kB200 unless it is set). Every device
// is reset: allocations, modules, streams, events and function attributes are gone, and every fat binary is
// asked anew for the image that this GPU runs.
void set_machine(const Machine& machine);
// Sets the number of such GPUs, in place of SIM_DEVICES (1 unless it is set). Devices that are removed are
// reset, and the others keep their state. The calling thread's current device is 0 then.
void set_device_count(int count);
// Returns the names of the kernels whose code is loaded on a device, of all fat binaries.
std::vector<std::string> loaded_kernels(int device);

GlobalMemory& memory();

// Sets what is applied to the PTX of every fat binary: `edit` when it is parsed, before it is decoded, and
// `cut` to the text before that, to take out parts that are not needed. Empty functions end this. A module
// that is already loaded stays as it is until reload_modules().
void set_module_editor(ModuleEditor edit, std::function<void(std::string&)> cut = {});
// Drops every decoded module: the next use parses, edits and decodes it again. Its device variables start
// afresh, at new addresses; function attributes stay.
void reload_modules();

}  // namespace sim::shim
