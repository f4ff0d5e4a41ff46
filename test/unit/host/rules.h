// rules.h -- how the tests of this folder state what a launch refuses: the status, the text that names the
// argument, and the change to good arguments that brings it about.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "arguments.h"
#include "host/dualgemm.h"
#include "support/catch.hpp"

namespace dualgemm_test {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

inline dualgemm_status_t ask(const dualgemm_args_t& args) {
  const dualgemm_device_t device = b200();
  return dualgemm_can_implement_on(&args, &device);
}

using Change = std::function<void(dualgemm_args_t&)>;

struct Rule {
  dualgemm_status_t status;
  const char* text;  // part of the message: the argument, its value and what is wrong
  Change break_it;
};

inline void check(const std::vector<Rule>& rules, const dualgemm_args_t& good = valid_args()) {
  for (const Rule& rule : rules) {
    dualgemm_args_t args = good;
    rule.break_it(args);
    INFO("expected text: " << rule.text);
    CHECK(std::string(dualgemm_status_name(ask(args))) == dualgemm_status_name(rule.status));
    INFO("actual text: " << dualgemm_last_error());
    CHECK(std::string(dualgemm_last_error()).find(rule.text) != std::string::npos);
  }
}

inline void check_accepted(const std::vector<Change>& changes, const dualgemm_args_t& good = valid_args()) {
  for (size_t i = 0; i < changes.size(); ++i) {
    dualgemm_args_t args = good;
    changes[i](args);
    const dualgemm_status_t status = ask(args);
    INFO("case " << i << ": " << dualgemm_last_error());
    CHECK(status == DUALGEMM_STATUS_SUCCESS);
    CHECK(std::string(dualgemm_last_error()).empty());
  }
}

}  // namespace dualgemm_test
