// compare.h -- earlier reports of --json: beside a new one, the shapes that both have, and as parts of it,
// what need not run again.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace bench {

// Reads a file; what is no JSON becomes a value that is_discarded. Throws std::runtime_error where there is
// none.
nlohmann::json read_json(const std::string& path);

// Reads a report. Throws std::runtime_error, with the name of the file, for what is none or has another
// schema.
nlohmann::json read_report(const std::string& path);

// Throws std::runtime_error unless the times of both reports mean the same: all measured or all modelled, of
// the same type of C, the same number of products and the same activation.
void check_comparable(const nlohmann::json& old_report, const nlohmann::json& new_report);

// Returns what the row of a result is about, as a key: two rows with the same one are the same problem.
std::string problem_of(const nlohmann::json& row);

// Returns the results of these reports that are no errors, by their problems; a file that is not there has
// none. Throws std::runtime_error unless each report is of the same program and device as the new one, and of
// the same options as far as a report has them.
std::map<std::string, nlohmann::json> kept_results(const std::vector<std::string>& paths,
                                                   const nlohmann::json& new_report);

// Returns a table of the old time, the new one, and their ratio, and a note where the reports are of
// different devices or leave out shapes of each other.
std::string comparison(const nlohmann::json& old_report, const nlohmann::json& new_report);

}  // namespace bench
