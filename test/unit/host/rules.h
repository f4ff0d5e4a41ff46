// rules.h -- how the tests of this folder state what a launch refuses: the status, the text that names the
// argument, and the change to good arguments that brings it about. Every refusal names a field and its value.
#pragma once

#include <functional>
#include <limits>
#include <regex>
#include <string>
#include <vector>

#include "arguments.h"
#include "host/include/dualgemm.h"
#include "support/catch.hpp"

namespace dualgemm_test {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

inline dualgemm_status_t ask(const dualgemm_args_t& args) {
  const dualgemm_device_t device = b200();
  return dualgemm_can_implement_on(&args, &device);
}

using Change = std::function<void(dualgemm_args_t&)>;

// Each field of the structure by which a refusal may name what it refuses, between spaces.
inline constexpr const char* kFields =
    " struct_size flags m n k batch a b1 b2 sfa sfb1 sfb2 c sfc lda ldb1 ldb2 ldc batch_stride_a "
    "batch_stride_b1 batch_stride_b2 batch_stride_c batch_stride_sfa batch_stride_sfb1 "
    "batch_stride_sfb2 batch_stride_sfc alpha1 alpha2 alpha1_dev alpha2_dev a_row_scale bias1 bias2 "
    "c_row_scale c_global_scale activation c_global_scale_dev swiglu_alpha swiglu_beta swiglu_limit "
    "situ_gate situ_up c_dtype bias_dtype reserved2 amax_out d1 d2 ldd1 ldd2 batch_stride_d1 "
    "batch_stride_d2 d_dtype instance_id max_sms reserved0 workspace workspace_size group_mode "
    "groups group_rows expected_rows alpha_stride c_global_scale_stride reserved1 bias_stride "
    "batch_stride_a_row_scale batch_stride_c_row_scale a_dtype reserved3 products "
    "linear_activation c_add ld_c_add batch_stride_c_add ";

// Says whether a refusal begins with a field, spelled as in the structure, and its value: a number, an
// address, NULL, or an enumerator with its name.
inline bool names_a_field(const std::string& text) {
  static const std::regex form(
      "([a-z0-9_]+)=(NULL|0x[0-9a-f]+|-?[0-9.e+-]+|-?inf|-?nan)( \\(([A-Z0-9_]+|unknown)\\))?[:,] .+");
  std::smatch part;
  return std::regex_match(text, part, form) &&
         std::string(kFields).find(" " + part[1].str() + " ") != std::string::npos;
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
