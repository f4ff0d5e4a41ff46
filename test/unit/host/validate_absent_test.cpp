// validate_absent_test.cpp -- the rule about fields that describe what a launch does not have: nothing that
// a caller asks for is ignored. Enumerators are valid with or without their tensor, numbers about a tensor
// that is not there stay 0, and what nothing takes keeps its default (validate_epilogue_test.cpp).

#include <string>
#include <vector>

#include "arguments.h"
#include "host/common/names.h"
#include "host/include/dualgemm.h"
#include "rules.h"
#include "support/catch.hpp"

namespace validate_absent_test {

using namespace dualgemm_test;

// A number about a tensor that is optional: how it is set, and how each tensor that it is about is given.
struct Number {
  const char* name;
  void (*set)(dualgemm_args_t&, int32_t);
  const char* missing;
  std::vector<Change> give;
};

static void give_d(dualgemm_args_t& a) { a.d1 = address(0x4'0000'0000), a.d2 = address(0x4'4000'0000); }
static void give_nvfp4(dualgemm_args_t& a) { a = with_output(DUALGEMM_DTYPE_NVFP4, a); }
static float* a_float() { return address<float>(0x5'0000'0000); }

// All values are right where the tensor is given: problems have 256 x 128 results.
const std::vector<Number> kNumbers = {
    {"ldd1", [](auto& a, int32_t x) { a.ldd1 = x; }, "d1 is NULL", {give_d}},
    {"ldd2", [](auto& a, int32_t x) { a.ldd2 = x; }, "d2 is NULL", {give_d}},
    {"batch_stride_d1", [](auto& a, int32_t x) { a.batch_stride_d1 = x; }, "d1 is NULL", {give_d}},
    {"batch_stride_d2", [](auto& a, int32_t x) { a.batch_stride_d2 = x; }, "d2 is NULL", {give_d}},
    {"batch_stride_sfc", [](auto& a, int32_t x) { a.batch_stride_sfc = x; }, "sfc is NULL", {give_nvfp4}},
    {"bias_stride",
     [](auto& a, int32_t x) { a.bias_stride = x; },
     "bias1 and bias2 are NULL",
     {[](auto& a) { a.bias1 = a_float(); }, [](auto& a) { a.bias2 = a_float(); }}},
    {"batch_stride_a_row_scale",
     [](auto& a, int32_t x) { a.batch_stride_a_row_scale = x; },
     "a_row_scale is NULL",
     {[](auto& a) { a.a_row_scale = a_float(); }}},
    {"batch_stride_c_row_scale",
     [](auto& a, int32_t x) { a.batch_stride_c_row_scale = x; },
     "c_row_scale is NULL",
     {[](auto& a) { a.c_row_scale = a_float(); }}},
    {"alpha_stride",
     [](auto& a, int32_t x) { a.alpha_stride = x; },
     "alpha1_dev and alpha2_dev are NULL",
     {[](auto& a) { a.alpha1_dev = a_float(); }, [](auto& a) { a.alpha2_dev = a_float(); }}},
    {"c_global_scale_stride",
     [](auto& a, int32_t x) { a.c_global_scale_stride = x; },
     "c_global_scale_dev is NULL",
     {[](auto& a) { give_nvfp4(a), a.c_global_scale_dev = a_float(); }}},
};

TEST_CASE("a pitch or a stride of a tensor that is not there is 0", "[host][validate]") {
  constexpr int32_t kRoom = 1 << 16;
  for (const dualgemm_args_t& good : {valid_args(), batch_args(), masked_args()})
    for (const Number& number : kNumbers) {
      for (const int32_t value : {8, kRoom}) {
        const std::string text =
            std::string(number.name) + "=" + std::to_string(value) + ": must be 0 where " + number.missing;
        check({{kValue, text.c_str(), [&](auto& a) { number.set(a, value); }}}, good);
      }
      for (const Change& give : number.give)
        check_accepted({[&](auto& a) { give(a), number.set(a, kRoom); }}, good);
    }
  // It is 0 for K = 0 as well, which reads no input.
  check({{kValue, "bias_stride=128: must be 0 where", [](auto& a) { a.k = 0, a.bias_stride = 128; }}});
}

TEST_CASE("a workspace that is not there has no size", "[host][validate]") {
  check({{kValue, "workspace_size=64: must be 0 where workspace is NULL",
          [](auto& a) { a.workspace_size = 64; }}});
  check_accepted({[](auto& a) { a.workspace = address(0x3'0000'0100), a.workspace_size = 64; },
                  [](auto& a) { a.workspace = address(0x3'0000'0100); }});
}

TEST_CASE("groups whose rows follow each other have no strides between them", "[host][validate][grouped]") {
  struct Stride {
    const char* name;
    int64_t dualgemm_args_t::*field;
  };
  const std::vector<Stride> by_rows = {
      {"batch_stride_a", &dualgemm_args_t::batch_stride_a},
      {"batch_stride_sfa", &dualgemm_args_t::batch_stride_sfa},
      {"batch_stride_a_row_scale", &dualgemm_args_t::batch_stride_a_row_scale},
      {"batch_stride_c_row_scale", &dualgemm_args_t::batch_stride_c_row_scale},
      {"batch_stride_c", &dualgemm_args_t::batch_stride_c},
      {"batch_stride_sfc", &dualgemm_args_t::batch_stride_sfc},
      {"batch_stride_d1", &dualgemm_args_t::batch_stride_d1},
      {"batch_stride_d2", &dualgemm_args_t::batch_stride_d2}};
  const auto with_all = [](const dualgemm_args_t& args) {
    dualgemm_args_t all = args;
    give_nvfp4(all), give_d(all);
    all.a_row_scale = all.c_row_scale = a_float();
    return all;
  };
  for (const Stride& stride : by_rows) {
    const Change set = [&](auto& a) { a.*stride.field = 1 << 20; };
    check_accepted({set}, with_all(masked_args()));
    const std::string text = std::string(stride.name) +
                             "=1048576: must be 0 with group_mode=1 (OFFSETS), where the rows of all groups "
                             "follow each other";
    check({{kValue, text.c_str(), set}, {kValue, text.c_str(), [&](auto& a) { a.groups = 1, set(a); }}},
          with_all(offsets_args()));
  }
}

TEST_CASE("one problem has no next one: any stride from it goes", "[host][validate]") {
  for (const int64_t stride : {-5, 3, 1 << 20})
    check_accepted({[&](auto& a) {
      give_nvfp4(a), give_d(a);
      a.bias1 = a.a_row_scale = a.c_row_scale = a_float();
      a.batch_stride_a = a.batch_stride_b1 = a.batch_stride_b2 = a.batch_stride_c = stride;
      a.batch_stride_sfa = a.batch_stride_sfb1 = a.batch_stride_sfb2 = stride;
      a.batch_stride_sfc = a.batch_stride_d1 = a.batch_stride_d2 = stride;
      a.batch_stride_a_row_scale = a.batch_stride_c_row_scale = a.bias_stride = stride;
    }});
}

TEST_CASE("an enumerator is one that there is, also where nothing has that type", "[host][validate]") {
  check({{kValue, "bias_dtype=3 (NVFP4): must be 0 (BF16) or 2 (FP32)",
          [](auto& a) { a.bias_dtype = DUALGEMM_DTYPE_NVFP4; }},
         {kValue, "d_dtype=4: must be in [0, 2]", [](auto& a) { a.d_dtype = DUALGEMM_DTYPE_FP8_E4M3; }},
         {kValue, "d_dtype=-1: must be in [0, 2]", [](auto& a) { a.d_dtype = -1; }}});
  for (const int32_t dtype : {DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP16, DUALGEMM_DTYPE_FP32})
    check_accepted({[=](auto& a) { a.d_dtype = dtype; }});
  for (const int32_t dtype : {DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP32})
    check_accepted({[=](auto& a) { a.bias_dtype = dtype; }});
}

TEST_CASE("messages call every enumerator by the name that it has in the header", "[host][validate]") {
  using namespace dualgemm;
#define DUALGEMM_NAMED(function, prefix, name) CHECK(std::string(function(prefix##name)) == #name)
  DUALGEMM_NAMED(dtype_name, DUALGEMM_DTYPE_, BF16);
  DUALGEMM_NAMED(dtype_name, DUALGEMM_DTYPE_, FP16);
  DUALGEMM_NAMED(dtype_name, DUALGEMM_DTYPE_, FP32);
  DUALGEMM_NAMED(dtype_name, DUALGEMM_DTYPE_, NVFP4);
  DUALGEMM_NAMED(dtype_name, DUALGEMM_DTYPE_, FP8_E4M3);
  DUALGEMM_NAMED(dtype_name, DUALGEMM_DTYPE_, MXFP4);
  DUALGEMM_NAMED(activation_name, DUALGEMM_ACTIVATION_, SWIGLU);
  DUALGEMM_NAMED(activation_name, DUALGEMM_ACTIVATION_, GEGLU_TANH);
  DUALGEMM_NAMED(activation_name, DUALGEMM_ACTIVATION_, GEGLU_ERF);
  DUALGEMM_NAMED(activation_name, DUALGEMM_ACTIVATION_, REGLU);
  DUALGEMM_NAMED(activation_name, DUALGEMM_ACTIVATION_, GLU);
  DUALGEMM_NAMED(activation_name, DUALGEMM_ACTIVATION_, SWIGLU_STEP);
  DUALGEMM_NAMED(activation_name, DUALGEMM_ACTIVATION_, SITU);
  DUALGEMM_NAMED(group_mode_name, DUALGEMM_GROUP_, NONE);
  DUALGEMM_NAMED(group_mode_name, DUALGEMM_GROUP_, OFFSETS);
  DUALGEMM_NAMED(group_mode_name, DUALGEMM_GROUP_, MASKED);
#undef DUALGEMM_NAMED
  CHECK(std::string(dtype_name(99)) == "unknown");
}

}  // namespace validate_absent_test
