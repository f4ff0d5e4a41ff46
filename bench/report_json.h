// report_json.h -- what --json writes: everything that the tables say and more, with what a reader needs to
// know of the run. README.md lists the fields. --compare and plot.py read it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "machine.h"
#include "nvml.h"
#include "results.h"
#include "tables.h"

namespace bench {

// It rises when a field changes its name or its meaning; more fields leave it as it is.
inline constexpr int kJsonSchema = 1;

// What a run is: beside its results.
struct RunInfo {
  Times times;
  std::string git;                // the commit that the program was built of, or "unknown"
  std::string dtype, activation;  // the latter of one product or of two
  int repeats, samples;
  std::string a_dtype = "nvfp4";
  int32_t products = 2;
};

nlohmann::json to_json(const Timing& timing);
nlohmann::json to_json(const Result& result, const Machine& machine);

// Returns everything but "results", dated now. Nothing is asked of a GPU that is only described.
nlohmann::json report_json(const RunInfo& info, const Machine& machine, const GpuState& state);

// Returns the text of a report: a line for each of its fields, and for each entry of a list, such as a
// result.
std::string report_text(const nlohmann::json& report);

}  // namespace bench
