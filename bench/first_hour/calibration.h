// calibration.h -- what a first hour on a GPU (first_hour.py) says of the cost model: its constants as they
// were measured, the choices that would change with them, and how far the predicted times are from the
// measured ones, with the constants in use and with those.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace bench {

// Returns whether this is what first_hour.py wrote.
bool is_first_hour(const nlohmann::json& report);

// Returns all of that as text. With times of every instance on 9.0 the fit of calibrate.h follows. Throws
// std::runtime_error for a file that has no constants.
std::string first_hour_calibration(const nlohmann::json& report);

}  // namespace bench
