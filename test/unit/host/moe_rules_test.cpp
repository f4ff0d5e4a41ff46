// moe_rules_test.cpp -- the structures around a layer of experts: where their fields stand, their defaults,
// and every rule, with one status and one text, which the functions of the device and their twins on the host
// share.
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "arguments.h"
#include "host/convert/moe.h"
#include "host/include/dualgemm.h"
#include "overlap.h"
#include "support/catch.hpp"

namespace moe_rules_test {

using namespace dualgemm_test;

namespace {

using Permute = dualgemm_moe_permute_args_t;
using Gather = dualgemm_moe_gather_args_t;
using Combine = dualgemm_moe_combine_args_t;

constexpr auto kValue = DUALGEMM_STATUS_INVALID_VALUE;
constexpr auto kStride = DUALGEMM_STATUS_INVALID_STRIDE;
constexpr auto kNull = DUALGEMM_STATUS_NULL_POINTER;
constexpr auto kMisaligned = DUALGEMM_STATUS_MISALIGNED;
constexpr auto kAliasing = DUALGEMM_STATUS_ALIASING;
constexpr auto kGood = DUALGEMM_STATUS_SUCCESS;

// Each array has a gigabyte of its own.
Permute valid_permute() {
  Permute args;
  dualgemm_moe_permute_args_init(&args);
  args.tokens = 10, args.top_k = 4, args.experts = 6;
  args.topk_ids = address<const int32_t>(0x1'0000'0000);
  args.topk_weights = address<const float>(0x1'4000'0000);
  args.group_rows = address<int32_t>(0x1'8000'0000);
  args.row_token = address<int32_t>(0x1'c000'0000);
  args.token_row = address<int32_t>(0x2'0000'0000);
  args.row_weight = address<float>(0x2'4000'0000);
  return args;
}

Gather valid_gather() {
  Gather args;
  dualgemm_moe_gather_args_init(&args);
  args.rows = 40, args.k = 64, args.x_rows = 10;
  args.row_index = address<const int32_t>(0x1'0000'0000);
  args.x = address(0x1'4000'0000);
  args.out = address(0x1'8000'0000);
  return args;
}

Combine valid_combine() {
  Combine args;
  dualgemm_moe_combine_args_init(&args);
  args.tokens = 10, args.top_k = 4, args.n = 64;
  args.token_row = address<const int32_t>(0x1'0000'0000);
  args.c = address(0x1'4000'0000);
  args.add = address(0x1'8000'0000);
  args.out = address(0x1'c000'0000);
  args.topk_weights = address<const float>(0x2'0000'0000);
  return args;
}

// With room for more than a gigabyte.
void put_far_apart(Combine& args) {
  args.c = address(uintptr_t{1} << 48);
  args.out = address(uintptr_t{2} << 48);
  args.add = nullptr;
}
void put_far_apart(Gather& args) {
  args.x = address(uintptr_t{1} << 48);
  args.out = address(uintptr_t{2} << 48);
}

template <class Args>
struct Rule {
  dualgemm_status_t status;
  const char* text;
  std::function<void(Args&)> break_it;
};

template <class Args, class Device, class Host>
void check(const Args& good, const std::vector<Rule<Args>>& rules, Device device, Host host) {
  for (const Rule<Args>& rule : rules) {
    Args args = good;
    rule.break_it(args);
    INFO("expected text: " << rule.text);
    for (const bool on_host : {false, true}) {
      const dualgemm_status_t status = on_host ? host(&args) : device(&args, nullptr);
      INFO("actual text: " << dualgemm_last_error());
      CHECK(std::string(dualgemm_status_name(status)) == dualgemm_status_name(rule.status));
      CHECK(std::string(dualgemm_last_error()).find(rule.text) == 0);
    }
  }
}

// The memory of what breaks no rule is not there: the rules alone look at it.
template <class Checked, class Args>
dualgemm_status_t asked(const Args& args) {
  Checked checked;
  return dualgemm::validate(&args, &checked);
}

}  // namespace

TEST_CASE("moe: nothing is looked at where there is nothing to do", "[host][moe]") {
  Permute permute;
  dualgemm_moe_permute_args_init(&permute);
  permute.experts = 1;
  Combine combine;
  dualgemm_moe_combine_args_init(&combine);
  for (int i = 0; i < 3; ++i) {
    permute.tokens = combine.tokens = i == 0 ? 0 : 5;
    permute.top_k = combine.top_k = i == 1 ? 0 : 5;
    combine.n = i == 2 ? 0 : 5;
    CHECK(dualgemm_moe_combine(&combine, nullptr) == kGood);
    CHECK(dualgemm_moe_combine_host(&combine) == kGood);
    if (i == 2) break;
    CHECK(dualgemm_moe_permute(&permute, nullptr) == kGood);
    CHECK(dualgemm_moe_permute_host(&permute) == kGood);
  }
  // Of k, which is no multiple of 8, of x_rows, 0, and of the pointers nothing is said.
  Gather gather;
  dualgemm_moe_gather_args_init(&gather);
  CHECK(gather.x_dtype == DUALGEMM_DTYPE_BF16);
  for (const bool no_rows : {false, true}) {
    gather.rows = no_rows ? 0 : 5;
    gather.k = no_rows ? 5 : 0;
    CHECK(dualgemm_moe_gather(&gather, nullptr) == kGood);
    CHECK(dualgemm_moe_gather_host(&gather) == kGood);
  }
  CHECK(dualgemm_moe_gather(nullptr, nullptr) == kNull);
  CHECK(std::string(dualgemm_last_error()) == "args=NULL: must point to a dualgemm_moe_gather_args_t");
  dualgemm_moe_gather_args_init(nullptr);
  CHECK(dualgemm_moe_permute(nullptr, nullptr) == kNull);
  CHECK(std::string(dualgemm_last_error()) == "args=NULL: must point to a dualgemm_moe_permute_args_t");
  CHECK(dualgemm_moe_combine(nullptr, nullptr) == kNull);
  dualgemm_moe_permute_args_init(nullptr);
  dualgemm_moe_combine_args_init(nullptr);
}

TEST_CASE("moe: what permuting refuses", "[host][moe]") {
  check<Permute>(valid_permute(),
                 {{kValue, "flags=0x2: must be 0 or DUALGEMM_FLAG_PDL (0x1), nothing else",
                   [](auto& a) { a.flags = DUALGEMM_FLAG_STATIC_WEIGHTS; }},
                  {kValue, "experts=0: must be in [1, 1024]", [](auto& a) { a.experts = 0; }},
                  {kValue, "experts=1025: must be in [1, 1024]", [](auto& a) { a.experts = 1025; }},
                  {kValue, "reserved0=1: must be in [0, 0]", [](auto& a) { a.reserved0 = 1; }},
                  {kValue, "tokens=-1: must not be negative", [](auto& a) { a.tokens = -1; }},
                  {kValue, "top_k=-1: must not be negative", [](auto& a) { a.top_k = -1; }},
                  {kValue, "tokens=65536: 4294967296 choices of top_k=65536 each, at most 2147482624",
                   [](auto& a) { a.tokens = a.top_k = 65536; }},
                  {kNull, "topk_ids=NULL: must not be NULL", [](auto& a) { a.topk_ids = nullptr; }},
                  {kNull, "group_rows=NULL: must not be NULL", [](auto& a) { a.group_rows = nullptr; }},
                  {kNull, "row_token=NULL: must not be NULL", [](auto& a) { a.row_token = nullptr; }},
                  {kNull, "token_row=NULL: must not be NULL", [](auto& a) { a.token_row = nullptr; }},
                  {kNull, "row_weight=NULL: must not be NULL", [](auto& a) { a.row_weight = nullptr; }},
                  {kValue, "row_weight=0x240000000: must be NULL where topk_weights is NULL",
                   [](auto& a) { a.topk_weights = nullptr; }},
                  {kMisaligned, "topk_ids=0x100000002: must be 4-byte aligned",
                   [](auto& a) { a.topk_ids = address<const int32_t>(0x1'0000'0002); }},
                  {kMisaligned, "topk_weights=0x140000001: must be 4-byte aligned",
                   [](auto& a) { a.topk_weights = address<const float>(0x1'4000'0001); }},
                  {kMisaligned, "row_weight=0x240000003: must be 4-byte aligned",
                   [](auto& a) { a.row_weight = address<float>(0x2'4000'0003); }},
                  {kAliasing, "group_rows=0x10000009c: overlaps topk_ids=0x100000000",
                   [](auto& a) { a.group_rows = address<int32_t>(0x1'0000'0000 + 39 * 4); }},
                  {kAliasing, "group_rows=0x180000000: overlaps row_token=0x180000018",
                   [](auto& a) { a.row_token = address<int32_t>(0x1'8000'0000 + 6 * 4); }},
                  {kAliasing, "token_row=0x140000000: overlaps topk_weights=0x140000000",
                   [](auto& a) { a.token_row = address<int32_t>(0x1'4000'0000); }},
                  {kAliasing, "token_row=0x200000000: overlaps row_weight=0x20000009c",
                   [](auto& a) { a.row_weight = address<float>(0x2'0000'0000 + 39 * 4); }}},
                 dualgemm_moe_permute, dualgemm_moe_permute_host);
}

TEST_CASE("moe: what gathering refuses", "[host][moe]") {
  check<Gather>(
      valid_gather(),
      {{kValue, "flags=0x8: must be 0 or DUALGEMM_FLAG_PDL (0x1), nothing else",
        [](auto& a) { a.flags = DUALGEMM_FLAG_CHECK_POINTERS; }},
       {kValue, "x_dtype=2: must be in [0, 1]", [](auto& a) { a.x_dtype = DUALGEMM_DTYPE_FP32; }},
       {kValue, "x_dtype=-1: must be in [0, 1]", [](auto& a) { a.x_dtype = -1; }},
       {kValue, "rows=-1: must not be negative", [](auto& a) { a.rows = -1; }},
       {kValue, "k=-8: must not be negative", [](auto& a) { a.k = -8; }},
       {DUALGEMM_STATUS_INVALID_SHAPE, "k=60: must be a multiple of 8", [](auto& a) { a.k = 60; }},
       {kValue, "x_rows=0: must be at least 1", [](auto& a) { a.x_rows = 0; }},
       {kValue, "x_rows=-2: must be at least 1", [](auto& a) { a.x_rows = -2; }},
       {kNull, "row_index=NULL: must not be NULL", [](auto& a) { a.row_index = nullptr; }},
       {kNull, "x=NULL: must not be NULL", [](auto& a) { a.x = nullptr; }},
       {kNull, "out=NULL: must not be NULL", [](auto& a) { a.out = nullptr; }},
       {kStride, "ldx=56: must be at least k=64", [](auto& a) { a.ldx = 56; }},
       {kStride, "ldx=68: must be a multiple of 8", [](auto& a) { a.ldx = 68; }},
       {kStride, "ld_out=-64: must be at least k=64", [](auto& a) { a.ld_out = -64; }},
       {kStride, "ld_out=66: must be a multiple of 8", [](auto& a) { a.ld_out = 66; }},
       {kMisaligned, "row_index=0x100000002: must be 4-byte aligned",
        [](auto& a) { a.row_index = address<const int32_t>(0x1'0000'0002); }},
       {kMisaligned, "x=0x140000008: must be 16-byte aligned", [](auto& a) { a.x = address(0x1'4000'0008); }},
       {kMisaligned, "out=0x180000008: must be 16-byte aligned",
        [](auto& a) { a.out = address(0x1'8000'0008); }},
       {kAliasing, "out=0x140000000: overlaps x=0x140000000",
        [](auto& a) { a.out = address(0x1'4000'0000); }},
       {kAliasing, "out=0x1400004f0: overlaps x=0x140000000",
        [](auto& a) { a.out = address(0x1'4000'0000 + 10 * 128 - 16); }},
       {kAliasing, "out=0x100000090: overlaps row_index=0x100000000",
        [](auto& a) { a.out = address(0x1'0000'0090); }},
       {DUALGEMM_STATUS_NOT_SUPPORTED, "k=2147483640: at most 2147482624, and so many pieces of 256 columns",
        [](auto& a) {
          a.k = 2147483640;
          put_far_apart(a);
        }},
       {DUALGEMM_STATUS_NOT_SUPPORTED, "k=8456: at most 2147482624, and so many pieces of 256 columns of all",
        [](auto& a) {
          a.k = 8456;
          a.rows = 0x7fffffff;
          put_far_apart(a);
        }}},
      dualgemm_moe_gather, dualgemm_moe_gather_host);
  // The memory of this is not there: the rules alone look at it.
  Gather args = valid_gather();
  args.out = address(0x1'4000'0000 + 10 * 128);
  dualgemm::Gathering gathering;
  CHECK(dualgemm::validate(&args, &gathering) == kGood);
  CHECK(gathering.tiles == 2);
}

TEST_CASE("moe: what summing refuses", "[host][moe]") {
  check<Combine>(
      valid_combine(),
      {{kValue, "flags=0x8: must be 0 or DUALGEMM_FLAG_PDL (0x1), nothing else",
        [](auto& a) { a.flags = DUALGEMM_FLAG_CHECK_POINTERS; }},
       {kValue, "c_dtype=3: must be in [0, 2]", [](auto& a) { a.c_dtype = DUALGEMM_DTYPE_NVFP4; }},
       {kValue, "out_dtype=-1: must be in [0, 2]", [](auto& a) { a.out_dtype = -1; }},
       {kValue, "reserved0=1: must be in [0, 0]", [](auto& a) { a.reserved0 = 1; }},
       {kValue, "n=-8: must not be negative", [](auto& a) { a.n = -8; }},
       {kValue, "tokens=-1: must not be negative", [](auto& a) { a.tokens = -1; }},
       {kValue, "top_k=-1: must not be negative", [](auto& a) { a.top_k = -1; }},
       {kValue, "tokens=65536: 4294967296 choices of top_k=65536 each",
        [](auto& a) { a.tokens = a.top_k = 65536; }},
       {DUALGEMM_STATUS_INVALID_SHAPE, "n=60: must be a multiple of 8", [](auto& a) { a.n = 60; }},
       {DUALGEMM_STATUS_NOT_SUPPORTED, "n=2147483640: at most 2147482624",
        [](auto& a) {
          a.n = 2147483640;
          put_far_apart(a);
        }},
       {DUALGEMM_STATUS_NOT_SUPPORTED, "n=2056: at most 2147482624, and so many pieces of 2048 columns",
        [](auto& a) {
          a.n = 2056;
          a.tokens = 0x40000000;
          a.top_k = 1;
          put_far_apart(a);
        }},
       {kNull, "token_row=NULL: must not be NULL", [](auto& a) { a.token_row = nullptr; }},
       {kNull, "c=NULL: must not be NULL", [](auto& a) { a.c = nullptr; }},
       {kNull, "out=NULL: must not be NULL", [](auto& a) { a.out = nullptr; }},
       {kValue, "ld_add=64: must be 0 where add is NULL",
        [](auto& a) {
          a.add = nullptr;
          a.ld_add = 64;
        }},
       {kStride, "ldc=63: must be at least n=64", [](auto& a) { a.ldc = 63; }},
       {kStride, "ldc=68: must be a multiple of 8", [](auto& a) { a.ldc = 68; }},
       {kStride, "ld_out=66: must be a multiple of 4",
        [](auto& a) {
          a.out_dtype = DUALGEMM_DTYPE_FP32;
          a.ld_out = 66;
        }},
       {kStride, "ld_add=-64: must be at least n=64", [](auto& a) { a.ld_add = -64; }},
       {kMisaligned, "token_row=0x100000002: must be 4-byte aligned",
        [](auto& a) { a.token_row = address<const int32_t>(0x1'0000'0002); }},
       {kMisaligned, "topk_weights=0x200000002: must be 4-byte aligned",
        [](auto& a) { a.topk_weights = address<const float>(0x2'0000'0002); }},
       {kMisaligned, "c=0x140000008: must be 16-byte aligned", [](auto& a) { a.c = address(0x1'4000'0008); }},
       {kMisaligned, "add=0x180000008: must be 16-byte aligned",
        [](auto& a) { a.add = address(0x1'8000'0008); }},
       {kMisaligned, "out=0x1c0000008: must be 16-byte aligned",
        [](auto& a) { a.out = address(0x1'c000'0008); }},
       {kAliasing, "out=0x140000000: overlaps c=0x140000000",
        [](auto& a) { a.out = address(0x1'4000'0000); }},
       {kAliasing, "out=0x1400013f0: overlaps c=0x140000000",
        [](auto& a) { a.out = address(0x1'4000'0000 + 40 * 128 - 16); }},
       {kAliasing, "out=0x100000090: overlaps token_row=0x100000000",
        [](auto& a) { a.out = address(0x1'0000'0090); }},
       {kAliasing, "out=0x1c0000000: overlaps topk_weights=0x1c00004fc",
        [](auto& a) { a.topk_weights = address<const float>(0x1'c000'0000 + 10 * 128 - 4); }},
       {kAliasing, "out=0x200000090: overlaps topk_weights=0x200000000",
        [](auto& a) { a.out = address(0x2'0000'0090); }},
       {kAliasing, "out=0x180000010: overlaps add=0x180000000",
        [](auto& a) { a.out = address(0x1'8000'0010); }},
       {kAliasing, "out=0x180000000: overlaps add=0x180000000",
        [](auto& a) {
          a.out = address(0x1'8000'0000);
          a.ld_out = 72;
        }}},
      dualgemm_moe_combine, dualgemm_moe_combine_host);
  // The memory of these is not there: the rules alone look at them.
  for (const uintptr_t out :
       {uintptr_t{0x1'8000'0000}, uintptr_t{0x1'4000'0000 + 40 * 128}, uintptr_t{0x2'0000'0000 + 40 * 4}}) {
    Combine args = valid_combine();
    args.out = address(out);
    CHECK(asked<dualgemm::Combination>(args) == kGood);
    args.topk_weights = nullptr;
    CHECK(asked<dualgemm::Combination>(args) == kGood);
  }
}

TEST_CASE("moe: no output overlaps an input or another output", "[host][moe]") {
  constexpr uintptr_t kChoices = 40 * 4;  // bytes of a word for each choice
  check_pairs<Permute>(valid_permute(),
                       {{"group_rows", 7 * 4, 4, true, put<&Permute::group_rows>},
                        {"row_token", kChoices, 4, true, put<&Permute::row_token>},
                        {"token_row", kChoices, 4, true, put<&Permute::token_row>},
                        {"row_weight", kChoices, 4, true, put<&Permute::row_weight>},
                        {"topk_ids", kChoices, 4, false, put<&Permute::topk_ids>},
                        {"topk_weights", kChoices, 4, false, put<&Permute::topk_weights>}},
                       asked<dualgemm::Permutation, Permute>);
  check_pairs<Gather>(valid_gather(),
                      {{"out", 40 * 64 * 2, 16, true, put<&Gather::out>},
                       {"x", 10 * 64 * 2, 16, false, put<&Gather::x>},
                       {"row_index", kChoices, 4, false, put<&Gather::row_index>}},
                      asked<dualgemm::Gathering, Gather>);
  for (const uintptr_t bytes : {2, 4}) {
    Combine combine = valid_combine();
    combine.out_dtype = bytes == 2 ? DUALGEMM_DTYPE_FP16 : DUALGEMM_DTYPE_FP32;
    check_pairs<Combine>(combine,
                         {{"out", 10 * 64 * bytes, 16, true, put<&Combine::out>},
                          {"token_row", kChoices, 4, false, put<&Combine::token_row>},
                          {"topk_weights", kChoices, 4, false, put<&Combine::topk_weights>},
                          {"c", 40 * 64 * 2, 16, false, put<&Combine::c>},
                          {"add", 10 * 64 * bytes, 16, false, put<&Combine::add>, "out"}},
                         asked<dualgemm::Combination, Combine>);
  }
}

TEST_CASE("moe: inputs may overlap each other", "[host][moe]") {
  Permute permute = valid_permute();
  permute.topk_weights = reinterpret_cast<const float*>(permute.topk_ids);
  CHECK(asked<dualgemm::Permutation>(permute) == kGood);
  Gather gather = valid_gather();
  gather.row_index = static_cast<const int32_t*>(gather.x);
  CHECK(asked<dualgemm::Gathering>(gather) == kGood);
  Combine combine = valid_combine();
  combine.token_row = static_cast<const int32_t*>(combine.c);
  combine.topk_weights = static_cast<const float*>(combine.c);
  combine.add = combine.c;
  CHECK(asked<dualgemm::Combination>(combine) == kGood);
}

TEST_CASE("moe: columns of one buffer with one pitch do not overlap", "[host][moe]") {
  // Rows of 512 bytes hold 128 bytes of each matrix.
  const auto beside = [](const void* matrix, uintptr_t bytes) {
    return address(reinterpret_cast<uintptr_t>(matrix) + bytes);
  };
  for (const uintptr_t distance : {112, 128, 384, 400}) {
    INFO("distance " << distance);
    const auto expected = distance == 128 || distance == 384 ? kGood : kAliasing;
    Gather gather = valid_gather();
    gather.ldx = gather.ld_out = 256;
    gather.out = beside(gather.x, distance);
    CHECK(asked<dualgemm::Gathering>(gather) == expected);
    Combine of_c = valid_combine();
    of_c.ldc = of_c.ld_out = 256;
    of_c.out = beside(of_c.c, distance);
    CHECK(asked<dualgemm::Combination>(of_c) == expected);
    Combine of_add = valid_combine();
    of_add.ld_add = of_add.ld_out = 256;
    of_add.out = beside(of_add.add, distance);
    CHECK(asked<dualgemm::Combination>(of_add) == expected);
  }
}

}  // namespace moe_rules_test
