// validate_order_test.cpp -- the order of the rules, as the manual has it (host/ERRORS.md): of any
// two that are broken at once the first decides.

#include <functional>
#include <string>
#include <vector>

#include "arguments.h"
#include "host/include/dualgemm.h"
#include "rules.h"
#include "support/catch.hpp"

namespace validate_order_test {

using namespace dualgemm_test;

struct Asked {
  dualgemm_args_t args;
  dualgemm_device_t device;
};

struct Ordered {
  dualgemm_status_t status;
  const char* text;  // with which the refusal begins
  std::function<void(Asked&)> break_it;
};

// Groups with offsets and an NVFP4 C: every rule of a launch can be broken from here.
static Asked good() {
  dualgemm_args_t args = with_output(DUALGEMM_DTYPE_NVFP4, offsets_args());
  args.workspace = address(0x6'0000'0000);
  args.workspace_size = 0x300;
  return {args, b200()};
}

// The last 16 bytes that have an address.
static void* at_the_end() { return address(~uintptr_t{15}); }

const std::vector<Ordered> kOrder = {
    {kVersion, "struct_size=0: below 440", [](Asked& x) { x.args.struct_size = 0; }},
    {kValue, "flags=0x40: ", [](Asked& x) { x.args.flags = 0x40; }},
    {kValue, "activation=7: ", [](Asked& x) { x.args.activation = 7; }},
    {kValue, "c_dtype=9: ", [](Asked& x) { x.args.c_dtype = 9; }},
    {kValue, "d_dtype=3: ", [](Asked& x) { x.args.d_dtype = 3; }},
    {kValue, "group_mode=9: ", [](Asked& x) { x.args.group_mode = 9; }},
    {kValue, "products=3: ", [](Asked& x) { x.args.products = 3; }},
    {kValue, "linear_activation=6: ", [](Asked& x) { x.args.linear_activation = 6; }},
    {kValue, "a_dtype=2 (FP32): ", [](Asked& x) { x.args.a_dtype = 2; }},
    {kValue, "b_dtype=4 (FP8_E4M3): ", [](Asked& x) { x.args.b_dtype = 4; }},
    {kValue, "bias_dtype=1 (FP16): ", [](Asked& x) { x.args.bias_dtype = 1; }},
    {kValue, "reserved0=1: ", [](Asked& x) { x.args.reserved0 = 1; }},
    {kValue, "reserved1=1: ", [](Asked& x) { x.args.reserved1 = 1; }},
    {kValue, "reserved2=1: ", [](Asked& x) { x.args.reserved2 = 1; }},
    {kValue, "reserved3=1: ", [](Asked& x) { x.args.reserved3 = 1; }},
    {kValue, "reserved4=1: ", [](Asked& x) { x.args.reserved4 = 1; }},
    {kValue, "m=-1: ", [](Asked& x) { x.args.m = -1; }},
    {kValue, "n=-1: ", [](Asked& x) { x.args.n = -1; }},
    {kValue, "k=-1: ", [](Asked& x) { x.args.k = -1; }},
    {kValue, "batch=-1: ", [](Asked& x) { x.args.batch = -1; }},
    {kValue, "max_sms=-1: ", [](Asked& x) { x.args.max_sms = -1; }},
    {kValue, "expected_rows=-1: ", [](Asked& x) { x.args.expected_rows = -1; }},
    {kValue, "alpha_stride=-1: ", [](Asked& x) { x.args.alpha_stride = -1; }},
    {kValue, "c_global_scale_stride=-1: ", [](Asked& x) { x.args.c_global_scale_stride = -1; }},
    {kValue, "groups=0: ", [](Asked& x) { x.args.groups = 0; }},
    {kValue, "batch=2: ", [](Asked& x) { x.args.batch = 2; }},
    {kValue, "linear_activation=1 (SILU): ", [](Asked& x) { x.args.linear_activation = 1; }},
    {kValue, "alpha1=nan: ", [](Asked& x) { x.args.alpha1 = kNan; }},
    {kValue, "alpha2=inf: ", [](Asked& x) { x.args.alpha2 = kInfinity; }},
    {kValue, "swiglu_alpha=nan: ", [](Asked& x) { x.args.swiglu_alpha = kNan; }},
    {kValue, "swiglu_beta=nan: ", [](Asked& x) { x.args.swiglu_beta = kNan; }},
    {kValue, "swiglu_limit=0: ", [](Asked& x) { x.args.swiglu_limit = 0; }},
    {kValue, "situ_gate=1: ", [](Asked& x) { x.args.situ_gate = 1; }},
    {kValue, "situ_up=1: ", [](Asked& x) { x.args.situ_up = 1; }},
    {kValue, "c_global_scale=0: ", [](Asked& x) { x.args.c_global_scale = 0; }},
    {kShape, "k=24: ", [](Asked& x) { x.args.k = 24; }},
    {kShape, "n=120: ", [](Asked& x) { x.args.n = 120; }},
    {kNull, "a=NULL: ", [](Asked& x) { x.args.a = nullptr; }},
    {kNull, "b1=NULL: ", [](Asked& x) { x.args.b1 = nullptr; }},
    {kNull, "b2=NULL: ", [](Asked& x) { x.args.b2 = nullptr; }},
    {kNull, "sfa=NULL: ", [](Asked& x) { x.args.sfa = nullptr; }},
    {kNull, "sfb1=NULL: ", [](Asked& x) { x.args.sfb1 = nullptr; }},
    {kNull, "sfb2=NULL: ", [](Asked& x) { x.args.sfb2 = nullptr; }},
    {kNull, "c=NULL: ", [](Asked& x) { x.args.c = nullptr; }},
    {kNull, "sfc=NULL: ", [](Asked& x) { x.args.sfc = nullptr; }},
    {kNull, "group_rows=NULL: ", [](Asked& x) { x.args.group_rows = nullptr; }},
    {kValue, "d1=0x700000000, d2=NULL: ", [](Asked& x) { x.args.d1 = address(0x7'0000'0000); }},
    {kValue, "ldd2=8: ", [](Asked& x) { x.args.ldd2 = 8; }},
    {kValue, "batch_stride_b_row_exponent=8: ", [](Asked& x) { x.args.batch_stride_b_row_exponent = 8; }},
    {kValue, "alpha_stride=1: ", [](Asked& x) { x.args.alpha_stride = 1; }},
    {kValue, "workspace_size=281474976710656: ", [](Asked& x) { x.args.workspace_size = size_t{1} << 48; }},
    {kValue, "batch_stride_a=32: ", [](Asked& x) { x.args.batch_stride_a = 32; }},
    {kStride, "lda=16: ", [](Asked& x) { x.args.lda = 16; }},
    {kStride, "ldc=16: ", [](Asked& x) { x.args.ldc = 16; }},
    {kStride, "batch_stride_b1=-1: ", [](Asked& x) { x.args.batch_stride_b1 = -1; }},
    {kStride, "batch_stride_sfb2=16: ", [](Asked& x) { x.args.batch_stride_sfb2 = 16; }},
    {kMisaligned, "sfb1=0x8: ", [](Asked& x) { x.args.sfb1 = address(8); }},
    {kMisaligned, "c=0x8: ", [](Asked& x) { x.args.c = address(8); }},
    {kMisaligned, "workspace=0x80: ", [](Asked& x) { x.args.workspace = address(0x80); }},
    {kValue, "a=0xfffffffffffffff0: ", [](Asked& x) { x.args.a = at_the_end(); }},
    {kValue, "sfc=0xfffffffffffffff0: ", [](Asked& x) { x.args.sfc = at_the_end(); }},
    {kAliasing, "c=0x280000000: overlaps b2=", [](Asked& x) { x.args.b2 = x.args.c; }},
    {kAliasing, "workspace=0x2c0000000: overlaps group_rows=",
     [](Asked& x) { x.args.workspace = const_cast<int32_t*>(x.args.group_rows); }},
    {kValue, "instance_id=99999: ", [](Asked& x) { x.args.instance_id = 99999; }},
    {kUnsupported, "b_dtype=5 (MXFP4): ", [](Asked& x) { x.args.b_dtype = DUALGEMM_DTYPE_MXFP4; }},
    {kUnsupported, "instance_id=1: ", [](Asked& x) { x.args.instance_id = 1; }},
    {kVersion, "struct_size=99: below 100", [](Asked& x) { x.device.struct_size = 99; }},
    {kValue, "sm_count=0: ", [](Asked& x) { x.device.sm_count = 0; }},
    {kValue, "clusters_of_2=-2", [](Asked& x) { x.device.clusters_of_2 = -2; }},
    {DUALGEMM_STATUS_ARCH_MISMATCH, "cc_major=8, cc_minor=0: ", [](Asked& x) { x.device.cc_major = 8; }},
    {DUALGEMM_STATUS_DRIVER_TOO_OLD,
     "driver_version=12000: ", [](Asked& x) { x.device.driver_version = 12000; }},
};

static void check_refused(const Asked& asked, const Ordered& rule) {
  CHECK(std::string(dualgemm_status_name(dualgemm_can_implement_on(&asked.args, &asked.device))) ==
        dualgemm_status_name(rule.status));
  CHECK(std::string(dualgemm_last_error()).find(rule.text) == 0);
}

TEST_CASE("of two rules that are broken the first decides", "[host][validate]") {
  Asked asked = good();
  REQUIRE(dualgemm_can_implement_on(&asked.args, &asked.device) == DUALGEMM_STATUS_SUCCESS);
  for (size_t first = 0; first < kOrder.size(); ++first) {
    INFO("rule: " << kOrder[first].text);
    asked = good();
    kOrder[first].break_it(asked);
    check_refused(asked, kOrder[first]);
    for (size_t second = first + 1; second < kOrder.size(); ++second) {
      INFO("and: " << kOrder[second].text);
      asked = good();
      kOrder[second].break_it(asked);
      kOrder[first].break_it(asked);  // last: where both set one field, it is the first rule's
      check_refused(asked, kOrder[first]);
    }
  }
}

TEST_CASE("an empty output comes behind the rules about numbers and before all others", "[host][validate]") {
  for (size_t i = 0; i < kOrder.size(); ++i) {
    Asked asked = good();
    kOrder[i].break_it(asked);
    if (asked.args.m > 0) asked.args.m = 0;
    INFO("rule: " << kOrder[i].text);
    const bool of_numbers = kOrder[i].status == kVersion || (kOrder[i].status == kValue && i < 35);
    if (of_numbers) check_refused(asked, kOrder[i]);
    else CHECK(dualgemm_can_implement_on(&asked.args, &asked.device) == DUALGEMM_STATUS_SUCCESS);
  }
}

TEST_CASE("group_rows is a pointer among the others, with a group_mode or without", "[host][validate]") {
  Asked asked{valid_args(), b200()};
  asked.args.group_rows = address<const int32_t>(0x7'0000'0000);
  const Ordered stray{kValue, "group_rows=0x700000000: must be NULL without a group_mode", {}};
  check_refused(asked, stray);
  const std::vector<Ordered> before = {
      {kValue, "alpha1=nan: ", [](Asked& x) { x.args.alpha1 = kNan; }},
      {kShape, "n=12: ", [](Asked& x) { x.args.n = 12; }},
      {kNull, "c=NULL: ", [](Asked& x) { x.args.c = nullptr; }},
  };
  for (const Ordered& rule : before) {
    Asked both = asked;
    rule.break_it(both);
    check_refused(both, rule);
  }
  Asked behind = asked;
  behind.args.lda = 16;
  check_refused(behind, stray);
  for (int32_t dualgemm_args_t::*const extent : {&dualgemm_args_t::m, &dualgemm_args_t::n}) {
    Asked empty = asked;
    empty.args.*extent = 0;
    CHECK(dualgemm_can_implement_on(&empty.args, &empty.device) == DUALGEMM_STATUS_SUCCESS);
  }
}

TEST_CASE("with K = 0 rules about outputs come before its own", "[host][validate]") {
  Asked asked = good();
  asked.args.k = 0;
  const std::vector<Ordered> order = {
      {kStride, "ldc=16: ", [](Asked& x) { x.args.ldc = 16; }},
      {kMisaligned, "c=0x8: ", [](Asked& x) { x.args.c = address(8); }},
      {kAliasing, "c=0x280000000: overlaps sfc=", [](Asked& x) { x.args.sfc = x.args.c; }},
      {kValue, "instance_id=99999: ", [](Asked& x) { x.args.instance_id = 99999; }},
      {kUnsupported, "k=0: ", [](Asked&) {}},
  };
  for (size_t first = 0; first < order.size(); ++first)
    for (size_t second = first; second < order.size(); ++second) {
      Asked both = asked;
      order[second].break_it(both);
      order[first].break_it(both);
      check_refused(both, order[first]);
    }
}

}  // namespace validate_order_test
