// calibrate.h -- constants of the cost model for Hopper from times of every instance (--every-instance): what
// the fit to them is, and what it is worth.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace bench {

// Returns a table of constants, before and after, and how far the model is from the times with either.
// `report` is what --every-instance --json wrote. Throws std::runtime_error where it has no such times.
std::string calibration(const nlohmann::json& report);

}  // namespace bench
