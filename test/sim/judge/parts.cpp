// parts.cpp -- see parts.h.
#include "sim/judge/parts.h"

#include <sstream>
#include <stdexcept>

#if __has_include("sim/check/race.h")
#include "sim/check/race.h"
#endif
#if __has_include("sim/check/protocol.h")
#include "sim/check/protocol.h"
#endif
#if __has_include("sim/schedule/modes.h")
#include "sim/schedule/modes.h"
#endif

namespace sim {

const std::vector<ScheduleMode>& schedule_modes() {
  static const std::vector<ScheduleMode> all = {
      {"default", "asynchronous work lands first, oldest first; warps take turns"}};
  return all;
}

std::unique_ptr<Policy> make_schedule(const std::string& mode, uint64_t) {
  if (mode == "default") return std::make_unique<DefaultPolicy>();
  throw std::runtime_error("there is no schedule mode \"" + mode + "\"; the modes are default");
}

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
#if __has_include("sim/check/race.h")
  if (checks.race) all.push_back(std::make_unique<RaceChecker>(sink));
#endif
#if __has_include("sim/check/protocol.h")
  if (checks.protocol) all.push_back(std::make_unique<ProtocolChecker>(sink));
#endif
  (void)checks, (void)sink;
  return all;
}

}  // namespace sim
