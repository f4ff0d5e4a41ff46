// parts.h -- what a judge is put together from: the checkers, by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/check/certificate.h"
#include "sim/check/finding.h"
#include "sim/check/protocol.h"

namespace sim {

struct Checks {
  bool race = true, protocol = true, certificate = true;
};
// Reads "race,protocol,certificate", "all" or "none". Throws std::runtime_error, which names a word that is
// none of them.
Checks parse_checks(const std::string& text);
std::string words_of(const Checks& checks);  // what parse_checks understands

// The checkers asked for; whatever is checked, what the machine remarks on is a finding, too.
class Checkers {
 public:
  Checkers(const Checks& checks, const FindingSink& sink);
  const std::vector<std::unique_ptr<Observer>>& all() const { return all_; }
  // Returns the certifier, with the certificate of the grid that ended last; null when nobody asked for a
  // certificate.
  const Certifier* certifier() const { return certifier_; }
  // True when findings say more about the latest fault than the machine does.
  bool explained() const { return protocol_ != nullptr && protocol_->explained(); }

 private:
  std::vector<std::unique_ptr<Observer>> all_;  // the race checker before those that ask its clocks
  const ProtocolChecker* protocol_ = nullptr;
  const Certifier* certifier_ = nullptr;
};

}  // namespace sim
