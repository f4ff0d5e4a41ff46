// conversion_test.cpp -- the structures of what moves factors and quantises: where their fields stand, their
// defaults, sizes older and newer than the library's, and every rule, with one status and one text, which the
// functions of the device and their twins on the host share.
#include <cstddef>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "arguments.h"
#include "host/convert/conversion.h"
#include "host/include/dualgemm.h"
#include "overlap.h"
#include "support/catch.hpp"

namespace conversion_test {

using namespace dualgemm_test;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Each tensor has a gigabyte of its own.
dualgemm_sf_args_t valid_sf_args() {
  dualgemm_sf_args_t args;
  dualgemm_sf_args_init(&args);
  args.rows = 300;
  args.k = 512;
  args.src = address(0x1'0000'0000);
  args.dst = address(0x1'4000'0000);
  return args;
}

dualgemm_quantize_args_t valid_quantize_args() {
  dualgemm_quantize_args_t args;
  dualgemm_quantize_args_init(&args);
  args.rows = 300;
  args.k = 512;
  args.x = address(0x1'0000'0000);
  args.q = address(0x1'4000'0000);
  args.sf = address(0x1'8000'0000);
  return args;
}

template <class Args>
struct Rule {
  dualgemm_status_t status;
  const char* text;
  std::function<void(Args&)> break_it;
};
using SfRule = Rule<dualgemm_sf_args_t>;
using QuantizeRule = Rule<dualgemm_quantize_args_t>;

// Each function refuses what breaks a rule with the same status and text.
template <class Args>
void check(const std::vector<Rule<Args>>& rules, const Args& good,
           const std::vector<std::function<dualgemm_status_t(const Args*)>>& functions) {
  for (const Rule<Args>& rule : rules) {
    Args args = good;
    rule.break_it(args);
    for (const auto& function : functions) {
      INFO("expected text: " << rule.text);
      CHECK(std::string(dualgemm_status_name(function(&args))) == dualgemm_status_name(rule.status));
      CHECK(std::string(dualgemm_last_error()).find(rule.text) != std::string::npos);
      INFO("actual text: " << dualgemm_last_error());
      CHECK(std::string(dualgemm_last_error()).size() > 0);
    }
  }
}

dualgemm_status_t swizzle(const dualgemm_sf_args_t* args) noexcept {
  return dualgemm_sf_swizzle(args, nullptr);
}
dualgemm_status_t unswizzle(const dualgemm_sf_args_t* args) noexcept {
  return dualgemm_sf_unswizzle(args, nullptr);
}
dualgemm_status_t quantize(const dualgemm_quantize_args_t* args) noexcept {
  return dualgemm_quantize(args, nullptr);
}

constexpr auto kValue = DUALGEMM_STATUS_INVALID_VALUE;
constexpr auto kStride = DUALGEMM_STATUS_INVALID_STRIDE;
constexpr auto kNull = DUALGEMM_STATUS_NULL_POINTER;

template <class Args>
void make_offsets(Args& args) {
  args.group_mode = DUALGEMM_GROUP_OFFSETS;
  args.groups = 3;
  args.group_rows = address<const int32_t>(0x2'0000'0000);
}

}  // namespace

TEST_CASE("conversions: defaults, and structures of other sizes", "[host][conversion][abi]") {
  struct {
    dualgemm_quantize_args_t known;
    unsigned char unknown[8];
  } newer;
  std::memset(&newer, 0xFF, sizeof newer);
  dualgemm_quantize_args_init_sized(&newer.known, sizeof newer);
  CHECK(newer.known.struct_size == sizeof newer);
  CHECK(newer.known.x_dtype == DUALGEMM_DTYPE_BF16);
  CHECK(newer.known.scale_mode == DUALGEMM_SCALE_GIVEN);
  CHECK(newer.known.global_scale == 1);
  CHECK(newer.known.q_dtype == DUALGEMM_DTYPE_NVFP4);
  CHECK(newer.known.x == nullptr);
  CHECK(newer.unknown[7] == 0);
  CHECK(dualgemm_quantize_host_ex(&newer.known) == DUALGEMM_STATUS_SUCCESS);  // no rows
  newer.unknown[7] = 1;
  CHECK(dualgemm_quantize_host_ex(&newer.known) == DUALGEMM_STATUS_VERSION_MISMATCH);
  CHECK(std::string(dualgemm_last_error()) ==
        "struct_size=184: byte 183 is set, but this library knows only 176 bytes");
  newer.known.struct_size = 152;  // that of 0.2.0, with anything after it
  newer.known.x_rows = -5;
  newer.known.q_dtype = -5;
  CHECK(dualgemm_quantize_host_ex(&newer.known) == DUALGEMM_STATUS_SUCCESS);
  newer.known.struct_size = 151;
  CHECK(dualgemm_quantize_host_ex(&newer.known) == DUALGEMM_STATUS_VERSION_MISMATCH);
  dualgemm_sf_args_t args = valid_sf_args();
  args.struct_size = 79;
  CHECK(dualgemm_sf_swizzle_host(&args) == DUALGEMM_STATUS_VERSION_MISMATCH);
  CHECK(dualgemm_sf_swizzle(nullptr, nullptr) == kNull);
  CHECK(dualgemm_quantize(nullptr, nullptr) == kNull);
  CHECK(std::string(dualgemm_last_error()) == "args=NULL: must point to a dualgemm_quantize_args_t");
  dualgemm_sf_args_init(nullptr);
  dualgemm_quantize_args_init(nullptr);
}

TEST_CASE("conversions: nothing is looked at where there is nothing to do", "[host][conversion]") {
  for (const bool no_rows : {true, false}) {
    dualgemm_sf_args_t args;
    dualgemm_sf_args_init(&args);
    (no_rows ? args.k : args.rows) = 48;
    for (const auto function : {swizzle, unswizzle, dualgemm_sf_swizzle_host, dualgemm_sf_unswizzle_host})
      CHECK(function(&args) == DUALGEMM_STATUS_SUCCESS);
    dualgemm_quantize_args_t quantize_args;
    dualgemm_quantize_args_init(&quantize_args);
    (no_rows ? quantize_args.k : quantize_args.rows) = 48;
    for (const auto function : {quantize, dualgemm_quantize_host_ex})
      CHECK(function(&quantize_args) == DUALGEMM_STATUS_SUCCESS);
    CHECK(std::string(dualgemm_last_error()).empty());
  }
}

TEST_CASE("conversions: what moving factors refuses", "[host][conversion]") {
  const std::vector<SfRule> rules = {
      {kValue, "flags=0x2: must be 0 or DUALGEMM_FLAG_PDL (0x1), nothing else",
       [](auto& a) { a.flags = DUALGEMM_FLAG_STATIC_WEIGHTS; }},
      {kValue, "flags=0x9: must be 0 or DUALGEMM_FLAG_PDL (0x1), nothing else",
       [](auto& a) { a.flags = DUALGEMM_FLAG_CHECK_POINTERS | DUALGEMM_FLAG_PDL; }},
      {kValue, "group_mode=3: must be in [0, 2]", [](auto& a) { a.group_mode = 3; }},
      {kValue, "reserved0=1: must be in [0, 0]", [](auto& a) { a.reserved0 = 1; }},
      {kValue, "rows=-1: must not be negative", [](auto& a) { a.rows = -1; }},
      {kValue, "k=-16: must not be negative", [](auto& a) { a.k = -16; }},
      {kValue, "batch=-1: must not be negative", [](auto& a) { a.batch = -1; }},
      {kValue, "groups=2: must be 0 without a group_mode", [](auto& a) { a.groups = 2; }},
      {kValue, "group_rows=", [](auto& a) { a.group_rows = address<const int32_t>(64); }},
      {kValue, "groups=0: must be in [1, 1024] with a group_mode", [](auto& a) { a.group_mode = 1; }},
      {kValue, "batch=2: must be 0 or 1 with a group_mode",
       [](auto& a) {
         a.group_mode = 2;
         a.groups = 1;
         a.batch = 2;
       }},
      {DUALGEMM_STATUS_INVALID_SHAPE, "k=24: must be a multiple of 16", [](auto& a) { a.k = 24; }},
      {kNull, "src=NULL: must not be NULL", [](auto& a) { a.src = nullptr; }},
      {kNull, "dst=NULL: must not be NULL", [](auto& a) { a.dst = nullptr; }},
      {kNull, "group_rows=NULL: must not be NULL",
       [](auto& a) {
         a.group_mode = 2;
         a.groups = 1;
       }},
      {kStride, "pitch=31: must be at least k/16=32", [](auto& a) { a.pitch = 31; }},
      {kStride, "pitch=-1: must be at least k/16=32", [](auto& a) { a.pitch = -1; }},
      {kStride, "300 rows must take less than 2^48 bytes", [](auto& a) { a.pitch = int64_t{1} << 40; }},
      {DUALGEMM_STATUS_ALIASING, "overlaps", [](auto& a) { a.dst = const_cast<void*>(a.src); }},
  };
  check<dualgemm_sf_args_t>(rules, valid_sf_args(),
                            {swizzle, unswizzle, dualgemm_sf_swizzle_host, dualgemm_sf_unswizzle_host});

  // What concerns one direction: the side of the atoms is aligned.
  check<dualgemm_sf_args_t>({{kValue, "batch_stride_src=7: must be 0 with group_mode=1 (OFFSETS)",
                              [](auto& a) {
                                make_offsets(a);
                                a.batch_stride_src = 7;
                              }},
                             {kStride, "batch_stride_dst=12289: must be a multiple of 16",
                              [](auto& a) {
                                a.batch = 2;
                                a.batch_stride_dst = 12289;
                              }},
                             {kStride, "batch_stride_src=9599: must be at least 9600, one problem",
                              [](auto& a) {
                                a.batch = 2;
                                a.batch_stride_src = 9599;
                              }},
                             {DUALGEMM_STATUS_MISALIGNED, "dst=0x140000001: must be 16-byte aligned",
                              [](auto& a) { a.dst = address(0x1'4000'0001); }},
                             {DUALGEMM_STATUS_ALIASING, "dst=0x102000000: overlaps group_rows=0x102000000",
                              [](auto& a) {
                                a.group_mode = 2;
                                a.groups = 1;
                                a.dst = address(0x1'0200'0000);
                                a.group_rows = address<const int32_t>(0x1'0200'0000);
                              }}},
                            valid_sf_args(), {swizzle, dualgemm_sf_swizzle_host});
  check<dualgemm_sf_args_t>({{DUALGEMM_STATUS_MISALIGNED, "src=0x100000001: must be 16-byte aligned",
                              [](auto& a) { a.src = address(0x1'0000'0001); }}},
                            valid_sf_args(), {unswizzle, dualgemm_sf_unswizzle_host});
}

TEST_CASE("conversions: group_rows is a pointer among the others, of which no rows ask for none",
          "[host][conversion]") {
  const auto* const stray = address<const int32_t>(0x3'0000'0000);
  dualgemm_sf_args_t move = valid_sf_args();
  dualgemm_quantize_args_t quantise = valid_quantize_args();
  move.group_rows = quantise.group_rows = stray;
  const std::string absent = "group_rows=0x300000000: must be NULL without a group_mode";
  const auto refused = [&](dualgemm_status_t status, const std::string& text) {
    return status == DUALGEMM_STATUS_INVALID_VALUE && dualgemm_last_error() == text;
  };
  CHECK(refused(dualgemm_sf_swizzle_host(&move), absent));
  CHECK(refused(dualgemm_quantize_host_ex(&quantise), absent));
  move.src = nullptr;
  quantise.sf = nullptr;
  CHECK(dualgemm_sf_swizzle_host(&move) == kNull);
  CHECK(dualgemm_quantize_host_ex(&quantise) == kNull);
  move.rows = quantise.rows = 0;
  CHECK(dualgemm_sf_swizzle_host(&move) == DUALGEMM_STATUS_SUCCESS);
  CHECK(dualgemm_quantize_host_ex(&quantise) == DUALGEMM_STATUS_SUCCESS);
}

TEST_CASE("conversions: what quantising refuses", "[host][conversion]") {
  const std::vector<QuantizeRule> rules = {
      {kValue, "flags=0x8: must be 0 or DUALGEMM_FLAG_PDL (0x1), nothing else",
       [](auto& a) { a.flags = DUALGEMM_FLAG_CHECK_POINTERS; }},
      {kValue, "x_dtype=3: must be in [0, 2]", [](auto& a) { a.x_dtype = DUALGEMM_DTYPE_NVFP4; }},
      {kValue, "q_dtype=0 (BF16): must be 3 (NVFP4) or 4 (FP8_E4M3)",
       [](auto& a) { a.q_dtype = DUALGEMM_DTYPE_BF16; }},
      {kValue, "q_dtype=-1 (unknown): must be 3 (NVFP4) or 4 (FP8_E4M3)", [](auto& a) { a.q_dtype = -1; }},
      {kValue, "scale_mode=3: must be in [0, 2]", [](auto& a) { a.scale_mode = 3; }},
      {kValue, "rows=-1: must not be negative", [](auto& a) { a.rows = -1; }},
      {kValue, "groups=1025: must be in [1, 1024]",
       [](auto& a) {
         a.group_mode = 1;
         a.groups = 1025;
       }},
      {kValue, "global_scale=0: must be above 0", [](auto& a) { a.global_scale = 0; }},
      {kValue, "global_scale=nan: must be above 0", [](auto& a) { a.global_scale = kNan; }},
      {kValue, "at most the largest float over 512", [](auto& a) { a.global_scale = 1e36f; }},
      {kValue, "global_scale=2: must be 1 unless scale_mode is GIVEN",
       [](auto& a) {
         a.scale_mode = DUALGEMM_SCALE_ROW;
         a.global_scale = 2;
       }},
      {kValue, "global_scale_stride=-1: must not be negative", [](auto& a) { a.global_scale_stride = -1; }},
      {DUALGEMM_STATUS_INVALID_SHAPE, "k=8: must be a multiple of 16", [](auto& a) { a.k = 8; }},
      {kNull, "x=NULL", [](auto& a) { a.x = nullptr; }},
      {kNull, "q=NULL", [](auto& a) { a.q = nullptr; }},
      {kNull, "sf=NULL", [](auto& a) { a.sf = nullptr; }},
      {kNull, "group_rows=NULL",
       [](auto& a) {
         make_offsets(a);
         a.group_rows = nullptr;
       }},
      {kNull, "tensor_scales=NULL", [](auto& a) { a.scale_mode = DUALGEMM_SCALE_TENSOR; }},
      {kNull, "row_scale=NULL", [](auto& a) { a.scale_mode = DUALGEMM_SCALE_ROW; }},
      {kValue, "tensor_scales=0x40: must be NULL unless scale_mode is TENSOR",
       [](auto& a) { a.tensor_scales = address<float>(64); }},
      {kValue, "row_scale=0x40: must be NULL unless scale_mode is ROW",
       [](auto& a) { a.row_scale = address<float>(64); }},
      {kValue, "global_scale_dev=0x40: must be NULL unless scale_mode is GIVEN",
       [](auto& a) {
         a.scale_mode = DUALGEMM_SCALE_ROW;
         a.row_scale = address<float>(0x1'c000'0000);
         a.global_scale_dev = address<float>(64);
       }},
      {kValue, "global_scale_stride=1: must be 0 where global_scale_dev is NULL",
       [](auto& a) { a.global_scale_stride = 1; }},
      {kValue, "batch_stride_row_scale=300: must be 0 where row_scale is NULL",
       [](auto& a) { a.batch_stride_row_scale = 300; }},
      {kValue, "batch_stride_sf=-3: must be 0 with group_mode=1 (OFFSETS)",
       [](auto& a) {
         make_offsets(a);
         a.batch_stride_sf = -3;
       }},
      {kValue, "reserved0=1: must be in [0, 0]", [](auto& a) { a.reserved0 = 1; }},
      {kValue, "reserved1=1: must be in [0, 0]", [](auto& a) { a.reserved1 = 1; }},
      {kValue, "x_rows=4: must be 0 where row_index is NULL", [](auto& a) { a.x_rows = 4; }},
      {kValue, "x_rows=0: must be in [1, 2147482624] with a row_index",
       [](auto& a) { a.row_index = address<const int32_t>(0x2'4000'0000); }},
      {DUALGEMM_STATUS_NOT_SUPPORTED,
       "row_index=0x240000000: must be NULL with batch=2 and group_mode=0 (NONE): the rows have to lie in one "
       "matrix",
       [](auto& a) {
         a.row_index = address<const int32_t>(0x2'4000'0000);
         a.x_rows = 4;
         a.batch = 2;
       }},
      {DUALGEMM_STATUS_NOT_SUPPORTED,
       "row_index=0x240000000: must be NULL with batch=0 and group_mode=2 (MASKED)",
       [](auto& a) {
         make_offsets(a);
         a.group_mode = DUALGEMM_GROUP_MASKED;
         a.row_index = address<const int32_t>(0x2'4000'0000);
         a.x_rows = 4;
       }},
      {DUALGEMM_STATUS_MISALIGNED, "row_index=0x240000002: must be 4-byte aligned",
       [](auto& a) {
         a.row_index = address<const int32_t>(0x2'4000'0002);
         a.x_rows = 4;
       }},
      {kStride, "k=48: rows must start at multiples of 16 bytes, pass ldq >= 64", [](auto& a) { a.k = 48; }},
      {kStride, "ldx=511: must be at least k=512", [](auto& a) { a.ldx = 511; }},
      {kStride, "ldx=516: must be a multiple of 8", [](auto& a) { a.ldx = 516; }},
      {kStride, "ldx=518: must be a multiple of 4",
       [](auto& a) {
         a.x_dtype = DUALGEMM_DTYPE_FP32;
         a.ldx = 518;
       }},
      {kStride, "ldq=528: must be a multiple of 32", [](auto& a) { a.ldq = 528; }},
      {kStride, "batch_stride_x=8: must be at least",
       [](auto& a) {
         a.batch = 2;
         a.batch_stride_x = 8;
       }},
      {kStride, "batch_stride_row_scale=299: must be at least 300, one problem",
       [](auto& a) {
         a.batch = 2;
         a.scale_mode = DUALGEMM_SCALE_ROW;
         a.row_scale = address<float>(0x1'c000'0000);
         a.batch_stride_row_scale = 299;
       }},
      {DUALGEMM_STATUS_MISALIGNED, "x=0x100000008: must be 16-byte aligned",
       [](auto& a) { a.x = address(0x1'0000'0008); }},
      {DUALGEMM_STATUS_MISALIGNED, "q=0x140000008: must be 16-byte aligned",
       [](auto& a) { a.q = address(0x1'4000'0008); }},
      {DUALGEMM_STATUS_MISALIGNED, "sf=0x180000004: must be 16-byte aligned",
       [](auto& a) { a.sf = address(0x1'8000'0004); }},
      {DUALGEMM_STATUS_MISALIGNED, "tensor_scales=0x1c0000002: must be 4-byte aligned",
       [](auto& a) {
         a.scale_mode = DUALGEMM_SCALE_TENSOR;
         a.tensor_scales = address<float>(0x1'c000'0002);
       }},
      {DUALGEMM_STATUS_ALIASING, "q=0x100000000: overlaps x=0x100000000",
       [](auto& a) { a.q = const_cast<void*>(a.x); }},
      {DUALGEMM_STATUS_ALIASING, "q=0x140000000: overlaps sf=0x140000000", [](auto& a) { a.sf = a.q; }},
      {DUALGEMM_STATUS_NOT_SUPPORTED, "rows=2147483647: at most 2147482624",
       [](auto& a) {
         a.rows = 2147483647;
         a.k = 32;
         a.x = address(0x10'0000'0000'0000);
         a.q = address(0x20'0000'0000'0000);
         a.sf = address(0x30'0000'0000'0000);
       }},
      {DUALGEMM_STATUS_NOT_SUPPORTED, "k=2147483632: at most 2147482624",
       [](auto& a) {
         a.rows = 1;
         a.k = 2147483632;
         a.x = address(0x10'0000'0000'0000);
         a.q = address(0x20'0000'0000'0000);
         a.sf = address(0x30'0000'0000'0000);
         a.ldx = 2147483632;
         a.ldq = 2147483648;
       }},
      {DUALGEMM_STATUS_NOT_SUPPORTED, "blocks of 128 rows with 2048 tiles each, at most 2^31-1",
       [](auto& a) {
         a.rows = 150000000;
         a.k = 131072;
         a.x = address(0x10'0000'0000'0000);
         a.q = address(0x20'0000'0000'0000);
         a.sf = address(0x30'0000'0000'0000);
       }},
  };
  check<dualgemm_quantize_args_t>(rules, valid_quantize_args(), {quantize, dualgemm_quantize_host_ex});
}

TEST_CASE("conversions: what quantising to FP8 refuses", "[host][conversion]") {
  dualgemm_quantize_args_t good = valid_quantize_args();
  good.q_dtype = DUALGEMM_DTYPE_FP8_E4M3;
  good.sf = nullptr;
  good.k = 528;  // a multiple of 16, the bytes of a row, too
  check<dualgemm_quantize_args_t>(
      {{kValue, "sf=0x180000000: must be NULL with q_dtype=4 (FP8_E4M3)",
        [](auto& a) { a.sf = address(0x1'8000'0000); }},
       {kValue, "batch_stride_sf=16: must be 0 where sf is NULL",
        [](auto& a) {
          a.batch = 2;
          a.batch_stride_sf = 16;
        }},
       {DUALGEMM_STATUS_INVALID_SHAPE, "k=520: must be a multiple of 16", [](auto& a) { a.k = 520; }},
       {kNull, "q=NULL", [](auto& a) { a.q = nullptr; }},
       {kNull, "row_scale=NULL", [](auto& a) { a.scale_mode = DUALGEMM_SCALE_ROW; }},
       {kStride, "ldq=512: must be at least k=528", [](auto& a) { a.ldq = 512; }},
       {kStride, "ldq=536: must be a multiple of 16", [](auto& a) { a.ldq = 536; }},
       {kStride, "batch_stride_q=158384: must be at least 158400, one problem",
        [](auto& a) {
          a.batch = 2;
          a.batch_stride_q = 158384;
        }},
       {DUALGEMM_STATUS_MISALIGNED, "q=0x140000008: must be 16-byte aligned",
        [](auto& a) { a.q = address(0x1'4000'0008); }},
       // q is twice as large as in NVFP4.
       {DUALGEMM_STATUS_ALIASING, "q=0x140000000: overlaps row_scale=0x140026000",
        [](auto& a) {
          a.scale_mode = DUALGEMM_SCALE_ROW;
          a.row_scale = address<float>(0x1'4002'6000);
        }},
       {DUALGEMM_STATUS_NOT_SUPPORTED,
        "rows=2147482624: 16777208 blocks of 128 rows with 256 tiles each, at most",
        [](auto& a) {
          a.rows = 2147482624;
          a.k = 16384;
          a.x = address(0x10'0000'0000'0000);
          a.q = address(0x20'0000'0000'0000);
          a.scale_mode = DUALGEMM_SCALE_TENSOR;
          a.tensor_scales = address<float>(0x30'0000'0000'0000);
        }}},
      good, {quantize, dualgemm_quantize_host_ex});
  dualgemm::Quantization quantization;
  CHECK(dualgemm::validate(&good, &quantization) == DUALGEMM_STATUS_SUCCESS);
}

namespace {

// Three problems of up to 300 rows each: a batch, groups by counts, or groups by offsets, which have 300 rows
// together. The host is certain of so many rows and blocks of 128 rows. `entries` are of group_rows.
struct Problems {
  int32_t mode;
  uintptr_t rows, blocks, entries;
};
constexpr Problems kProblems[] = {{DUALGEMM_GROUP_NONE, 3 * 300, 3 * 3, 0},
                                  {DUALGEMM_GROUP_MASKED, 3 * 300, 3 * 3, 3},
                                  {DUALGEMM_GROUP_OFFSETS, 300, 1, 3 + 1}};
constexpr uintptr_t kColumns = 512;

template <class Args>
Args with_problems(Args args, const Problems& problems) {
  args.group_mode = problems.mode;
  if (problems.mode == DUALGEMM_GROUP_NONE) {
    args.batch = 3;
  } else {
    args.groups = 3;
    args.group_rows = address<const int32_t>(0x2'0000'0000);
  }
  return args;
}

template <class Args>
void add_group_rows(std::vector<Part<Args>>& parts, const Problems& problems) {
  if (problems.entries > 0)
    parts.push_back({"group_rows", problems.entries * 4, 4, false, put<&Args::group_rows>});
}

void check_factor_pairs(const Problems& problems) {
  using Sf = dualgemm_sf_args_t;
  const uintptr_t linear = problems.rows * kColumns / 16, atoms = problems.blocks * 128 * kColumns / 16;
  for (const bool to_atoms : {true, false}) {
    std::vector<Part<Sf>> parts = {
        {"dst", to_atoms ? atoms : linear, uintptr_t{to_atoms ? 16u : 1u}, true, put<&Sf::dst>},
        {"src", to_atoms ? linear : atoms, uintptr_t{to_atoms ? 1u : 16u}, false, put<&Sf::src>}};
    add_group_rows(parts, problems);
    check_pairs(with_problems(valid_sf_args(), problems), parts, [&](const Sf& args) {
      dualgemm::FactorConversion conversion;
      return dualgemm::validate(&args, to_atoms, &conversion);
    });
  }
}

void check_quantize_pairs(const Problems& problems, int32_t scale_mode, int32_t q_dtype) {
  using Q = dualgemm_quantize_args_t;
  Q q = with_problems(valid_quantize_args(), problems);
  q.scale_mode = scale_mode;
  q.q_dtype = q_dtype;
  const bool fp8 = q_dtype == DUALGEMM_DTYPE_FP8_E4M3;
  std::vector<Part<Q>> parts = {{"q", problems.rows * kColumns / (fp8 ? 1 : 2), 16, true, put<&Q::q>}};
  if (fp8) q.sf = nullptr;
  else parts.push_back({"sf", problems.blocks * 128 * kColumns / 16, 16, true, put<&Q::sf>});
  if (scale_mode == DUALGEMM_SCALE_TENSOR) {
    q.tensor_scales = address<float>(0x2'2000'0000);
    parts.push_back({"tensor_scales", 3 * 4, 4, true, put<&Q::tensor_scales>});
  }
  if (scale_mode == DUALGEMM_SCALE_ROW) {
    q.row_scale = address<float>(0x2'3000'0000);
    parts.push_back({"row_scale", problems.rows * 4, 4, true, put<&Q::row_scale>});
  }
  uintptr_t x_rows = problems.rows;
  if (problems.mode == DUALGEMM_GROUP_OFFSETS) {  // the rows of x are gathered
    q.x_rows = 40;
    x_rows = 40;
    q.row_index = address<const int32_t>(0x2'4000'0000);
    parts.push_back({"row_index", problems.rows * 4, 4, false, put<&Q::row_index>});
  }
  parts.push_back({"x", x_rows * kColumns * 2, 16, false, put<&Q::x>});
  if (scale_mode == DUALGEMM_SCALE_GIVEN) {
    q.global_scale_dev = address<const float>(0x2'1000'0000);
    q.global_scale_stride = 1;
    parts.push_back({"global_scale_dev", 3 * 4, 4, false, put<&Q::global_scale_dev>});
  }
  add_group_rows(parts, problems);
  check_pairs(q, parts, [](const Q& args) {
    dualgemm::Quantization quantization;
    return dualgemm::validate(&args, &quantization);
  });
}

}  // namespace

TEST_CASE("conversions: no output overlaps an input or another output", "[host][conversion]") {
  for (const Problems& problems : kProblems) {
    INFO("group_mode " << problems.mode);
    check_factor_pairs(problems);
    for (const int32_t mode : {DUALGEMM_SCALE_GIVEN, DUALGEMM_SCALE_TENSOR, DUALGEMM_SCALE_ROW})
      for (const int32_t q_dtype : {DUALGEMM_DTYPE_NVFP4, DUALGEMM_DTYPE_FP8_E4M3})
        check_quantize_pairs(problems, mode, q_dtype);
  }
}

TEST_CASE("conversions: a tensor ends within the addresses that there are", "[host][conversion]") {
  const auto value = DUALGEMM_STATUS_INVALID_VALUE;
  check<dualgemm_sf_args_t>({{value, "src=0xffffffffffffda81: its 9600 bytes reach beyond the last address",
                              [](auto& a) { a.src = address(uintptr_t{0} - 9599); }},
                             {value, "dst=0xffffffffffffd010: its 12288 bytes reach beyond the last address",
                              [](auto& a) { a.dst = address(uintptr_t{0} - 0x2ff0); }}},
                            valid_sf_args(), {swizzle, dualgemm_sf_swizzle_host});
}

}  // namespace conversion_test
