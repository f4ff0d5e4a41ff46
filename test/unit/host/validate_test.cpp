// validate_test.cpp -- the rules of a launch: the status of each violation, the text that names it, and the
// order in which they are found. dualgemm_can_implement_on needs no GPU, so neither do these.

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "arguments.h"
#include "host/include/dualgemm.h"
#include "rules.h"
#include "support/catch.hpp"

namespace validate_test {

using namespace dualgemm_test;

TEST_CASE("valid arguments are accepted and leave no text", "[host][validate]") {
  check_accepted({
      [](auto&) {},
      [](auto& a) { a.c_dtype = DUALGEMM_DTYPE_FP16; },
      [](auto& a) { a.m = 1; },
      [](auto& a) { a.n = 8; },
      [](auto& a) { a.k = 16, a.lda = a.ldb1 = a.ldb2 = 32; },
      [](auto& a) { a.k = 464, a.lda = 480, a.ldb1 = 512, a.ldb2 = 992; },
      [](auto& a) { a.ldc = 136; },
      [](auto& a) { a.batch = 1; },
      [](auto& a) { a.b2 = a.b1, a.sfb2 = a.sfb1; },
      [](auto& a) { a.alpha1 = -3, a.alpha2 = 0; },
      [](auto& a) { a.alpha1_dev = a.alpha2_dev = address<const float>(0x3'0000'0004); },
      [](auto& a) { a.flags = DUALGEMM_FLAG_NO_FALLBACK | DUALGEMM_FLAG_BATCH_INVARIANT; },
      [](auto& a) { a.flags = DUALGEMM_FLAG_PDL; },
      [](auto& a) { a.flags = DUALGEMM_FLAG_CHECK_POINTERS; },  // no device is asked here
      [](auto& a) { a.flags = DUALGEMM_FLAG_STATIC_WEIGHTS; },
      [](auto& a) { a.flags = DUALGEMM_FLAG_PDL | DUALGEMM_FLAG_STATIC_WEIGHTS; },
      [](auto& a) { a.alpha_stride = 1, a.alpha1_dev = address<const float>(0x3'0000'0000); },
      [](auto& a) { a.max_sms = 1; },
      [](auto& a) { a.workspace = address(0x3'0000'0100), a.workspace_size = 1; },
  });
}

TEST_CASE("required pointers to structures", "[host][validate]") {
  const dualgemm_device_t device = b200();
  CHECK(dualgemm_can_implement_on(nullptr, &device) == DUALGEMM_STATUS_NULL_POINTER);
  CHECK(std::string(dualgemm_last_error()) == "args=NULL: must point to a dualgemm_args_t");
  const dualgemm_args_t args = valid_args();
  CHECK(dualgemm_can_implement_on(&args, nullptr) == DUALGEMM_STATUS_NULL_POINTER);
  CHECK(std::string(dualgemm_last_error()) == "device=NULL: must point to a dualgemm_device_t");
}

TEST_CASE("flags, enumerators and numbers outside their range", "[host][validate]") {
  check({
      {kValue, "flags=0x40: unknown bits 0x40", [](auto& a) { a.flags = 0x40; }},
      {kValue, "flags=0x80000004: unknown bits 0x80000000", [](auto& a) { a.flags = 0x80000004u; }},
      {kValue, "activation=7: must be in [0, 6]", [](auto& a) { a.activation = 7; }},
      {kValue, "c_dtype=-1: must be in [0, 4]", [](auto& a) { a.c_dtype = -1; }},
      {kValue, "c_dtype=5: must be in [0, 4]", [](auto& a) { a.c_dtype = 5; }},
      {kValue, "bias_dtype=1 (FP16): must be 0 (BF16) or 2 (FP32)", [](auto& a) { a.bias_dtype = 1; }},
      {kValue, "bias_dtype=3 (NVFP4): must be 0 (BF16) or 2 (FP32)", [](auto& a) { a.bias_dtype = 3; }},
      {kValue, "bias_dtype=-1 (unknown): must be 0 (BF16) or 2 (FP32)", [](auto& a) { a.bias_dtype = -1; }},
      {kValue, "d_dtype=3: must be in [0, 2]", [](auto& a) { a.d_dtype = 3; }},
      {kValue, "reserved0=1: must be 0", [](auto& a) { a.reserved0 = 1; }},
      {kValue, "reserved2=1: must be 0", [](auto& a) { a.reserved2 = 1; }},
      {kValue, "reserved1=-1: must be 0", [](auto& a) { a.reserved1 = -1; }},
      {kValue, "m=-1: must not be negative", [](auto& a) { a.m = -1; }},
      {kValue, "n=-8: must not be negative", [](auto& a) { a.n = -8; }},
      {kValue, "k=-16: must not be negative", [](auto& a) { a.k = -16; }},
      {kValue, "batch=-1: must not be negative", [](auto& a) { a.batch = -1; }},
      {kValue, "max_sms=-1: must not be negative", [](auto& a) { a.max_sms = -1; }},
      {kValue, "alpha_stride=-1: must not be negative", [](auto& a) { a.alpha_stride = -1; }},
      {kValue, "c_global_scale_stride=-1: must not be negative",
       [](auto& a) { a.c_global_scale_stride = -1; }},
      {kValue, "group_mode=3: must be in [0, 2]", [](auto& a) { a.group_mode = 3; }},
      {kValue, "group_mode=-1: must be in [0, 2]", [](auto& a) { a.group_mode = -1; }},
      {kValue, "groups=2: must be 0 without a group_mode", [](auto& a) { a.groups = 2; }},
      {kValue, "groups=-2: must be 0 without a group_mode", [](auto& a) { a.groups = -2; }},
      {kValue, "group_rows=0x300000000: must be NULL without a group_mode",
       [](auto& a) { a.group_rows = address<const int32_t>(0x3'0000'0000); }},
      {kValue, "expected_rows=4: must be 0 without a group_mode", [](auto& a) { a.expected_rows = 4; }},
      {kValue, "expected_rows=-1: must not be negative", [](auto& a) { a.expected_rows = -1; }},
      {kValue, "alpha1=nan: must be finite", [](auto& a) { a.alpha1 = kNan; }},
      {kValue, "alpha2=-inf: must be finite", [](auto& a) { a.alpha2 = -kInfinity; }},
  });
}

TEST_CASE("an A of 16 bits", "[host][validate]") {
  const dualgemm_args_t good = dualgemm_test::with_a(DUALGEMM_DTYPE_BF16, valid_args());
  const dualgemm_device_t h100 = dualgemm_test::h100();
  SECTION("is NVFP4, BF16 or FP16, or, with other weights, FP8") {
    const char* const rule = "must be 0 (BF16), 1 (FP16), 3 (NVFP4) or 4 (FP8_E4M3)";
    check({{kValue, "a_dtype=2 (FP32): ", [](auto& a) { a.a_dtype = DUALGEMM_DTYPE_FP32; }},
           {kUnsupported, "a_dtype=4 (FP8_E4M3): ", [](auto& a) { a.a_dtype = 4, a.sfa = nullptr; }},
           {kValue, rule, [](auto& a) { a.a_dtype = 5; }},
           {kValue, "a_dtype=-1 (unknown): ", [](auto& a) { a.a_dtype = -1; }},
           {kValue, "reserved3=1: must be 0", [](auto& a) { a.reserved3 = 1; }}});
  }
  SECTION("has no factors, rows of two bytes for an element, and all else of any A") {
    check({{DUALGEMM_STATUS_INVALID_VALUE, "sfa=0x1c0000000: must be NULL unless a_dtype is NVFP4",
            [](auto& a) { a.sfa = address(0x1'c000'0000); }},
           {DUALGEMM_STATUS_INVALID_VALUE, "batch_stride_sfa=16: must be 0 where a_dtype is not NVFP4",
            [](auto& a) { a.batch_stride_sfa = 16; }},
           {DUALGEMM_STATUS_NULL_POINTER, "a=NULL", [](auto& a) { a.a = nullptr; }},
           {DUALGEMM_STATUS_MISALIGNED, "a=0x100000008: must be 16-byte aligned",
            [](auto& a) { a.a = address(0x1'0000'0008); }},
           {DUALGEMM_STATUS_INVALID_SHAPE, "k=520: must be a multiple of 16", [](auto& a) { a.k = 520; }},
           {DUALGEMM_STATUS_INVALID_STRIDE, "lda=504: must be at least k=512", [](auto& a) { a.lda = 504; }},
           {DUALGEMM_STATUS_INVALID_STRIDE, "lda=516: must be a multiple of 8", [](auto& a) { a.lda = 516; }},
           {DUALGEMM_STATUS_INVALID_STRIDE, "batch_stride_a=131064: must be at least 131072",
            [](auto& a) { a.batch = 2, a.batch_stride_a = 131064; }},
           {DUALGEMM_STATUS_ALIASING,
            "c=", [](auto& a) { a.c = address(0x1'0000'0000 + 2 * 256 * 512 - 16); }}},
          good);
  }
  SECTION("is taken on 9.0, with a pitch in steps of 8 elements") {
    for (const int32_t a_dtype : {DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP16})
      for (const int64_t lda : {0, 512, 520}) {
        dualgemm_args_t args = dualgemm_test::with_a(a_dtype, valid_args());
        args.lda = lda;
        args.c = address(0x1'0000'0000 + 2 * 256 * 520);  // A ends before it
        CHECK(dualgemm_can_implement_on(&args, &h100) == DUALGEMM_STATUS_SUCCESS);
        CHECK(std::string(dualgemm_last_error()).empty());
      }
  }
  SECTION("is refused on 10.x with the reason, but for K == 0") {
    for (const int32_t minor : {0, 3}) {
      dualgemm_device_t device = b200();
      device.cc_minor = minor;
      dualgemm_args_t args = good;
      CHECK(dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_NOT_SUPPORTED);
      CHECK(std::string(dualgemm_last_error()) ==
            "a_dtype=0 (BF16): must be 3 (NVFP4) on compute capability 10." + std::to_string(minor) +
                ", whose tensor cores multiply NVFP4 with nothing else");
      args.k = 0;
      CHECK(dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_SUCCESS);
    }
  }
  SECTION("is read by instances for it alone") {
    for (const int32_t id : dualgemm_test::launched_ids()) {
      const dualgemm::Instance& instance = dualgemm::instance(id - 1);
      if (instance.plan.tile.grouped) continue;
      const int32_t own = static_cast<int32_t>(instance.plan.a_type);
      for (const int32_t a_dtype :
           {DUALGEMM_DTYPE_NVFP4, DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP16, DUALGEMM_DTYPE_FP8_E4M3}) {
        dualgemm_args_t args = dualgemm_test::with_a(a_dtype, dualgemm_test::forced(id, valid_args()));
        args.b_dtype = a_dtype == DUALGEMM_DTYPE_FP8_E4M3 ? DUALGEMM_DTYPE_MXFP4 : DUALGEMM_DTYPE_NVFP4;
        const dualgemm_device_t device = dualgemm_test::device_for(instance);
        INFO(instance.name << " and a_dtype " << a_dtype);
        CHECK(dualgemm_can_implement_on(&args, &device) ==
              (own == a_dtype ? DUALGEMM_STATUS_SUCCESS : DUALGEMM_STATUS_NOT_SUPPORTED));
        if (own == a_dtype) continue;
        const std::string text = dualgemm_last_error();
        CHECK(
            text.starts_with("instance_id=" + std::to_string(id) + ": " + instance.name + " reads a_dtype="));
      }
    }
  }
}

TEST_CASE("an empty output succeeds before pointers and shapes are looked at", "[host][validate]") {
  for (const bool no_rows : {true, false}) {
    dualgemm_args_t args;
    dualgemm_args_init(&args);
    args.m = no_rows ? 0 : 3;
    args.n = no_rows ? 5 : 0;
    args.k = 7;
    CHECK(ask(args) == DUALGEMM_STATUS_SUCCESS);
    CHECK(dualgemm_can_implement(&args) == DUALGEMM_STATUS_SUCCESS);
    CHECK(dualgemm_launch_ex(&args, nullptr) == DUALGEMM_STATUS_SUCCESS);
    args.k = -1;
    CHECK(ask(args) == DUALGEMM_STATUS_INVALID_VALUE);
  }
}

TEST_CASE("shapes", "[host][validate]") {
  check({
      {kShape, "k=1000: must be a multiple of 16", [](auto& a) { a.k = 1000; }},
      {kShape, "k=1: must be a multiple of 16", [](auto& a) { a.k = 1; }},
      {kShape, "n=12: must be a multiple of 8 with c_dtype=0 (BF16)", [](auto& a) { a.n = 12; }},
  });
}

TEST_CASE("tensors that are missing", "[host][validate]") {
  check({
      {kNull, "a=NULL", [](auto& a) { a.a = nullptr; }},
      {kNull, "b1=NULL", [](auto& a) { a.b1 = nullptr; }},
      {kNull, "b2=NULL", [](auto& a) { a.b2 = nullptr; }},
      {kNull, "sfa=NULL", [](auto& a) { a.sfa = nullptr; }},
      {kNull, "sfb1=NULL", [](auto& a) { a.sfb1 = nullptr; }},
      {kNull, "sfb2=NULL", [](auto& a) { a.sfb2 = nullptr; }},
      {kNull, "c=NULL", [](auto& a) { a.c = nullptr; }},
  });
}

TEST_CASE("row pitches", "[host][validate]") {
  check({
      {kStride, "k=464: rows must start at multiples of 16 bytes, pass lda >= 480",
       [](auto& a) { a.k = 464; }},
      {kStride, "k=464: rows must start at multiples of 16 bytes, pass ldb2 >= 480",
       [](auto& a) { a.k = 464, a.lda = a.ldb1 = 480; }},
      {kStride, "lda=480: must be at least k=512", [](auto& a) { a.lda = 480; }},
      {kStride, "ldb1=-512: must be at least k=512", [](auto& a) { a.ldb1 = -512; }},
      {kStride, "ldb2=528: must be a multiple of 32", [](auto& a) { a.ldb2 = 528; }},
      {kStride, "lda=8589934592: 256 rows must take less than 2^40 bytes",
       [](auto& a) { a.lda = 1LL << 33; }},
      {kStride, "lda=9223372036854775776: 256 rows must take less than 2^40 bytes",
       [](auto& a) { a.lda = std::numeric_limits<int64_t>::max() - 31; }},
      {kStride, "ldc=120: must be at least n=128", [](auto& a) { a.ldc = 120; }},
      {kStride, "ldc=132: must be a multiple of 8", [](auto& a) { a.ldc = 132; }},
      {kStride, "ldc=1099511627776: 256 rows must take less than 2^48 bytes",
       [](auto& a) { a.ldc = 1LL << 40; }},
      {kStride, "ldc=9223372036854775800: 256 rows must take less than 2^48 bytes",
       [](auto& a) { a.ldc = std::numeric_limits<int64_t>::max() - 7; }},
  });
  // This is the largest pitch allowed. C moves out of the way of a terabyte of A.
  check_accepted({[](auto& a) { a.lda = (1LL << 33) - 32, a.c = address(uintptr_t{1} << 56); }});
}

TEST_CASE("the limits of bytes are exact", "[host][validate]") {
  // Rows of A lie 65,552 bytes apart: 16,773,120 of them take 2^40 - 65,536 bytes, and one more is too many.
  const auto rows_of_a = [](int32_t m) {
    return [m](dualgemm_args_t& a) {
      a.m = m, a.n = 8, a.k = 131072, a.lda = 131104, a.c = address(uintptr_t{1} << 56);
    };
  };
  check_accepted({rows_of_a(16773119), rows_of_a(16773120)});
  check({{kStride, "lda=131104: 16773121 rows must take less than 2^40 bytes", rows_of_a(16773121)}});
  // Rows of C lie 16,777,232 bytes apart: 16,777,200 of them take 2^48 - 256 bytes.
  const auto rows_of_c = [](int32_t m) {
    return [m](dualgemm_args_t& a) {
      a.m = m, a.n = 8, a.k = 32, a.ldc = 8388616, a.c = address(uintptr_t{1} << 56);
    };
  };
  check_accepted({rows_of_c(16777200)});
  check({{kStride, "ldc=8388616: 16777201 rows must take less than 2^48 bytes", rows_of_c(16777201)}});
  // The same of problems of C: 33,554,464 bytes, 8,388,600 times.
  const auto problems = [](int32_t batch) {
    return [batch](dualgemm_args_t& a) {
      a.m = 1, a.n = 8, a.k = 32, a.batch = batch, a.batch_stride_c = 16777232;
      a.c = address(uintptr_t{1} << 56);
    };
  };
  check_accepted({problems(8388600)});
  check({{kStride, "batch_stride_c=16777232: 8388601 problems must take less than 2^48 bytes",
          problems(8388601)}});
}

TEST_CASE("alignment", "[host][validate]") {
  check({
      {kMisaligned, "a=0x100000008: must be 16-byte aligned", [](auto& a) { a.a = address(0x1'0000'0008); }},
      {kMisaligned, "b1=0x140000001: must be 16-byte aligned",
       [](auto& a) { a.b1 = address(0x1'4000'0001); }},
      {kMisaligned, "b2=0x180000004: must be 16-byte aligned",
       [](auto& a) { a.b2 = address(0x1'8000'0004); }},
      {kMisaligned, "sfa=0x1c0000002: must be 16-byte aligned",
       [](auto& a) { a.sfa = address(0x1'c000'0002); }},
      {kMisaligned, "sfb1=0x20000000f: must be 16-byte aligned",
       [](auto& a) { a.sfb1 = address(0x2'0000'000f); }},
      {kMisaligned, "sfb2=0x240000008: must be 16-byte aligned",
       [](auto& a) { a.sfb2 = address(0x2'4000'0008); }},
      {kMisaligned, "c=0x280000008: must be 16-byte aligned", [](auto& a) { a.c = address(0x2'8000'0008); }},
      {kMisaligned, "alpha1_dev=0x300000002: must be 4-byte aligned",
       [](auto& a) { a.alpha1_dev = address<const float>(0x3'0000'0002); }},
      {kMisaligned, "alpha2_dev=0x300000001: must be 4-byte aligned",
       [](auto& a) { a.alpha2_dev = address<const float>(0x3'0000'0001); }},
      {kMisaligned, "workspace=0x300000080: must be 256-byte aligned",
       [](auto& a) { a.workspace = address(0x3'0000'0080); }},
  });
}

TEST_CASE("the output may not overlap an input", "[host][validate]") {
  // C takes 256 x 128 x 2 = 0x10000 bytes from 0x280000000; A 256 x 512 / 2 = 0x10000;
  // SFA 2 x 8 atoms = 0x2000.
  check({
      {kAliasing, "c=0x280000000: overlaps a=0x280000000", [](auto& a) { a.a = a.c; }},
      {kAliasing, "overlaps a=0x28000fff0", [](auto& a) { a.a = address(0x2'8000'fff0); }},
      {kAliasing, "overlaps a=0x27fff0010", [](auto& a) { a.a = address(0x2'7fff'0010); }},
      {kAliasing, "overlaps b1=", [](auto& a) { a.b1 = a.c; }},
      {kAliasing, "overlaps b2=", [](auto& a) { a.b2 = a.c; }},
      {kAliasing, "overlaps sfa=0x27fffe010", [](auto& a) { a.sfa = address(0x2'7fff'e010); }},
      {kAliasing, "overlaps sfb1=", [](auto& a) { a.sfb1 = a.c; }},
      {kAliasing, "overlaps sfb2=", [](auto& a) { a.sfb2 = a.c; }},
  });
  check_accepted({
      [](auto& a) { a.a = address(0x2'8001'0000); },
      [](auto& a) { a.a = address(0x2'7fff'0000); },
      [](auto& a) { a.sfa = address(0x2'7fff'e000); },
  });
}

TEST_CASE("a tensor ends within the addresses that there are, and nothing wraps around", "[host][validate]") {
  constexpr uintptr_t kEnd = 0;  // behind the last address
  // A takes 0x10000 bytes, SFB1 0x1000, C 0x10000.
  check_accepted({
      [](auto& a) { a.a = address(kEnd - 0x10000); },
      [](auto& a) { a.sfb1 = address(kEnd - 0x1000), a.a = address(16); },
      [](auto& a) { a.c = address(kEnd - 0x10000), a.b1 = address(16); },
      [](auto& a) { a.c = address(kEnd - 0x10000), a.a = address(kEnd - 0x20000), a.b1 = a.b2; },
      [](auto& a) { a.c = address(16), a.a = address((uintptr_t{1} << 63) + 16); },
      [](auto& a) { a.c = address(16), a.a = address(kEnd - 0x10000); },
      [](auto& a) { a.workspace = address(kEnd - 0x100), a.workspace_size = 0x100; },
  });
  check({
      {kValue, "a=0xffffffffffff0010: its 65536 bytes reach beyond the last address",
       [](auto& a) { a.a = address(kEnd - 0xfff0); }},
      {kValue, "sfb1=0xfffffffffffff010: its 4096 bytes reach beyond the last address",
       [](auto& a) { a.sfb1 = address(kEnd - 0xff0); }},
      {kValue, "c=0xffffffffffff0010: its 65536 bytes reach beyond the last address",
       [](auto& a) { a.c = address(kEnd - 0xfff0); }},
      {kValue, "workspace=0xffffffffffffff00: its 257 bytes reach beyond the last address",
       [](auto& a) { a.workspace = address(kEnd - 0x100), a.workspace_size = 0x101; }},
      {DUALGEMM_STATUS_ALIASING, "c=0xffffffffffff0000: overlaps a=0xfffffffffffe0010",
       [](auto& a) { a.c = address(kEnd - 0x10000), a.a = address(kEnd - 0x1fff0); }},
  });
}

TEST_CASE("columns of one buffer with one pitch do not overlap", "[host][validate]") {
  // Rows have 1024 bytes: A uses 256 of them, C 256.
  const auto interleave = [](int64_t distance) {
    return [distance](dualgemm_args_t& a) {
      a.lda = 2048;
      a.ldc = 512;
      a.a = address(static_cast<uintptr_t>(0x2'8000'0000 + distance));
    };
  };
  // Every placement of A's column window is compared with a byte map of two rows above to two rows below.
  for (int64_t distance = -2048; distance <= 2048; distance += 16) {
    dualgemm_args_t args = valid_args();
    args.m = 2;
    interleave(distance)(args);
    bool shares_a_byte = false;
    for (int64_t row_a = 0; row_a < 2; ++row_a)
      for (int64_t row_c = 0; row_c < 2; ++row_c) {
        const int64_t gap = distance + 1024 * (row_a - row_c);
        shares_a_byte = shares_a_byte || (gap > -256 && gap < 256);
      }
    INFO("a lies " << distance << " bytes behind c");
    CHECK(ask(args) == (shares_a_byte ? DUALGEMM_STATUS_ALIASING : DUALGEMM_STATUS_SUCCESS));
  }
}

TEST_CASE("requests this release does not compute are refused", "[host][validate]") {
  void* const buffer = address(0x3'0000'0000);
  check({
      {kUnsupported,
       "k=0: must be above 0 with bias1=NULL, bias2=0x300000000: outputs are filled with zeros then, which "
       "is not the result with a bias",
       [&](auto& a) { a.bias2 = buffer, a.k = 0; }},
      {kUnsupported, "m=2147483647, n=65528, batch=0: are ",
       [](auto& a) {
         a.m = 2147483647, a.n = 65528, a.k = 16;
         a.lda = a.ldb1 = a.ldb2 = 32;
         a.c = address(uintptr_t{1} << 56);
       }},
      {kUnsupported, "n=2147483616: must be at most 2147482624",
       [](auto& a) {
         a.m = 1, a.n = 2147483616, a.k = 32;
         a.b2 = address(uintptr_t{1} << 50), a.c = address(uintptr_t{1} << 56);
         a.sfa = address(uintptr_t{1} << 52), a.sfb1 = address(uintptr_t{1} << 53);
         a.sfb2 = address(uintptr_t{1} << 54), a.b1 = address(uintptr_t{1} << 51);
       }},
      {kUnsupported, "must be at most 2^31-1",
       [](auto& a) {
         a.batch = 2147483647, a.m = 257, a.n = 8, a.k = 16;
         a.lda = a.ldb1 = a.ldb2 = 32;
         a.c = address(uintptr_t{1} << 56);
       }},
  });
}

TEST_CASE("K == 0 looks at the outputs only", "[host][validate]") {
  dualgemm_args_t args = valid_args();
  args.k = 0;
  args.a = args.b1 = args.b2 = args.sfa = args.sfb1 = args.sfb2 = nullptr;
  CHECK(ask(args) == DUALGEMM_STATUS_SUCCESS);
  args.a = args.c;
  args.lda = 3;
  CHECK(ask(args) == DUALGEMM_STATUS_SUCCESS);
  args.ldc = 130;
  CHECK(ask(args) == DUALGEMM_STATUS_INVALID_STRIDE);
  args.ldc = 0;
  args.c = address(0x2'8000'0008);
  CHECK(ask(args) == DUALGEMM_STATUS_MISALIGNED);
  args.c = nullptr;
  CHECK(ask(args) == DUALGEMM_STATUS_NULL_POINTER);
  args = valid_args();
  args.k = 0;
  args.bias1 = address(0x3'0000'0000);
  CHECK(ask(args) == DUALGEMM_STATUS_NOT_SUPPORTED);
}

TEST_CASE("K == 0 runs no kernel, whatever instance_id and max_sms are", "[host][validate]") {
  const dualgemm_device_t device = b200();
  for (int32_t id = 0; id <= dualgemm_instance_count(); ++id)
    for (const int32_t max_sms : {0, 1})
      for (const int32_t c_dtype : {DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP32, DUALGEMM_DTYPE_FP8_E4M3}) {
        dualgemm_args_t args = valid_args();
        args.k = 0;
        args.c_dtype = c_dtype;
        args.instance_id = id;
        args.max_sms = max_sms;
        int32_t selected = -1;
        CHECK(ask(args) == DUALGEMM_STATUS_SUCCESS);
        CHECK(dualgemm_select_instance(&args, &device, &selected) == DUALGEMM_STATUS_SUCCESS);
        CHECK(selected == 0);
      }
  for (const int32_t id : {-1, dualgemm_instance_count() + 1})
    check({{DUALGEMM_STATUS_INVALID_VALUE, "instance_id=", [=](auto& a) { a.k = 0, a.instance_id = id; }}});
}

TEST_CASE("the first violated rule decides", "[host][validate]") {
  // Everything is wrong at once; each step repairs what was reported.
  struct Step {
    dualgemm_status_t status;
    const char* text;
    Change repair;
  };
  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.struct_size = 0;
  args.flags = 1u << 30;
  args.group_mode = 9;
  args.n = 12;
  args.m = -3;
  args.k = 24;
  args.alpha1 = kNan;
  args.situ_up = 3;
  args.sfc = address(0x3'0000'0000);
  args.ldc = 9;
  args.instance_id = 99999;
  dualgemm_device_t device = {sizeof(dualgemm_device_t), 12, 0, 132, 12000, 3, "some GPU", 0, 0, 0};

  const dualgemm_args_t good = valid_args();
  const std::vector<Step> steps = {
      {DUALGEMM_STATUS_VERSION_MISMATCH, "struct_size=0", [](auto& a) { a.struct_size = sizeof a; }},
      {DUALGEMM_STATUS_INVALID_VALUE, "flags=", [](auto& a) { a.flags = 0; }},
      {DUALGEMM_STATUS_INVALID_VALUE, "group_mode=9", [](auto& a) { a.group_mode = DUALGEMM_GROUP_MASKED; }},
      {DUALGEMM_STATUS_INVALID_VALUE, "m=-3", [](auto& a) { a.m = 256; }},
      {DUALGEMM_STATUS_INVALID_VALUE, "groups=0", [](auto& a) { a.groups = 2, a.batch_stride_b1 = -32; }},
      {DUALGEMM_STATUS_INVALID_VALUE, "alpha1=nan", [](auto& a) { a.alpha1 = 1; }},
      {DUALGEMM_STATUS_INVALID_VALUE, "situ_up=3", [](auto& a) { a.situ_up = 25; }},
      {DUALGEMM_STATUS_INVALID_SHAPE, "k=24", [](auto& a) { a.k = 16; }},
      {DUALGEMM_STATUS_INVALID_SHAPE, "n=12", [](auto& a) { a.n = 16; }},
      {DUALGEMM_STATUS_NULL_POINTER, "a=NULL",
       [&](auto& a) {
         a.a = address(0x2'8000'0008);
         a.b1 = good.b1, a.b2 = good.b2, a.sfa = good.sfa, a.sfb1 = good.sfb1, a.sfb2 = good.sfb2,
         a.c = good.c;
       }},
      {DUALGEMM_STATUS_NULL_POINTER, "group_rows=NULL",
       [](auto& a) { a.group_rows = address<const int32_t>(0x2'c000'0000); }},
      {DUALGEMM_STATUS_INVALID_VALUE, "sfc=", [](auto& a) { a.sfc = nullptr; }},
      {DUALGEMM_STATUS_INVALID_STRIDE, "k=16", [](auto& a) { a.lda = a.ldb1 = a.ldb2 = 32; }},
      {DUALGEMM_STATUS_INVALID_STRIDE, "ldc=9", [](auto& a) { a.ldc = 0; }},
      {DUALGEMM_STATUS_INVALID_STRIDE, "batch_stride_b1=-32", [](auto& a) { a.batch_stride_b1 = 0; }},
      {DUALGEMM_STATUS_MISALIGNED, "a=0x280000008", [](auto& a) { a.a = a.c; }},
      {DUALGEMM_STATUS_ALIASING, "overlaps a", [&](auto& a) { a.a = good.a; }},
      {DUALGEMM_STATUS_INVALID_VALUE, "instance_id=99999", [](auto& a) { a.instance_id = 1; }},
      {DUALGEMM_STATUS_NOT_SUPPORTED, "instance_id=1: ", [](auto& a) { a.instance_id = 0; }},
  };
  for (const Step& step : steps) {
    INFO("expected: " << step.text);
    CHECK(dualgemm_can_implement_on(&args, &device) == step.status);
    INFO("actual: " << dualgemm_last_error());
    CHECK(std::string(dualgemm_last_error()).find(step.text) != std::string::npos);
    step.repair(args);
  }
  CHECK(dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_ARCH_MISMATCH);
  CHECK(std::string(dualgemm_last_error()) ==
        "cc_major=12, cc_minor=0: device 3 (some GPU), but the library is built for compute capability "
        "9.0, 10.x");
  device.cc_major = 10;
  CHECK(dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_DRIVER_TOO_OLD);
  device.driver_version = 13000;
  CHECK(dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_SUCCESS);
}

TEST_CASE("devices", "[host][validate]") {
  const dualgemm_args_t args = valid_args();
  dualgemm_device_t device = b200();
  SECTION("9.0 and the whole 10.x family are served, their neighbours are not") {
    for (const auto& [major, minor, served] :
         {std::array{10, 0, 1}, {10, 3, 1}, {9, 0, 1}, {9, 1, 0}, {11, 0, 0}, {12, 0, 0}, {8, 9, 0}}) {
      device.cc_major = major;
      device.cc_minor = minor;
      CHECK(dualgemm_can_implement_on(&args, &device) ==
            (served ? DUALGEMM_STATUS_SUCCESS : DUALGEMM_STATUS_ARCH_MISMATCH));
    }
  }
  SECTION("a name that fills its field needs no terminator") {
    device.cc_major = 12;
    for (char& c : device.name) c = 'x';
    CHECK(dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_ARCH_MISMATCH);
    CHECK(std::string(dualgemm_last_error()).find("(" + std::string(sizeof device.name, 'x') + ")") !=
          std::string::npos);
  }
  SECTION("a device without SMs is a mistake") {
    device.sm_count = 0;
    CHECK(dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_INVALID_VALUE);
    CHECK(std::string(dualgemm_last_error()) == "sm_count=0: must be in [1, 65535]");
  }
  SECTION("as is one with more SMs than the library counts") {
    for (const int32_t count : {65536, std::numeric_limits<int32_t>::max(), -1}) {
      device.sm_count = count;
      CHECK(dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_INVALID_VALUE);
      CHECK(std::string(dualgemm_last_error()) ==
            "sm_count=" + std::to_string(count) + ": must be in [1, 65535]");
    }
  }
  SECTION("any number of SMs that it counts will do, with no clusters, unknown ones or too many") {
    for (const int32_t count : {1, 2, 4, 65535})
      for (const int32_t clusters : {-1, 0, 1, std::numeric_limits<int32_t>::max()})
        for (int32_t id = 0; id <= dualgemm_instance_count(); ++id) {
          dualgemm_args_t forced = id > 0 ? dualgemm_test::forced(id, valid_args()) : valid_args();
          device.sm_count = count;
          device.clusters_of_2 = device.clusters_of_4 = clusters;
          forced.max_sms = count - 1;
          const dualgemm_status_t status = dualgemm_can_implement_on(&forced, &device);
          INFO(count << " SMs, instance " << id << ": " << dualgemm_last_error());
          CHECK((status == DUALGEMM_STATUS_SUCCESS || (id > 0 && status == DUALGEMM_STATUS_NOT_SUPPORTED)));
        }
  }
  SECTION("as is one with fewer than no clusters") {
    device.clusters_of_2 = -2;
    CHECK(dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_INVALID_VALUE);
    CHECK(std::string(dualgemm_last_error()) ==
          "clusters_of_2=-2, clusters_of_4=0: must be at least -1, which is none");
    device.clusters_of_2 = -1;
    device.clusters_of_4 = std::numeric_limits<int32_t>::min();
    CHECK(dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_INVALID_VALUE);
  }
  SECTION("the driver must know the CUDA major version of the build") {
    device.driver_version = 12090;
    CHECK(dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_DRIVER_TOO_OLD);
    CHECK(std::string(dualgemm_last_error())
              .find("driver_version=12090: supports CUDA 12.9, the library is built with CUDA ") == 0);
  }
}

TEST_CASE("a workspace makes a launch faster on 9.0, and is needed where such an instance is asked for",
          "[host][validate]") {
  dualgemm_args_t args = valid_args();
  args.m = 4096, args.n = 4096, args.k = 7168 + 32, args.c = address(uintptr_t{1} << 50);
  const size_t needed = size_t{4096} * (7168 + 256) * 2;
  const dualgemm_device_t h100 = dualgemm_test::h100();
  const auto selected = [&](const dualgemm_device_t& device) {
    int32_t id = 0;
    REQUIRE(dualgemm_select_instance(&args, &device, &id) == DUALGEMM_STATUS_SUCCESS);
    return id;
  };
  const int32_t without = selected(h100), on_b200 = selected(b200());
  CHECK(!dualgemm::instance(without - 1).plan.prepared_a());
  args.workspace = address(uintptr_t{1} << 52);
  for (const size_t size : {needed - 1, needed, needed + 1}) {
    args.workspace_size = size;
    for (const uint32_t flags : {0u, uint32_t{DUALGEMM_FLAG_BATCH_INVARIANT}}) {
      args.flags = flags;
      CHECK(dualgemm::instance(selected(h100) - 1).plan.prepared_a() == (size >= needed));
    }
    args.flags = 0;
    CHECK(selected(b200()) == on_b200);
  }
  args.flags = 0;
  args.workspace_size = needed - 1;
  for (const int32_t id : dualgemm_test::launched_ids()) {
    const dualgemm::Instance& instance = dualgemm::instance(id - 1);
    if (!instance.plan.prepared_a() || instance.plan.tile.grouped) continue;
    if (instance.plan.tile.stream_k) continue;  // it needs more (stream_k_test.cpp)
    dualgemm_args_t forced = dualgemm_test::forced(id, args);
    CHECK(dualgemm_can_implement_on(&forced, &h100) == DUALGEMM_STATUS_WORKSPACE_TOO_SMALL);
    CHECK(std::string(dualgemm_last_error()) == "instance_id=" + std::to_string(id) + ": " + instance.name +
                                                    " needs workspace_size=" + std::to_string(needed) +
                                                    ", not workspace_size=" + std::to_string(needed - 1));
    forced.workspace_size = needed;
    CHECK(dualgemm_can_implement_on(&forced, &h100) == DUALGEMM_STATUS_SUCCESS);
  }
}

TEST_CASE("refused launches report the same as the question", "[host][validate]") {
  dualgemm_args_t args = valid_args();
  args.k = 1000;
  CHECK(dualgemm_launch_ex(&args, nullptr) == DUALGEMM_STATUS_INVALID_SHAPE);
  CHECK(std::string(dualgemm_last_error()) == "k=1000: must be a multiple of 16");
  CHECK(dualgemm_launch(args.a, args.b1, args.b2, args.sfa, args.sfb1, args.sfb2, args.c, 256, 128, 464, 1, 1,
                        DUALGEMM_DTYPE_FP16, nullptr) == DUALGEMM_STATUS_INVALID_STRIDE);
  CHECK(dualgemm_launch(args.a, args.b1, args.b2, args.sfa, args.sfb1, args.sfb2, args.c, 256, 128, 512, 1, 1,
                        DUALGEMM_DTYPE_NVFP4, nullptr) == DUALGEMM_STATUS_NULL_POINTER);
  size_t bytes = 77;
  CHECK(dualgemm_workspace_size(&args, &bytes) == DUALGEMM_STATUS_INVALID_SHAPE);
  CHECK(bytes == 77);
  args.k = 512;
  CHECK(dualgemm_workspace_size(&args, &bytes) == DUALGEMM_STATUS_SUCCESS);
  CHECK(bytes == 0);
  CHECK(dualgemm_workspace_size(&args, nullptr) == DUALGEMM_STATUS_NULL_POINTER);
}

}  // namespace validate_test
