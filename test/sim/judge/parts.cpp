// parts.cpp -- see parts.h.
#include "sim/judge/parts.h"

#include <sstream>
#include <stdexcept>
#include <utility>

#include "sim/check/race.h"

namespace sim {
namespace {

const std::string kKnown = "the checks are race, protocol, certificate, all and none";

class Remarks : public Observer {
 public:
  explicit Remarks(FindingSink sink) : sink_(std::move(sink)) {}
  void remark(const Remark& remark) override { sink_(finding_of(remark)); }

 private:
  FindingSink sink_;
};

}  // namespace

Checks parse_checks(const std::string& text) {
  Checks checks{false, false, false};
  std::istringstream words(text);
  std::string word;
  bool any = false;
  while (std::getline(words, word, ',')) {
    any = true;
    if (word == "race") checks.race = true;
    else if (word == "protocol") checks.protocol = true;
    else if (word == "certificate") checks.certificate = true;
    else if (word == "all") checks = {true, true, true};
    else if (word != "none") throw std::runtime_error("there is no check \"" + word + "\"; " + kKnown);
  }
  if (!any) throw std::runtime_error("no check is named; " + kKnown);
  return checks;
}

std::string words_of(const Checks& checks) {
  if (checks.race && checks.protocol && checks.certificate) return "all";
  std::string out;
  const auto add = [&](bool wanted, const char* word) {
    if (wanted) out += (out.empty() ? "" : ",") + std::string(word);
  };
  add(checks.race, "race");
  add(checks.protocol, "protocol");
  add(checks.certificate, "certificate");
  return out.empty() ? "none" : out;
}

Checkers::Checkers(const Checks& checks, const FindingSink& sink) {
  all_.push_back(std::make_unique<Remarks>(sink));
  const Clocks* clocks = nullptr;
  if (checks.race || checks.certificate) {
    auto race = std::make_unique<RaceChecker>(checks.race ? sink : FindingSink([](Finding) {}));
    clocks = race.get();
    all_.push_back(std::move(race));
  }
  if (checks.protocol) {
    auto protocol = std::make_unique<ProtocolChecker>(sink, clocks);
    protocol_ = protocol.get();
    all_.push_back(std::move(protocol));
  }
  if (!checks.certificate) return;
  auto certifier = std::make_unique<Certifier>(*clocks, sink);
  certifier_ = certifier.get();
  all_.push_back(std::move(certifier));
}

}  // namespace sim
