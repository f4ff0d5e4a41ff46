// parts.h -- what a judge is put together from: the checkers, by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/check/finding.h"

namespace sim {

struct Checks {
  bool race = true, protocol = true;
};
// "race,protocol", "all", "none". std::runtime_error naming the word that is none of them.
Checks parse_checks(const std::string& text);
std::vector<std::unique_ptr<Observer>> make_checkers(const Checks& checks, const FindingSink& sink);

}  // namespace sim
