// validate_epilogue_test.cpp -- the rules about what an epilogue takes and writes: activations and their
// parameters, factors of rows, biases, C in every type, its scale factors, D1 and D2, the largest |C|.

#include <algorithm>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "arguments.h"
#include "host/include/dualgemm.h"
#include "launch_parts.h"
#include "rules.h"
#include "support/catch.hpp"

namespace validate_epilogue_test {

using namespace dualgemm_test;

namespace {

constexpr uintptr_t kPlace = 0x3'0000'0000;

dualgemm_args_t nvfp4(const dualgemm_args_t& args = valid_args()) {
  return with_output(DUALGEMM_DTYPE_NVFP4, args);
}
dualgemm_args_t fp8(const dualgemm_args_t& args = valid_args()) {
  return with_output(DUALGEMM_DTYPE_FP8_E4M3, args);
}

}  // namespace

TEST_CASE("every activation with every output is accepted, in every kind of launch", "[host][validate]") {
  for (const dualgemm_args_t& kind : {valid_args(), batch_args(), masked_args(), offsets_args()})
    for (int32_t c_dtype = 0; c_dtype <= DUALGEMM_DTYPE_FP8_E4M3; ++c_dtype)
      for (int32_t activation = 0; activation <= DUALGEMM_ACTIVATION_SITU; ++activation) {
        INFO("c_dtype " << c_dtype << ", activation " << activation << ", group_mode " << kind.group_mode);
        check_accepted({[=](auto& a) { a.activation = activation; },
                        [=](auto& a) { a.activation = activation, a.flags = DUALGEMM_FLAG_EXACT_ACT; }},
                       with_output(c_dtype, kind));
      }
}

TEST_CASE("all that a launch may take and write together", "[host][validate]") {
  for (const dualgemm_args_t& kind : {valid_args(), batch_args(), masked_args(), offsets_args()})
    check_accepted({[](auto&) {}, [](auto& a) { a.d_dtype = DUALGEMM_DTYPE_FP16; },
                    [](auto& a) { a.d_dtype = a.bias_dtype = DUALGEMM_DTYPE_FP32; },
                    [](auto& a) { a.bias_stride = a.alpha_stride = a.c_global_scale_stride = 0; }},
                   everything(kind));
}

TEST_CASE("parameters outside their range", "[host][validate]") {
  const auto status = DUALGEMM_STATUS_INVALID_VALUE;
  check({{status, "swiglu_alpha=inf: must be finite, and at most 2^127 in magnitude",
          [](auto& a) { a.swiglu_alpha = kInfinity; }},
         {status, "swiglu_alpha=1.70141e+38: must be finite, and at most 2^127 in magnitude",
          [](auto& a) { a.swiglu_alpha = std::nextafter(0x1p127f, kInfinity); }},
         {status, "swiglu_beta=nan: must be finite", [](auto& a) { a.swiglu_beta = kNan; }},
         {status, "swiglu_limit=nan: must be above 0", [](auto& a) { a.swiglu_limit = kNan; }},
         {status, "swiglu_limit=0: must be above 0", [](auto& a) { a.swiglu_limit = 0; }},
         {status, "c_global_scale=nan: must be above 0, and at most the largest float over 512",
          [](auto& a) { a.c_global_scale = kNan; }}});
  dualgemm_args_t situ = valid_args();
  situ.activation = DUALGEMM_ACTIVATION_SITU;
  for (const float value : {0.0f, -4.0f, kInfinity, kNan, 1e-40f})
    check({{status, "situ_gate=", [=](auto& a) { a.situ_gate = value; }},
           {status, "must be finite, normal and above 0", [=](auto& a) { a.situ_up = value; }}},
          situ);
  for (const float value : {0.0f, -1.0f, 6.7e35f, kInfinity, kNan})
    for (const dualgemm_args_t& good : {nvfp4(), fp8()})
      check(
          {{status, "must be above 0, and at most the largest float over 512",
            [=](auto& a) { a.c_global_scale = value; }},
           {status, "c_global_scale=",
            [=](auto& a) { a.c_global_scale = value, a.c_global_scale_dev = address<const float>(kPlace); }}},
          good);
}

TEST_CASE("a parameter that nothing takes keeps its default", "[host][validate]") {
  // What it is set to, who takes it, and what the refusal says.
  struct Parameter {
    const char* text;
    std::vector<int32_t> activations;
    Change set;
  };
  const std::vector<int32_t> swiglu = {DUALGEMM_ACTIVATION_SWIGLU, DUALGEMM_ACTIVATION_SWIGLU_STEP};
  const std::vector<int32_t> situ = {DUALGEMM_ACTIVATION_SITU};
  const std::vector<Parameter> parameters = {
      {"swiglu_alpha=1.702: must be 1 unless activation is SWIGLU or SWIGLU_STEP", swiglu,
       [](auto& a) { a.swiglu_alpha = 1.702f; }},
      {"swiglu_beta=1: must be 0 unless activation is SWIGLU or SWIGLU_STEP", swiglu,
       [](auto& a) { a.swiglu_beta = 1; }},
      {"swiglu_limit=7: must be infinity unless activation is SWIGLU or SWIGLU_STEP", swiglu,
       [](auto& a) { a.swiglu_limit = 7; }},
      {"situ_gate=5: must be 4 unless activation is SITU", situ, [](auto& a) { a.situ_gate = 5; }},
      {"situ_up=4: must be 25 unless activation is SITU", situ, [](auto& a) { a.situ_up = 4; }},
  };
  for (const Parameter& parameter : parameters)
    for (int32_t activation = 0; activation <= DUALGEMM_ACTIVATION_SITU; ++activation) {
      const Change ask_for_it = [&](auto& a) { a.activation = activation, parameter.set(a); };
      bool taken = false;
      for (const int32_t taker : parameter.activations) taken = taken || taker == activation;
      INFO("activation " << activation);
      if (taken) check_accepted({ask_for_it});
      else check({{DUALGEMM_STATUS_INVALID_VALUE, parameter.text, ask_for_it}});
    }

  const auto status = DUALGEMM_STATUS_INVALID_VALUE;
  const Change scale = [](auto& a) { a.c_global_scale = 448; };
  const Change device_scale = [](auto& a) { a.c_global_scale_dev = address<const float>(kPlace); };
  const Change factors = [](auto& a) { a.sfc = address(kPlace); };
  for (int32_t c_dtype = 0; c_dtype <= DUALGEMM_DTYPE_FP8_E4M3; ++c_dtype) {
    INFO("c_dtype " << c_dtype);
    const dualgemm_args_t good = with_output(c_dtype, valid_args());
    if (c_dtype == DUALGEMM_DTYPE_NVFP4 || c_dtype == DUALGEMM_DTYPE_FP8_E4M3)
      check_accepted({scale, device_scale}, good);
    else
      check({{status, "c_global_scale=448: must be 1 unless c_dtype is NVFP4 or FP8_E4M3", scale},
             {status, "c_global_scale_dev=0x300000000: must be NULL unless c_dtype is NVFP4 or FP8_E4M3",
              device_scale}},
            good);
    if (c_dtype == DUALGEMM_DTYPE_NVFP4) check_accepted({factors}, good);
    else check({{status, "sfc=0x300000000: must be NULL unless c_dtype is NVFP4", factors}}, good);
  }
}

TEST_CASE("outputs that are missing", "[host][validate]") {
  check({{DUALGEMM_STATUS_NULL_POINTER, "sfc=NULL: must be a device pointer with c_dtype=3 (NVFP4)",
          [](auto& a) { a.c_dtype = DUALGEMM_DTYPE_NVFP4; }},
         {DUALGEMM_STATUS_INVALID_VALUE, "d1=0x400000000, d2=NULL: set both or none",
          [](auto& a) { a.d1 = address(kD1); }},
         {DUALGEMM_STATUS_INVALID_VALUE, "d1=NULL, d2=0x440000000: set both or none",
          [](auto& a) { a.d2 = address(kD2); }}});
}

TEST_CASE("the columns that each output can have", "[host][validate]") {
  const auto multiple_of = [](int32_t c_dtype) {
    return c_dtype == DUALGEMM_DTYPE_NVFP4 ? 16 : c_dtype == DUALGEMM_DTYPE_FP32 ? 4 : 8;
  };
  for (int32_t c_dtype = 0; c_dtype <= DUALGEMM_DTYPE_FP8_E4M3; ++c_dtype) {
    const int32_t multiple = multiple_of(c_dtype);
    const std::string text = "must be a multiple of " + std::to_string(multiple);
    const auto columns = [](int32_t n) { return [n](auto& a) { a.n = n, a.ldc = 1024; }; };
    INFO("c_dtype " << c_dtype);
    const dualgemm_args_t good = with_output(c_dtype, valid_args());
    check_accepted({columns(multiple), columns(10 * multiple), columns(11 * multiple)}, good);
    check({{DUALGEMM_STATUS_INVALID_SHAPE, text.c_str(), columns(multiple / 2)},
           {DUALGEMM_STATUS_INVALID_SHAPE, text.c_str(), columns(11 * multiple + 1)}},
          good);
    // D1 and D2 have the same columns.
    for (const int32_t d_dtype : {DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP16, DUALGEMM_DTYPE_FP32}) {
      const dualgemm_args_t both = with_d(good, d_dtype);
      check_accepted({columns(11 * std::max(multiple, multiple_of(d_dtype)))}, both);
      if (multiple < multiple_of(d_dtype))
        check({{DUALGEMM_STATUS_INVALID_SHAPE,
                d_dtype == DUALGEMM_DTYPE_BF16 ? "n=44: must be a multiple of 8 with d_dtype=0 (BF16)"
                                               : "n=44: must be a multiple of 8 with d_dtype=1 (FP16)",
                columns(44)}},
              both);
    }
  }
  check_accepted({[](auto& a) { a.n = 44, a.d_dtype = DUALGEMM_DTYPE_BF16; }},
                 with_output(DUALGEMM_DTYPE_FP32, valid_args()));  // nothing has that d_dtype
}

TEST_CASE("row pitches of every output", "[host][validate]") {
  const auto status = DUALGEMM_STATUS_INVALID_STRIDE;
  // NVFP4 and FP8 may have rows that end in a half of 16 bytes: then a pitch is asked for.
  check({{status, "n=176: rows must start at multiples of 16 bytes, pass ldc >= 192",
          [](auto& a) { a.n = 176; }},
         {status, "ldc=176: must be a multiple of 32", [](auto& a) { a.n = a.ldc = 176; }},
         {status, "ldc=160: must be at least n=176", [](auto& a) { a.n = 176, a.ldc = 160; }}},
        nvfp4());
  check(
      {{status, "n=24: rows must start at multiples of 16 bytes, pass ldc >= 32", [](auto& a) { a.n = 24; }},
       {status, "ldc=24: must be a multiple of 16", [](auto& a) { a.n = a.ldc = 24; }}},
      fp8());
  check_accepted({[](auto& a) { a.n = 176, a.ldc = 192; }, [](auto& a) { a.n = 192; }}, nvfp4());
  check_accepted({[](auto& a) { a.n = 24, a.ldc = 32; }, [](auto& a) { a.n = 48; }}, fp8());
  check({{status, "ldc=130: must be a multiple of 4", [](auto& a) { a.ldc = 130; }},
         {status, "ldc=274877906944: 256 rows must take less than 2^48 bytes",
          [](auto& a) { a.ldc = 1LL << 38; }}},
        with_output(DUALGEMM_DTYPE_FP32, valid_args()));
  check({{status, "ldd1=120: must be at least n=128", [](auto& a) { a.ldd1 = 120; }},
         {status, "ldd2=-8: must be at least n=128", [](auto& a) { a.ldd2 = -8; }},
         {status, "ldd1=132: must be a multiple of 8", [](auto& a) { a.ldd1 = 132; }},
         {status, "ldd2=130: must be a multiple of 4",
          [](auto& a) { a.ldd2 = 130, a.d_dtype = DUALGEMM_DTYPE_FP32; }},
         {status, "ldd2=1099511627776: 256 rows must take less than 2^48 bytes",
          [](auto& a) { a.ldd2 = 1LL << 40; }}},
        with_d(valid_args()));
  check_accepted({[](auto& a) { a.ldd1 = 136, a.ldd2 = 1024; },
                  [](auto& a) { a.ldd1 = 132, a.d_dtype = DUALGEMM_DTYPE_FP32; }},
                 with_d(valid_args()));
}

TEST_CASE("strides from problem to problem of every output", "[host][validate]") {
  const auto status = DUALGEMM_STATUS_INVALID_STRIDE;
  // C and D1 have 256 x 128 elements in one problem, SFC 2 x 2 atoms.
  const std::vector<Rule> rules = {
      {status, "batch_stride_c=-32: must not be negative", [](auto& a) { a.batch_stride_c = -32; }},
      {status, "batch_stride_c=32736: must be at least 32768", [](auto& a) { a.batch_stride_c = 32736; }},
      {status, "batch_stride_c=32784: must be a multiple of 32", [](auto& a) { a.batch_stride_c = 32784; }},
      {status, "batch_stride_sfc=-16: must not be negative", [](auto& a) { a.batch_stride_sfc = -16; }},
      {status, "batch_stride_sfc=2032: must be at least 2048", [](auto& a) { a.batch_stride_sfc = 2032; }},
      {status, "batch_stride_sfc=2056: must be a multiple of 16", [](auto& a) { a.batch_stride_sfc = 2056; }},
      {status, "batch_stride_sfc=140737488355328: 3 problems must take less than 2^48 bytes",
       [](auto& a) { a.batch_stride_sfc = 1LL << 47; }},
      {status, "batch_stride_d1=-8: must not be negative", [](auto& a) { a.batch_stride_d1 = -8; }},
      {status, "batch_stride_d2=32760: must be at least 32768", [](auto& a) { a.batch_stride_d2 = 32760; }},
      {status, "batch_stride_d1=32772: must be a multiple of 8", [](auto& a) { a.batch_stride_d1 = 32772; }},
      {status, "batch_stride_d2=70368744177664: 3 problems must take less than 2^48 bytes",
       [](auto& a) { a.batch_stride_d2 = 1LL << 46; }},
  };
  const std::vector<Change> wide = {
      [](auto& a) { a.batch_stride_c = 32768 + 32, a.batch_stride_sfc = 2048 + 16; },
      [](auto& a) { a.batch_stride_d1 = 32768 + 8, a.batch_stride_d2 = 1 << 20; },
      [](auto& a) { a.ldd1 = 136, a.batch_stride_d1 = 255 * 136 + 128; }};
  for (const dualgemm_args_t& kind : {batch_args(), masked_args()}) {
    check(rules, with_d(nvfp4(kind)));
    check_accepted(wide, with_d(nvfp4(kind)));
  }
}

TEST_CASE("strides of vectors and of numbers on the device", "[host][validate]") {
  const auto status = DUALGEMM_STATUS_INVALID_STRIDE;
  const std::vector<Rule> of_rows = {
      {status, "batch_stride_a_row_scale=-8: must not be negative",
       [](auto& a) { a.batch_stride_a_row_scale = -8; }},
      {status, "batch_stride_c_row_scale=255: must be at least 256, one problem",
       [](auto& a) { a.batch_stride_c_row_scale = 255; }},
      {status, "batch_stride_c_row_scale=1099511627776: must be less than 2^40 bytes",
       [](auto& a) { a.batch_stride_c_row_scale = int64_t{1} << 40; }}};
  const std::vector<Rule> of_problems = {
      {status, "bias_stride=-1: must not be negative", [](auto& a) { a.bias_stride = -1; }},
      {status, "bias_stride=127: must be at least 128, one problem", [](auto& a) { a.bias_stride = 127; }},
      {status, "bias_stride=70368744177664: 3 problems must take less than 2^48 bytes",
       [](auto& a) { a.bias_stride = int64_t{1} << 46; }}};
  for (const dualgemm_args_t& kind : {batch_args(), masked_args()}) {
    check(of_rows, everything(kind));
    check(of_problems, everything(kind));
    check_accepted({[](auto& a) { a.batch_stride_a_row_scale = 256, a.batch_stride_c_row_scale = 257; },
                    [](auto& a) { a.bias_stride = 129, a.alpha_stride = 7, a.c_global_scale_stride = 3; }},
                   everything(kind));
  }
  check(of_problems, everything(offsets_args()));  // biases are those of the groups
  dualgemm_args_t many = everything(valid_args());
  many.m = 1, many.n = 32, many.k = 32;
  many.batch = 2147483647;
  check({{status, "alpha_stride=2147483647: 2147483647 problems must take less than 2^48 bytes",
          [](auto& a) { a.alpha_stride = 2147483647; }}},
        many);
}

TEST_CASE("outputs that lie side by side in the rows of one buffer do not overlap", "[host][validate]") {
  const auto status = DUALGEMM_STATUS_ALIASING;
  // Rows of 512 bytes hold D1, D2 and C of 256, 128 and 128 bytes: bf16 and, in the second case, fp8.
  const auto place = [](int64_t distance) {
    return [distance](dualgemm_args_t& a) {
      a.d1 = address(kD1), a.d2 = address(static_cast<uintptr_t>(kD1 + distance));
      a.ldd1 = a.ldd2 = 256;
    };
  };
  check_accepted({place(256), place(-256)}, with_d(valid_args()));
  check({{status, "overlaps d2=", place(240)}, {status, "overlaps d2=", place(272)}}, with_d(valid_args()));
  const auto with_c = [](int64_t distance) {
    return [distance](dualgemm_args_t& a) {
      a.d1 = address(kD1), a.ldd1 = 256, a.c = address(static_cast<uintptr_t>(kD1 + distance)), a.ldc = 512;
    };
  };
  check_accepted({with_c(256), with_c(384), with_c(-128)}, with_d(fp8()));
  check({{status, "overlaps d1=", with_c(240)}, {status, "overlaps d1=", with_c(400)}}, with_d(fp8()));
}

TEST_CASE("of the factors of groups with offsets the host knows the first block",
          "[host][validate][grouped]") {
  // A block of SFC has 2 atoms, one of SFA 8. C of 256 rows takes 0x4000 bytes.
  const auto status = DUALGEMM_STATUS_ALIASING;
  const dualgemm_args_t good = nvfp4(offsets_args());
  check_accepted({[](auto& a) { a.sfc = address(reinterpret_cast<uintptr_t>(a.c) - 0x400); },
                  [](auto& a) { a.sfc = address(reinterpret_cast<uintptr_t>(a.c) + 0x4000); },
                  [](auto& a) { a.sfa = address(reinterpret_cast<uintptr_t>(a.sfc) + 0x400); },
                  [](auto& a) { a.sfc = address(reinterpret_cast<uintptr_t>(a.group_rows) + 16); }},
                 good);
  check(
      {{status, "overlaps sfc=", [](auto& a) { a.sfc = address(reinterpret_cast<uintptr_t>(a.c) - 0x3F0); }},
       {status,
        "overlaps sfa=", [](auto& a) { a.sfa = address(reinterpret_cast<uintptr_t>(a.sfc) + 0x3F0); }},
       {status,
        "overlaps group_rows=", [](auto& a) { a.sfc = address(reinterpret_cast<uintptr_t>(a.group_rows)); }}},
      good);
}

TEST_CASE("alignment of all that an epilogue takes and writes", "[host][validate]") {
  for (const dualgemm_args_t& good : {everything(masked_args()), everything_of_one(masked_args())})
    for (const auto& part : parts_of(good))
      for (uintptr_t off = 1; off < part.alignment; off *= 2) {
        const std::string text = text_of(part, 0x8'0000'0000 + off) + ": must be " +
                                 std::to_string(part.alignment) + "-byte aligned";
        check({{DUALGEMM_STATUS_MISALIGNED, text.c_str(),
                [&](auto& a) { part.place(a, 0x8'0000'0000 + off); }}},
              good);
      }
  check({{DUALGEMM_STATUS_MISALIGNED, "bias2=0x300000002: must be 4-byte aligned",
          [](auto& a) { a.bias2 = address(kPlace + 2), a.bias_dtype = DUALGEMM_DTYPE_FP32; }}});
}

TEST_CASE("K == 0 looks at all outputs and at nothing else", "[host][validate]") {
  dualgemm_args_t good = everything(batch_args());
  good.k = 0;
  good.bias1 = good.bias2 = nullptr;
  good.bias_stride = 0;
  const auto parts = parts_of(good);
  for (const auto& part : parts)
    if (!part.written && !std::string(part.name).starts_with("bias")) part.place(good, 3);
  check_accepted({[](auto&) {}}, good);
  for (const auto& part : parts)
    if (part.written)
      check({{DUALGEMM_STATUS_MISALIGNED, "must be ",
              [&](auto& a) { part.place(a, 0x8'0000'0000 + part.alignment / 2); }}},
            good);
  check({{DUALGEMM_STATUS_ALIASING, "overlaps d2=", [](auto& a) { a.d2 = a.d1; }},
         {DUALGEMM_STATUS_ALIASING,
          "overlaps amax_out=", [](auto& a) { a.amax_out = static_cast<float*>(a.sfc); }},
         {DUALGEMM_STATUS_INVALID_STRIDE, "batch_stride_sfc=", [](auto& a) { a.batch_stride_sfc = 16; }},
         {DUALGEMM_STATUS_NOT_SUPPORTED,
          "k=0: must be above 0 with bias1=", [](auto& a) { a.bias1 = address(kPlace); }}},
        good);
}

}  // namespace validate_epilogue_test
