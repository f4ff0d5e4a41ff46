// fp8_test.cpp -- launches of weights in MXFP4 by an A in FP8, on the simulated H100, whose instances take
// them, and what other machines say to it. edge_test.cpp has their edges under every checker.
#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "kernel/extras.h"
#include "kernel/judged.h"
#include "ref/formats.h"
#include "support/thorough.h"

using namespace dualgemm_test;

namespace {

enum class Grouping { kNone, kGroups };

// Returns the instances of these epilogues, of two products and of one: all, or one of each tile.
std::vector<NamedInstance> instances(bool general, Grouping grouping) {
  std::vector<NamedInstance> out;
  for (const int32_t products : {2, 1}) {
    std::vector<NamedInstance> all = fp8_instances(products);
    std::erase_if(all, [=](const NamedInstance& x) {
      return (x.info.general != 0) != general || (x.info.grouped != 0) != (grouping == Grouping::kGroups);
    });
    REQUIRE(!all.empty());
    for (const NamedInstance& instance : all_or_in_turn(all)) out.push_back(instance);
  }
  return out;
}
std::vector<NamedInstance> plain() { return instances(false, Grouping::kNone); }

// Returns one instance of every tile, for groups or without. Loads and products of a general one are those of
// the plain one, so only a thorough run takes both.
std::vector<NamedInstance> of_every_tile() {
  std::vector<NamedInstance> out;
  for (const bool general : all_or<bool>({false, true}, {false}))
    for (const Grouping grouping : {Grouping::kNone, Grouping::kGroups})
      for (const NamedInstance& instance : instances(general, grouping)) out.push_back(instance);
  return out;
}

ProblemSet in_fp8(ProblemSet set, Mx data = Mx::kFullRange) {
  uint64_t seed = 1;
  for (Problem& p : set.problems) p = with_fp8(p, data, ++seed);
  return set;
}

// What of rows a launch may have beside its operands, in each combination.
struct OfRows {
  bool b1_exponents, b2_exponents, row_scale;
};
constexpr OfRows kAllOfRows{true, true, true};
const std::vector<OfRows> kOfRows = {
    {false, false, false}, {true, false, false}, {false, true, true},  {true, true, false},
    {false, false, true},  {true, false, true},  {false, true, false}, kAllOfRows};

ProblemSet with(ProblemSet set, const OfRows& of_rows) {
  Rng rng(5);
  int problem = 0;
  for (Problem& p : set.problems) {
    if (of_rows.b1_exponents) give_exponents(p, 0, 30 + problem, rng.word());
    if (of_rows.b2_exponents) give_exponents(p, 1, -20 - problem, rng.word());
    if (of_rows.row_scale && p.row_scale.empty()) give_row_scale(p, rng);
    ++problem;
  }
  return set;
}

ProblemSet one_problem(int32_t m, int32_t n, int32_t k, uint64_t seed, int64_t pitch_padding = 0) {
  return in_fp8(make_batch(Data::kFullRange, 1, m, n, k, seed, Alphas::kShared, pitch_padding));
}

// Launches a set with all that the instance computes, and checks all that it writes.
std::vector<Output> check_all_of(const NamedInstance& instance, ProblemSet set, int32_t gap = 0) {
  SetOptions options = use_all_of(instance, set);
  options.gap = gap;
  return check_launch(set, options);
}

// Launches one problem with a plain instance.
Output run_plain(const NamedInstance& instance, const Problem& p) {
  ProblemSet set = set_of(p);
  const SetOptions options = use_all_of(instance, set);
  return run(set, options).at(0);
}

}  // namespace

TEST_CASE("FP8: an A in FP8 and weights in MXFP4 are refused where tensor cores do not multiply them",
          "[fp8][mxfp4]") {
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  REQUIRE(dualgemm_current_device(&device) == DUALGEMM_STATUS_SUCCESS);
  SetOptions options;
  options.a_dtype = DUALGEMM_DTYPE_FP8_E4M3;
  const ProblemSet set = with(one_problem(9, 24, 288, 1), kAllOfRows);
  if (device.cc_major == 9) {
    check_launch(set, options);
    return;
  }
  const DeviceSet on(set, options);
  CHECK(dualgemm_launch_ex(&on.args(), nullptr) == DUALGEMM_STATUS_NOT_SUPPORTED);
  CHECK(std::string(dualgemm_last_error()).starts_with("b_dtype="));
}

TEST_CASE("FP8: ragged m and n give the reference's result", "[.h100][fp8]") {
  size_t turn = 0;
  for (const NamedInstance& instance : plain()) DYNAMIC_SECTION(instance.name) {
      for (const int32_t m : all_or_every<int32_t>(2, turn++, {1, 15, 65, instance.info.tile_m + 1}))
        for (const int32_t n : all_or_every<int32_t>(2, turn / 2, {8, instance.info.tile_n + 8})) {
          INFO("m " << m << ", n " << n);
          check_all_of(instance, one_problem(m, n, 320, 100 + m * 7 + n));
        }
    }
}

TEST_CASE("FP8: every k of whole blocks gives the reference's result", "[.h100][fp8]") {
  size_t turn = 0;
  for (const NamedInstance& instance : plain()) DYNAMIC_SECTION(instance.name) {
      for (const int32_t k : all_or_every<int32_t>(2, turn++, {32, 480, 128, 288, 256, 96})) {
        INFO("k " << k);
        check_all_of(instance, one_problem(11, 40, k, 200 + k));
      }
      check_all_of(instance, one_problem(11, 40, 288, 201, 96));
    }
}

// The reference knows that nothing is lost of these sums, so C is exact up to what the epilogue rounds.
TEST_CASE("FP8: sums of integers are exact", "[.h100][fp8]") {
  for (const NamedInstance& instance : of_every_tile()) DYNAMIC_SECTION(instance.name) {
      const bool grouped = instance.info.grouped != 0;
      const ProblemSet set = grouped ? make_masked(Data::kIntegers, {7, 0, 3}, 48, 2880, 3)
                                     : make_batch(Data::kIntegers, 1, 9, 48, 2880, 3);
      check_all_of(instance, in_fp8(set, Mx::kIntegers));
    }
}

TEST_CASE("FP8: rows of A and of the weights have factors and exponents, or none", "[.h100][fp8][batch]") {
  size_t turn = 0;
  for (const NamedInstance& instance : plain()) DYNAMIC_SECTION(instance.name) {
      for (const OfRows& of_rows : all_or_every(4, turn++, kOfRows)) {
        INFO("b1 " << of_rows.b1_exponents << ", b2 " << of_rows.b2_exponents << ", A " << of_rows.row_scale);
        // Exponents of the second problem begin at no multiple of four bytes.
        check_all_of(instance, with(in_fp8(make_batch(Data::kFullRange, 2, 37, 72, 288, 4)), of_rows), 1);
      }
    }
}

TEST_CASE("FP8: a batch gives every problem its own operands, factors and exponents", "[.h100][fp8][batch]") {
  for (const bool general : {false, true})
    for (const NamedInstance& instance : instances(general, Grouping::kNone)) DYNAMIC_SECTION(instance.name) {
        ProblemSet set =
            with(in_fp8(make_batch(Data::kFullRange, 3, 33, 80, 288, 4, Alphas::kOwn)), kAllOfRows);
        SetOptions options = use_all_of(instance, set);
        options.gap = 2;
        options.max_sms = instance.info.split_k > 1 ? 0 : 1;
        check_launch(set, options);
      }
}

TEST_CASE("FP8: groups have weights, factors and exponents of their own", "[.h100][fp8][grouped]") {
  size_t turn = 0;  // tiles have the modes in turn
  for (const bool general : {false, true})
    for (const NamedInstance& instance : instances(general, Grouping::kGroups))
      for (const dualgemm_group_mode_t mode :
           all_or_every<dualgemm_group_mode_t>(2, turn++, {DUALGEMM_GROUP_OFFSETS, DUALGEMM_GROUP_MASKED})) {
        DYNAMIC_SECTION(instance.name << " " << text(mode)) {
          const int32_t m = instance.info.tile_m;
          const std::vector<int32_t> rows = {0, m + 1, 0, 5, m, 0};
          check_all_of(instance,
                       with(in_fp8(make_groups(mode, Data::kFullRange, rows, 80, 288, 6, 3)), kAllOfRows),
                       mode == DUALGEMM_GROUP_MASKED ? 2 : 0);
        }
      }
}

TEST_CASE("FP8: every output and epilogue, with the instance that the library chooses", "[.h100][fp8]") {
  for (const dualgemm_dtype_t dtype : kOutputs)
    for (const bool all : {false, true})
      for (const int32_t m : all_or_every<int32_t>(2, static_cast<size_t>(dtype + all), {3, 70})) {
        INFO("c_dtype " << dtype << ", all " << all << ", m " << m);
        ProblemSet set = one_problem(m, 144, 288, 8);
        if (all) give_all(set, extras().back(), 9);
        SetOptions options;
        options.a_dtype = DUALGEMM_DTYPE_FP8_E4M3;
        options.dtype = dtype;
        options.d = options.amax = all;
        give_encode(set, dtype);
        check_launch(with(set, {all, all, all}), options);
      }
}

// Row i of A has nothing but a 1 in element i, so that C has the weights themselves.
TEST_CASE("FP8: every factor of MXFP4 gives the weights of its definition", "[.h100][fp8][mxfp4]") {
  for (const NamedInstance& instance : plain()) DYNAMIC_SECTION(instance.name) {
      Problem p = one_problem(32, 256, 32, 30).problems[0];
      for (int64_t row = 0; row < 32; ++row)
        for (int64_t i = 0; i < 32; ++i) p.a8[row * p.lda + i] = row == i ? 0x38 : 0;
      p.alpha1 = p.alpha2 = 1;
      for (int64_t row = 0; row < 256; ++row) {
        p.sfb1[ref::mx_sf_offset(32, row, 0)] = static_cast<uint8_t>(row);
        p.sfb2[ref::mx_sf_offset(32, row, 0)] = static_cast<uint8_t>(row * 7 % 134);
      }
      const Output out = check_all_of(instance, set_of(p)).at(0);
      if (instance.info.products == 2) continue;
      int wrong = 0;
      for (int64_t row = 0; row < 256; ++row)
        for (int64_t i = 0; i < 32; ++i) {
          const double weight =
              ref::mxfp4_weight(ref::nibble(&p.b1[row * p.ldb1 / 2], i), static_cast<uint8_t>(row));
          const double c = out.value(i, row);
          wrong += std::isnan(weight) ? !std::isnan(c) : c != weight;
        }
      CHECK(wrong == 0);
    }
}

TEST_CASE("FP8: a NaN in A is that of its row, one in the factors that of its column", "[.h100][fp8]") {
  for (const NamedInstance& instance : plain()) DYNAMIC_SECTION(instance.name) {
      const Problem p = one_problem(20, 72, 544, 11).problems[0];
      const Output before = run_plain(instance, p);
      const auto wrong_after = [&](const Problem& q, int64_t nan_row, int64_t nan_column) {
        const Output after = run_plain(instance, q);
        int64_t wrong = 0;
        for (int64_t row = 0; row < p.m; ++row)
          for (int64_t column = 0; column < p.n; ++column)
            wrong += row == nan_row || column == nan_column
                         ? !std::isnan(after.value(row, column))
                         : after.bits[row * p.n + column] != before.bits[row * p.n + column];
        return wrong;
      };
      for (const int64_t element : all_or<int64_t>({0, 37, 255, 543}, {543})) {
        Problem q = p;
        q.a8[static_cast<size_t>(17 * p.lda + element)] = element % 2 != 0 ? 0xFF : 0x7F;
        CHECK(wrong_after(q, 17, -1) == 0);
      }
      for (int side = 0; side < instance.info.products; ++side)
        for (const uint8_t factor : all_or<uint8_t>({134, 200, 255}, {134})) {
          Problem q = p;
          (side == 0 ? q.sfb1 : q.sfb2)[ref::mx_sf_offset(p.k, 66, 16)] = factor;
          CHECK(wrong_after(q, -1, 66) == 0);
        }
    }
}

TEST_CASE("FP8: what lies beyond k and n changes nothing", "[.h100][fp8]") {
  for (const NamedInstance& instance : plain()) DYNAMIC_SECTION(instance.name) {
      const Problem p = one_problem(20, 72, 288, 12, 32).problems[0];
      Problem q = p;
      Rng rng(3);
      for (int64_t row = 0; row < 128; ++row)
        for (int64_t block = 0; block < 12; ++block)
          for (std::vector<uint8_t>* const factors : {&q.sfb1, &q.sfb2})
            if (row >= p.n)
              (*factors)[ref::mx_sf_offset(p.k, row, block)] = static_cast<uint8_t>(rng.below(256));
            else if (block >= 9)
              (*factors)[ref::mx_sf_offset(p.k, row, block)] = static_cast<uint8_t>(rng.below(134));
      CHECK((run_plain(instance, p) == run_plain(instance, q)));
    }
}

// Of each input one value is changed, and what the reference says changes with it.
TEST_CASE("FP8: each input matters, and gate and up are told apart", "[.h100][fp8]") {
  struct Change {
    const char* input;
    void (*make)(Problem&);
  };
  const Change changes[] = {{"A", [](Problem& p) { p.a8[2 * p.lda + 287] ^= 0x80; }},
                            {"factor of a row of A", [](Problem& p) { p.row_scale[2] *= 2; }},
                            {"B1", [](Problem& p) { p.b1[70 * p.ldb1 / 2 + 143] ^= 0x88; }},
                            {"factor of B1", [](Problem& p) { p.sfb1[ref::mx_sf_offset(288, 70, 8)] = 132; }},
                            {"exponent of B1", [](Problem& p) { ++p.b1_exponents[70]; }},
                            {"B2", [](Problem& p) { p.b2[70 * p.ldb2 / 2 + 143] ^= 0x88; }},
                            {"factor of B2", [](Problem& p) { p.sfb2[ref::mx_sf_offset(288, 70, 8)] = 132; }},
                            {"exponent of B2", [](Problem& p) { ++p.b2_exponents[70]; }},
                            {"B1 for B2", [](Problem& p) {
                               std::swap(p.b1, p.b2);
                               std::swap(p.sfb1, p.sfb2);
                             }}};
  for (const NamedInstance& instance : plain()) DYNAMIC_SECTION(instance.name) {
      ProblemSet set = with(one_problem(5, 72, 288, 13), kAllOfRows);
      Problem& p = set.problems[0];
      // The elements that change count: the last block has the largest factor, or nearly so.
      p.a8[2 * p.lda + 287] = p.a8[2 * p.lda + 286] = 0x7E;
      for (std::vector<uint8_t>* const factors : {&p.sfb1, &p.sfb2})
        (*factors)[ref::mx_sf_offset(288, 70, 8)] = 133;
      for (std::vector<uint8_t>* const codes : {&p.b1, &p.b2})
        (*codes)[70 * (codes == &p.b1 ? p.ldb1 : p.ldb2) / 2 + 143] = 0x57;
      const std::vector<Output> before = check_all_of(instance, set);
      for (const Change& change : changes) {
        const bool of_second = std::string(change.input).find("B2") != std::string::npos;
        if (of_second && instance.info.products == 1) continue;
        INFO(change.input);
        ProblemSet changed = set;
        change.make(changed.problems[0]);
        CHECK((check_all_of(instance, changed) != before));
      }
    }
}

TEST_CASE("FP8: a row has the same bits beside any number of rows, where a launch asks for that",
          "[.h100][fp8]") {
  const Problem all = with(one_problem(200, 144, 544, 14), kAllOfRows).problems[0];
  SetOptions options;
  options.a_dtype = DUALGEMM_DTYPE_FP8_E4M3;
  options.flags = DUALGEMM_FLAG_BATCH_INVARIANT;
  const Output whole = run(set_of(all), options).at(0);
  for (const int32_t m : {1, 17, 40, 100}) {
    INFO("m " << m);
    Problem p = all;
    p.m = m;
    p.a8.resize(static_cast<size_t>(m * p.lda));
    p.row_scale.resize(static_cast<size_t>(m));
    const Output out = run(set_of(p), options).at(0);
    CHECK(std::equal(out.bits.begin(), out.bits.end(), whole.bits.begin()));
  }
  // So it is in every tile whose CTAs have all of K.
  for (const NamedInstance& instance : plain()) {
    if (instance.info.split_k > 1 || instance.info.products == 1) continue;
    INFO(instance.name);
    LaunchOptions own = use(instance);
    CHECK((run(set_of(all), own).at(0).bits == whole.bits) == (own.dtype == options.dtype));
  }
}

TEST_CASE("FP8: with PDL, and with weights that are static, nothing is found", "[.h100][fp8][pdl]") {
  size_t turn = 0;
  for (const NamedInstance& instance : of_every_tile())
    for (const uint32_t more : all_or_every<uint32_t>(2, turn++, {0, DUALGEMM_FLAG_STATIC_WEIGHTS})) {
      DYNAMIC_SECTION(instance.name << (more != 0 ? ", static weights" : "")) {
        Judged judged;
        const bool grouped = instance.info.grouped != 0;
        ProblemSet set = with(in_fp8(grouped ? make_offsets(Data::kFullRange, {3, 0, 20}, 80, 288, 15, 2)
                                             : make_batch(Data::kFullRange, 2, 20, 80, 288, 15)),
                              kAllOfRows);
        SetOptions options = use_all_of(instance, set);
        options.flags = DUALGEMM_FLAG_PDL | more;
        check_launch(set, options);
        CHECK(judged.findings() == "");
      }
    }
}

TEST_CASE("FP8: a launch has the same bits under every schedule", "[.h100][fp8][schedule]") {
  const std::vector<std::string> modes = {"early", "late",    "starve-warp", "reverse",
                                          "tear",  "diverge", "random"};
  size_t turn = 0;
  for (const NamedInstance& instance : of_every_tile()) DYNAMIC_SECTION(instance.name) {
      const dualgemm_instance_info_t& info = instance.info;
      const int32_t m = info.tile_m / 2 + 5, n = info.tile_n + 16,
                    k = (2 * info.split_k + 1) * info.tile_k - 32;
      ProblemSet set =
          with(in_fp8(info.grouped != 0 ? make_masked(Data::kFullRange, {m, 0, 3}, n, k, 20)
                                        : make_batch(Data::kFullRange, 2, m, n, k, 20, Alphas::kOwn)),
               kAllOfRows);
      SetOptions options = use_all_of(instance, set);
      options.max_sms = info.split_k > 1 ? 0 : 1;
      DeviceSet device(set, options);
      device.launch(nullptr);
      const std::vector<Output> expected = device.download();
      for (const std::string& mode : all_or_every(7, turn++, modes)) {
        INFO(mode);
        const Scheduled scheduled(mode, 21);
        device.poison();
        device.launch(nullptr);
        CHECK((device.download() == expected));
      }
    }
}

TEST_CASE("FP8: long sums stay within their bound", "[.h100][fp8]") {
  size_t turn = 0;
  for (const NamedInstance& instance : plain()) DYNAMIC_SECTION(instance.name) {
      for (const int32_t k : all_or_every<int32_t>(2, turn++, {2880, 7168}))
        check_all_of(instance, one_problem(3, 24, k, 40 + k));
    }
}
