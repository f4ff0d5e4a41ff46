// compare.h -- two reports of --json side by side: the shapes that both have.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace bench {

// Reads a report. Throws std::runtime_error, with the name of the file, for what is none or has another
// schema.
nlohmann::json read_report(const std::string& path);

// Throws std::runtime_error unless the times of both reports mean the same: all measured or all modelled, of
// the same type of C, the same number of products and the same activation.
void check_comparable(const nlohmann::json& old_report, const nlohmann::json& new_report);

// Returns a table of the old time, the new one, and their ratio, and a note where the reports are of
// different devices or leave out shapes of each other.
std::string comparison(const nlohmann::json& old_report, const nlohmann::json& new_report);

}  // namespace bench
