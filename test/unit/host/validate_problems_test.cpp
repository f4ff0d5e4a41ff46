// validate_problems_test.cpp -- the rules of a launch of several problems: a batch, or groups.

#include <limits>
#include <string>

#include "arguments.h"
#include "host/include/dualgemm.h"
#include "rules.h"
#include "support/catch.hpp"

namespace validate_problems_test {

using namespace dualgemm_test;

TEST_CASE("groups: what may be said about them", "[host][validate][grouped]") {
  for (const dualgemm_args_t& good : {offsets_args(), masked_args()}) {
    const std::string mode = good.group_mode == DUALGEMM_GROUP_OFFSETS ? "1 (OFFSETS)" : "2 (MASKED)";
    const std::string range = ": must be in [1, 1024] with group_mode=" + mode;
    const std::string none = "groups=0" + range, few = "groups=-1" + range, many = "groups=1025" + range,
                      batch = "batch=2: must be 0 or 1 with group_mode=" + mode,
                      no_k = "k=0: must be above 0 with group_mode=" + mode +
                             ": outputs are filled with zeros then, and only the device knows their rows",
                      no_rows = "group_rows=NULL: must be a device pointer with group_mode=" + mode,
                      large = "m=2147482625: must be at most 2147482624 with group_mode=" + mode;
    check({{kValue, none.c_str(), [](auto& a) { a.groups = 0; }},
           {kValue, few.c_str(), [](auto& a) { a.groups = -1; }},
           {kValue, many.c_str(), [](auto& a) { a.groups = 1025; }},
           {kValue, batch.c_str(), [](auto& a) { a.batch = 2; }},
           {kValue, "expected_rows=-7: must not be negative", [](auto& a) { a.expected_rows = -7; }},
           {DUALGEMM_STATUS_NOT_SUPPORTED, no_k.c_str(), [](auto& a) { a.k = 0; }},
           {DUALGEMM_STATUS_NULL_POINTER, no_rows.c_str(), [](auto& a) { a.group_rows = nullptr; }},
           {DUALGEMM_STATUS_MISALIGNED, "group_rows=0x2c0000002: must be 4-byte aligned",
            [](auto& a) { a.group_rows = address<const int32_t>(0x2'c000'0002); }},
           {DUALGEMM_STATUS_NOT_SUPPORTED, large.c_str(),
            [](auto& a) { a.m = 2147482625, a.n = 8, a.k = 32, a.c = address(uintptr_t{1} << 56); }},
           {DUALGEMM_STATUS_NOT_SUPPORTED, "m=67108864, n=1900000, groups=1: are ",
            [](auto& a) {
              a.m = 1 << 26, a.n = 1900000, a.k = 16, a.lda = a.ldb1 = a.ldb2 = 32;
              a.groups = 1, a.c = address(uintptr_t{1} << 56);
            }}},
          good);
    check_accepted({[](auto&) {}, [](auto& a) { a.groups = 1; }, [](auto& a) { a.groups = 1024; },
                    [](auto& a) { a.batch = 1; }, [](auto& a) { a.expected_rows = 1000000; },
                    [](auto& a) { a.group_rows = address<const int32_t>(0x2'c000'0004); },
                    [](auto& a) { a.m = 0, a.group_rows = nullptr; },
                    [](auto& a) { a.flags = DUALGEMM_FLAG_PDL | DUALGEMM_FLAG_BATCH_INVARIANT; }},
                   good);
  }
  // There are more groups than rows, none of which may be larger than all.
  check_accepted({[](auto& a) { a.m = 5, a.groups = 1024; }}, offsets_args());
}

TEST_CASE("strides from problem to problem", "[host][validate]") {
  // In one problem A is 256 x 512, B1 and B2 are 128 x 512, C is 256 x 128; SFA has 2 x 8 atoms, SFB1 and
  // SFB2 have 8.
  const std::vector<Rule> of_a = {
      {kStride, "batch_stride_a=-131072: must not be negative", [](auto& a) { a.batch_stride_a = -131072; }},
      {kStride, "batch_stride_a=131040: must be at least 131072", [](auto& a) { a.batch_stride_a = 131040; }},
      {kStride, "batch_stride_a=131088: must be a multiple of 32",
       [](auto& a) { a.batch_stride_a = 131088; }},
      {kStride, "batch_stride_a=2199023255552: must be less than 2^40 bytes",
       [](auto& a) { a.batch_stride_a = 1LL << 41; }},
      {kStride, "batch_stride_a=9223372036854775776: 3 problems must take less than 2^48 bytes",
       [](auto& a) { a.batch_stride_a = std::numeric_limits<int64_t>::max() - 31; }},
      {kStride, "batch_stride_sfa=-16: must not be negative", [](auto& a) { a.batch_stride_sfa = -16; }},
      {kStride, "batch_stride_sfa=8176: must be at least 8192", [](auto& a) { a.batch_stride_sfa = 8176; }},
      {kStride, "batch_stride_sfa=8200: must be a multiple of 16",
       [](auto& a) { a.batch_stride_sfa = 8200; }},
      {kStride, "batch_stride_sfa=1099511627776: must be less than 2^40 bytes",
       [](auto& a) { a.batch_stride_sfa = 1LL << 40; }},
      {kStride, "batch_stride_c=-8: must not be negative", [](auto& a) { a.batch_stride_c = -8; }},
      {kStride, "batch_stride_c=32760: must be at least 32768", [](auto& a) { a.batch_stride_c = 32760; }},
      {kStride, "batch_stride_c=32772: must be a multiple of 8", [](auto& a) { a.batch_stride_c = 32772; }},
      {kStride, "batch_stride_c=70368744177664: 3 problems must take less than 2^48 bytes",
       [](auto& a) { a.batch_stride_c = 1LL << 46; }},
  };
  const std::vector<Rule> of_b = {
      {kStride, "batch_stride_b1=-1: must not be negative", [](auto& a) { a.batch_stride_b1 = -1; }},
      {kStride, "batch_stride_b2=32: must be at least 65536", [](auto& a) { a.batch_stride_b2 = 32; }},
      {kStride, "batch_stride_b1=65552: must be a multiple of 32",
       [](auto& a) { a.batch_stride_b1 = 65552; }},
      {kStride, "batch_stride_sfb1=4095: must be at least 4096", [](auto& a) { a.batch_stride_sfb1 = 4095; }},
      {kStride, "batch_stride_sfb2=4104: must be a multiple of 16",
       [](auto& a) { a.batch_stride_sfb2 = 4104; }},
  };
  for (const dualgemm_args_t& good : {batch_args(), masked_args()}) {
    check(of_a, good);
    check(of_b, good);
    // A problem ends with the last element of its last row.
    check_accepted({[](auto& a) { a.lda = 1024, a.batch_stride_a = 255 * 1024 + 512; },
                    [](auto& a) { a.ldb2 = 1024, a.batch_stride_b2 = 127 * 1024 + 512; },
                    [](auto& a) { a.ldc = 136, a.batch_stride_c = 255 * 136 + 128; },
                    [](auto& a) { a.batch_stride_sfa = 8192 + 16, a.batch_stride_sfb1 = 4096 + 16; },
                    [](auto& a) { a.batch_stride_a = (1LL << 41) - 32, a.c = address(uintptr_t{1} << 56); }},
                   good);
    check({{kStride, "batch_stride_c=34800: must be at least 34808",
            [](auto& a) { a.ldc = 136, a.batch_stride_c = 34800; }}},
          good);
  }
  check(of_b, offsets_args());
  // Compact problems may be too many as well.
  check({{kStride, "batch_stride_a=524288: 2147483647 problems must take less than 2^48 bytes",
          [](auto& a) { a.batch = 2147483647, a.m = 1024; }}});
}

TEST_CASE("the output of several problems may not overlap an input of any", "[host][validate]") {
  // C takes 0x10000 bytes per problem from 0x280000000, A as many; SFA 0x2000, SFB1 0x1000, B1 0x8000.
  for (const dualgemm_args_t& good : {batch_args(), masked_args()}) {
    check({{kAliasing, "overlaps a=0x28002fff0", [](auto& a) { a.a = address(0x2'8002'fff0); }},
           {kAliasing, "overlaps a=0x27ffd0010", [](auto& a) { a.a = address(0x2'7ffd'0010); }},
           {kAliasing, "overlaps sfa=0x27fffa010", [](auto& a) { a.sfa = address(0x2'7fff'a010); }},
           {kAliasing, "overlaps b1=0x27ffe8010", [](auto& a) { a.b1 = address(0x2'7ffe'8010); }},
           // The problems of A lie in the gaps of C, but 16 bytes too early.
           {kAliasing, "overlaps a=0x28000fff0",
            [](auto& a) {
              a.batch_stride_c = 0x10000, a.batch_stride_a = 0x40000;
              a.a = address(0x2'8000'fff0);
            }}},
          good);
    check_accepted(
        {[](auto& a) { a.a = address(0x2'8003'0000); }, [](auto& a) { a.a = address(0x2'7ffd'0000); },
         [](auto& a) { a.sfa = address(0x2'7fff'a000); },
         // One buffer has 0x24000 bytes per problem: C, A, SFA, SFB1 and SFB2.
         [](auto& a) {
           a.batch_stride_c = 0x24000 / 2, a.batch_stride_a = 0x24000 * 2;
           a.batch_stride_sfa = a.batch_stride_sfb1 = a.batch_stride_sfb2 = 0x24000;
           a.a = address(0x2'8001'0000), a.sfa = address(0x2'8002'0000);
           a.sfb1 = address(0x2'8002'2000), a.sfb2 = address(0x2'8002'3000);
         }},
        good);
  }
  check({{kAliasing, "overlaps b2=0x27ffe8010", [](auto& a) { a.b2 = address(0x2'7ffe'8010); }},
         {kAliasing, "overlaps group_rows=0x27ffffff4",
          [](auto& a) { a.group_rows = address<const int32_t>(0x2'7fff'fff4); }},
         {kAliasing, "overlaps group_rows=0x28000fffc",
          [](auto& a) { a.group_rows = address<const int32_t>(0x2'8000'fffc); }},
         {kAliasing, "overlaps sfa=0x27ffff010", [](auto& a) { a.sfa = address(0x2'7fff'f010); }}},
        offsets_args());
  // Three groups have four offsets, or three numbers of rows. The bands of SFA behind the first are known to
  // the device only.
  check_accepted({[](auto& a) { a.group_rows = address<const int32_t>(0x2'7fff'fff0); },
                  [](auto& a) { a.group_rows = address<const int32_t>(0x2'8001'0000); },
                  [](auto& a) { a.sfa = address(0x2'7fff'f000); }},
                 offsets_args());
  check_accepted({[](auto& a) { a.group_rows = address<const int32_t>(0x2'7fff'fff4); }}, masked_args());
}

}  // namespace validate_problems_test
