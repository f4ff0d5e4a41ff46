// parts.cpp -- see parts.h.
#include "sim/judge/parts.h"

#include <sstream>
#include <stdexcept>

#include "sim/check/protocol.h"
#include "sim/check/race.h"

namespace sim {

Checks parse_checks(const std::string& text) {
  Checks checks{false, false};
  std::istringstream words(text);
  std::string word;
  bool any = false;
  while (std::getline(words, word, ',')) {
    any = true;
    if (word == "race") checks.race = true;
    else if (word == "protocol") checks.protocol = true;
    else if (word == "all") checks = {true, true};
    else if (word != "none")
      throw std::runtime_error("there is no check \"" + word +
                               "\"; the checks are race, protocol, all and none");
  }
  if (!any) throw std::runtime_error("no check is named; the checks are race, protocol, all and none");
  return checks;
}

std::vector<std::unique_ptr<Observer>> make_checkers(const Checks& checks, const FindingSink& sink) {
  std::vector<std::unique_ptr<Observer>> all;
  if (checks.race) all.push_back(std::make_unique<RaceChecker>(sink));
  if (checks.protocol) all.push_back(std::make_unique<ProtocolChecker>(sink));
  return all;
}

}  // namespace sim
