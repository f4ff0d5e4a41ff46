// validate_mxfp4_test.cpp -- a launch with weights in MXFP4 and an A in FP8: which types go together, and on
// which device; what its tensors take, and the exponents of rows. No other type of weights takes these.

#include <string>
#include <vector>

#include "arguments.h"
#include "host/include/dualgemm.h"
#include "launch_parts.h"
#include "overlap.h"
#include "rules.h"
#include "support/catch.hpp"

namespace validate_mxfp4_test {

using namespace dualgemm_test;

static dualgemm_args_t good() { return with_mxfp4(valid_args()); }

// Asks about the rules of the arguments alone, whatever the device computes.
static dualgemm_status_t ask_rules(const dualgemm_args_t& args) {
  dualgemm::Problem problem;
  return dualgemm::validate(&args, &problem);
}

static void check_taken(const std::vector<Change>& changes, const dualgemm_args_t& from = good()) {
  for (size_t i = 0; i < changes.size(); ++i) {
    dualgemm_args_t args = from;
    changes[i](args);
    const dualgemm_status_t status = ask_rules(args);
    INFO("case " << i << ": " << dualgemm_last_error());
    CHECK(status == kGood);
  }
}

TEST_CASE("MXFP4 weights: what a launch takes", "[host][validate][mxfp4]") {
  check_taken({
      [](auto&) {},
      [](auto& a) { a.k = 32; },
      [](auto& a) { a.k = 160, a.lda = 176, a.ldb1 = a.ldb2 = 192; },
      [](auto& a) { a.b1_row_exponent = a.b2_row_exponent = nullptr; },
      [](auto& a) { a.b1_row_exponent = nullptr; },
      [](auto& a) { a.b2_row_exponent = address<const int16_t>(0x5'b000'0002); },
      [](auto& a) { a.a_row_scale = address<const float>(0x5'3000'0000); },
      [](auto& a) { a.batch = 3, a.batch_stride_b_row_exponent = 128; },
      [](auto& a) { a.batch = 3, a.batch_stride_b_row_exponent = 131; },
      [](auto& a) { a = everything(a); },
      [](auto& a) { a = everything_of_one(a); },
  });
  for (const dualgemm_args_t& groups : {masked_args(), offsets_args()})
    check_taken({[](auto&) {}, [](auto& a) { a.batch_stride_b_row_exponent = 200; }}, with_mxfp4(groups));
}

TEST_CASE("MXFP4 weights: A has the pitch of bytes, weights and factors that of 4 bits and of 32 elements",
          "[host][validate][mxfp4]") {
  check(
      {{kShape, "k=48: must be a multiple of 32 with b_dtype=5 (MXFP4)", [](auto& a) { a.k = 48; }},
       {kShape, "k=40: must be a multiple of 16", [](auto& a) { a.k = 40; }},
       {kStride, "lda=511: must be at least k=512", [](auto& a) { a.lda = 511; }},
       {kStride, "lda=520: must be a multiple of 16", [](auto& a) { a.lda = 520; }},
       {kStride, "ldb2=528: must be a multiple of 32", [](auto& a) { a.ldb2 = 528; }},
       {kStride, "batch_stride_a=131056: must be at least 131072",
        [](auto& a) { a.batch = 2, a.batch_stride_a = 131056; }},
       {kStride, "batch_stride_sfb1=2032: must be at least 2048, one problem",
        [](auto& a) { a.batch = 2, a.batch_stride_sfb1 = 2032; }},
       {kStride, "batch_stride_b_row_exponent=127: must be at least 128, one problem",
        [](auto& a) { a.batch = 2, a.batch_stride_b_row_exponent = 127; }},
       {kStride, "batch_stride_b_row_exponent=-1: must not be negative",
        [](auto& a) { a.batch = 2, a.batch_stride_b_row_exponent = -1; }},
       {kMisaligned, "a=0x100000008: must be 16-byte aligned", [](auto& a) { a.a = address(0x1'0000'0008); }},
       {kMisaligned, "b1_row_exponent=0x5a0000001: must be 2-byte aligned",
        [](auto& a) { a.b1_row_exponent = address<const int16_t>(0x5'a000'0001); }},
       {kMisaligned, "b2_row_exponent=0x5b0000003: must be 2-byte aligned",
        [](auto& a) { a.b2_row_exponent = address<const int16_t>(0x5'b000'0003); }},
       {kNull, "sfb2=NULL", [](auto& a) { a.sfb2 = nullptr; }},
       {kValue, "sfa=0x1c0000000: must be NULL unless a_dtype is NVFP4",
        [](auto& a) { a.sfa = address(0x1'c000'0000); }}},
      good());
  check_taken({[](auto& a) { a.batch = 2, a.batch_stride_sfb1 = a.batch_stride_sfb2 = 2048; },
               [](auto& a) { a.batch = 2, a.batch_stride_a = 131072; }});
}

TEST_CASE("MXFP4 weights: exponents of rows are for them alone, and the second for a second product",
          "[host][validate][mxfp4]") {
  check(
      {{kValue, "b1_row_exponent=0x5a0000000: must be NULL unless b_dtype is MXFP4",
        [](auto& a) { a.b1_row_exponent = address<const int16_t>(0x5'a000'0000); }},
       {kValue, "b2_row_exponent=0x5a0000000: must be NULL unless b_dtype is MXFP4",
        [](auto& a) { a.b2_row_exponent = address<const int16_t>(0x5'a000'0000); }},
       {kValue, "b1_row_exponent=", [](auto& a) { a.k = 0, a.b1_row_exponent = address<const int16_t>(2); }},
       {kValue,
        "batch_stride_b_row_exponent=128: must be 0 where b1_row_exponent and b2_row_exponent are NULL",
        [](auto& a) { a.batch_stride_b_row_exponent = 128; }},
       {kValue, "reserved4=1: must be 0", [](auto& a) { a.reserved4 = 1; }}});
  const dualgemm_args_t one = everything_of_one(good());
  check({{kValue, "b2_row_exponent=0x5b0000000: must be NULL with products=1",
          [](auto& a) { a.b2_row_exponent = address<const int16_t>(0x5'b000'0000); }}},
        one);
  check({{kValue, "batch_stride_b_row_exponent=9: must be 0 where",
          [](auto& a) { a.b1_row_exponent = nullptr, a.batch_stride_b_row_exponent = 9; }}},
        one);
}

TEST_CASE("weights are NVFP4 or MXFP4, and nothing else is MXFP4", "[host][validate][mxfp4]") {
  for (const int32_t other : {0, 1, 2, 4, 6, -1})
    check({{kValue, "must be 3 (NVFP4) or 5 (MXFP4)", [=](auto& a) { a.b_dtype = other; }}});
  check({{kValue, "b_dtype=0 (BF16): ", [](auto& a) { a.b_dtype = DUALGEMM_DTYPE_BF16; }},
         {kValue, "a_dtype=5 (MXFP4): must be 0 (BF16), 1 (FP16), 3 (NVFP4) or 4 (FP8_E4M3)",
          [](auto& a) { a.a_dtype = DUALGEMM_DTYPE_MXFP4; }},
         {kValue, "c_dtype=5: must be in [0, 4]", [](auto& a) { a.c_dtype = DUALGEMM_DTYPE_MXFP4; }},
         {kValue, "d_dtype=5: must be in [0, 2]", [](auto& a) { a.d_dtype = DUALGEMM_DTYPE_MXFP4; }},
         {kValue, "bias_dtype=5 (MXFP4): ", [](auto& a) { a.bias_dtype = DUALGEMM_DTYPE_MXFP4; }}});
}

TEST_CASE("FP8 goes with MXFP4 and with nothing else, and the refusal says what to do",
          "[host][validate][mxfp4]") {
  const auto with_types = [](int32_t a_dtype, int32_t b_dtype) {
    dualgemm_args_t args = dualgemm_test::with_a(a_dtype, valid_args());
    args.b_dtype = b_dtype;
    return args;
  };
  for (const int32_t a : {DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP16, DUALGEMM_DTYPE_NVFP4}) {
    CHECK(ask_rules(with_types(a, DUALGEMM_DTYPE_NVFP4)) == kGood);
    check({{kUnsupported, "b_dtype=5 (MXFP4): needs a_dtype=4 (FP8_E4M3), not a_dtype=", [](auto&) {}},
           {kUnsupported, "dualgemm_import_mxfp4_host makes NVFP4 of MXFP4 without loss", [](auto&) {}}},
          with_types(a, DUALGEMM_DTYPE_MXFP4));
  }
  CHECK(ask_rules(with_types(DUALGEMM_DTYPE_FP8_E4M3, DUALGEMM_DTYPE_MXFP4)) == kGood);
  check(
      {{kUnsupported,
        "a_dtype=4 (FP8_E4M3): needs b_dtype=5 (MXFP4), not b_dtype=3 (NVFP4); for these weights quantise A "
        "to NVFP4 by dualgemm_quantize",
        [](auto&) {}}},
      with_types(DUALGEMM_DTYPE_FP8_E4M3, DUALGEMM_DTYPE_NVFP4));
  // With K = 0 no input is read, so its type does not matter.
  dualgemm_args_t no_k = with_types(DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_MXFP4);
  no_k.k = 0;
  CHECK(ask_rules(no_k) == kGood);
}

TEST_CASE("MXFP4 weights: 10.x refuses them, and the refusal names what makes NVFP4 of them",
          "[host][validate][mxfp4]") {
  for (const int32_t minor : {0, 3}) {
    dualgemm_device_t device = b200();
    device.cc_minor = minor;
    dualgemm_args_t args = good();
    CHECK(dualgemm_can_implement_on(&args, &device) == kUnsupported);
    CHECK(std::string(dualgemm_last_error()) ==
          "b_dtype=5 (MXFP4): must be 3 (NVFP4) on compute capability 10." + std::to_string(minor) +
              "; dualgemm_import_mxfp4_host makes NVFP4 of MXFP4 without loss");
    args.k = 0;
    CHECK(dualgemm_can_implement_on(&args, &device) == kGood);
  }
}

TEST_CASE("MXFP4 weights: an instance reads the types that it was compiled for", "[host][validate][mxfp4]") {
  for (const int32_t id : dualgemm_test::launched_ids()) {
    const dualgemm::Instance& instance = dualgemm::instance(id - 1);
    if (instance.plan.a_type == dualgemm::CType::kFp8) continue;
    dualgemm_args_t args = good();
    args.instance_id = id;
    CHECK(ask_rules(args) == kUnsupported);
    CHECK(std::string(dualgemm_last_error()).find("not a_dtype=4 (FP8_E4M3)") != std::string::npos);
  }
}

TEST_CASE("MXFP4 weights: no output, nor the workspace, overlaps any tensor of theirs",
          "[host][validate][grouped][mxfp4]") {
  for (const dualgemm_args_t& kind : {valid_args(), batch_args(), masked_args(), offsets_args()})
    for (const bool one : {false, true}) {
      INFO("group_mode " << kind.group_mode << ", batch " << kind.batch << (one ? ", one product" : ""));
      const dualgemm_args_t all = with_mxfp4(kind);
      const dualgemm_args_t args = one ? everything_of_one(all) : everything(all);
      check_pairs(args, parts_of(args), ask_rules);
    }
}

TEST_CASE("MXFP4 weights: a structure of before has NVFP4 weights", "[host][validate][mxfp4]") {
  dualgemm_args_t args = valid_args();
  args.b_dtype = 77;
  args.reserved4 = 1;
  args.struct_size = 472;
  CHECK(checked(args).b_type == dualgemm::CType::kNvfp4);
  CHECK(checked(args).inputs[dualgemm::kB1RowExponent].base == nullptr);
}

TEST_CASE("MXFP4 weights: sizes and offsets of their factors are those of blocks of 32 elements",
          "[host][sf_layout][mxfp4]") {
  const dualgemm_dtype_t mx = DUALGEMM_DTYPE_MXFP4;
  CHECK(dualgemm_sf_size_of(mx, 1, 32) == 512);
  CHECK(dualgemm_sf_size_of(mx, 128, 128) == 512);
  CHECK(dualgemm_sf_size_of(mx, 128, 160) == 1024);
  CHECK(dualgemm_sf_size_of(mx, 2880, 2880) == size_t{23} * 23 * 512);
  CHECK(dualgemm_sf_size_of(mx, -1, 32) == 0);
  CHECK(dualgemm_sf_size_of(mx, 1, -32) == 0);
  for (const dualgemm_dtype_t none : {DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP32, DUALGEMM_DTYPE_FP8_E4M3}) {
    CHECK(dualgemm_sf_size_of(none, 128, 128) == 0);
    CHECK(dualgemm_sf_offset_of(none, 128, 128, 0, 0) == -1);
  }
  const int32_t rows = 300, k = 288, atoms = 3;
  std::vector<int> owners(dualgemm_sf_size_of(mx, rows, k));
  for (int32_t row = 0; row < 384; ++row)
    for (int32_t block = 0; block < 4 * atoms; ++block) {
      const int64_t at = dualgemm_sf_offset_of(mx, rows, k, row, block);
      REQUIRE(at ==
              row / 128 * 128 * 4 * atoms + block / 4 * 512 + row % 32 * 16 + row % 128 / 32 * 4 + block % 4);
      ++owners[static_cast<size_t>(at)];
      // NVFP4 of half the elements has as many blocks.
      CHECK(dualgemm_sf_offset(rows, k / 2, row, block) == at);
      CHECK(dualgemm_sf_offset_of(DUALGEMM_DTYPE_NVFP4, rows, k / 2, row, block) == at);
    }
  for (const int count : owners) REQUIRE(count == 1);
  CHECK(dualgemm_sf_offset_of(mx, rows, k, 384, 0) == -1);
  CHECK(dualgemm_sf_offset_of(mx, rows, k, 0, 12) == -1);
  CHECK(dualgemm_sf_offset_of(mx, rows, k, 0, -1) == -1);
}

}  // namespace validate_mxfp4_test
