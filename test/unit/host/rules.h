// rules.h -- how the tests of this folder state what a launch refuses: the status, the text that names the
// argument, and the change to good arguments that brings it about. Every refusal names a field and its value.
#pragma once

#include <functional>
#include <limits>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "arguments.h"
#include "host/include/dualgemm.h"
#include "host/launch/validate.h"
#include "support/catch.hpp"

namespace dualgemm_test {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

inline dualgemm_status_t ask(const dualgemm_args_t& args) {
  const dualgemm_device_t device = b200();
  return dualgemm_can_implement_on(&args, &device);
}

// Returns the instance that the library chooses.
inline int32_t selected_id(const dualgemm_args_t& args, const dualgemm_device_t& device = b200()) {
  int32_t id = -1;
  const dualgemm_status_t status = dualgemm_select_instance(&args, &device, &id);
  INFO(dualgemm_last_error());
  REQUIRE(status == DUALGEMM_STATUS_SUCCESS);
  return id;
}

inline dualgemm_instance_info_t info_of(int32_t id) {
  dualgemm_instance_info_t info;
  dualgemm_instance_info_init(&info);
  REQUIRE(dualgemm_instance_info(id, &info) == DUALGEMM_STATUS_SUCCESS);
  return info;
}

// Returns what the library makes of arguments that break no rule.
inline dualgemm::Problem checked(const dualgemm_args_t& args) {
  dualgemm::Problem problem;
  const dualgemm_status_t status = dualgemm::validate(&args, &problem);
  INFO(dualgemm_last_error());
  REQUIRE(status == DUALGEMM_STATUS_SUCCESS);
  return problem;
}

using Change = std::function<void(dualgemm_args_t&)>;

// Says whether a refusal begins with a field, spelled as in the structure, and its value: a number, an
// address, NULL, or an enumerator with its name.
inline bool names_a_field(const std::string& text) {
  static const std::regex form(
      "([a-z0-9_]+)=(NULL|0x[0-9a-f]+|-?[0-9.e+-]+|-?inf|-?nan)( \\(([A-Z0-9_]+|unknown)\\))?[:,] .+");
  static const std::set<std::string> fields = [] {
    std::set<std::string> names;
    std::string structure;
#define STRUCT(type, size) structure = #type;
#define FIELD(offset, type, name) \
  if (structure == "dualgemm_args_t") names.insert(#name);
#define END()
#include "support/interface.def"
    return names;
  }();
  std::smatch part;
  return std::regex_match(text, part, form) && fields.contains(part[1]);
}

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
    CHECK(names_a_field(dualgemm_last_error()));
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
