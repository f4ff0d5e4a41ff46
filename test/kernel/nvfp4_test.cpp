// nvfp4_test.cpp -- C as NVFP4: the bytes that the host's quantiser gives of the fp32 output of the same
// tile, whatever the rows, columns, tiles and encode scales are, in batches and groups; padding of the
// factors written as zero and nothing else touched, which DeviceSet::download looks at; NaN, zeros, and what
// is refused.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernel/extras.h"
#include "kernel/judged.h"
#include "ref/formats.h"
#include "support/thorough.h"

using namespace dualgemm_test;

namespace {

std::vector<NamedInstance> nvfp4_instances(bool grouped) {
  std::vector<NamedInstance> out = general_instances(grouped);
  std::erase_if(out, [](const NamedInstance& x) { return x.dtype != DUALGEMM_DTYPE_NVFP4; });
  return out;
}

SetOptions with_type(SetOptions options, const NamedInstance& instance, dualgemm_dtype_t dtype) {
  options.dtype = dtype;
  options.instance_id = general_instance(tile_of(instance), dtype).id;
  options.ldc_padding = 0;
  return options;
}

// Returns what the library's quantiser on the host makes of an fp32 output, with any encode scale.
Output quantised(const Output& wide, float encode) {
  std::vector<float> x;
  for (int64_t i = 0; i < wide.m * wide.n; ++i)
    x.push_back(static_cast<float>(wide.value(i / wide.n, i % wide.n)));
  Output out{wide.m, wide.n, DUALGEMM_DTYPE_NVFP4};
  const int64_t pitch = (wide.n + 31) / 32 * 32;
  std::vector<uint16_t> rows(wide.m * pitch / 4);
  std::vector<uint8_t> factors(ref::sf_bytes(wide.m, wide.n));
  dualgemm_quantize_args_t args;
  dualgemm_quantize_args_init(&args);
  args.rows = static_cast<int32_t>(wide.m);
  args.k = static_cast<int32_t>(wide.n);
  args.x_dtype = DUALGEMM_DTYPE_FP32;
  args.x = x.data();
  args.q = rows.data();
  args.ldq = pitch;
  args.sf = factors.data();
  args.global_scale_dev = &encode;
  check_status(dualgemm_quantize_host_ex(&args));
  for (int64_t row = 0; row < wide.m; ++row)
    out.bits.insert(out.bits.end(), &rows[row * pitch / 4], &rows[row * pitch / 4] + wide.n / 4);
  for (int64_t row = 0; row < wide.m; ++row)
    for (int64_t block = 0; block < wide.n / ref::kBlock; ++block)
      out.factors.push_back(factors[ref::sf_offset(wide.n, row, block)]);
  return out;
}

// Checks the NVFP4 output of an instance against the quantised fp32 output of the same tile, bit by bit, and
// against the reference.
void check_quantised(const ProblemSet& set, const SetOptions& options, const NamedInstance& instance) {
  const std::vector<Output> narrow = run(set, options),
                            wide = run(set, with_type(options, instance, DUALGEMM_DTYPE_FP32));
  REQUIRE(narrow.size() == set.problems.size());
  for (size_t i = 0; i < narrow.size(); ++i) {
    const Problem& p = set.problems[i];
    INFO("problem " << i << ": m " << p.m << ", n " << p.n << ", encode scale " << p.encode);
    if (p.m == 0) continue;
    check(narrow[i], p, options);
    CHECK((narrow[i] == quantised(wide[i], p.encode)));
  }
}

}  // namespace

TEST_CASE("an NVFP4 output is the quantised fp32 output, for rows and columns around every edge", "[nvfp4]") {
  const std::vector<int32_t> rows =
      all_or<int32_t>({1, 2, 7, 15, 17, 31, 33, 63, 65, 127, 128, 129, 255, 257, 513, 1025},
                      {1, 15, 17, 31, 33, 63, 65, 127, 128, 129, 257});
  const int32_t columns[] = {16, 80, 176, 208, 352};
  const std::vector<NamedInstance> instances = nvfp4_instances(false);
  // Every tile meets every number of rows, once, with the columns in turn.
  for (size_t tile = 0; tile < instances.size(); ++tile) {
    DYNAMIC_SECTION(instances[tile].name) {
      for (size_t i = 0; i < rows.size(); ++i) {
        SetOptions options = use(instances[tile]);
        options.ldc_padding = i % 2 * 32;
        const int32_t n = columns[(tile + i) % std::size(columns)];
        ProblemSet set = make_batch(Data::kFullRange, 1, rows[i], n, 64, i);
        give_encode(set, DUALGEMM_DTYPE_NVFP4);
        check_quantised(set, options, instances[tile]);
      }
    }
  }
}

TEST_CASE("NVFP4: every tile, with every split of K, whole and ragged, its tiles in turn", "[nvfp4]") {
  for (const NamedInstance& instance : nvfp4_instances(false)) {
    DYNAMIC_SECTION(instance.name) {
      const int32_t m = instance.info.tile_m, n = instance.info.tile_n, k = instance.info.tile_k;
      SetOptions options = use(instance);
      if (instance.info.split_k == 1) options.max_sms = instance.info.cta_group;
      for (const bool whole : {true, false}) {
        INFO((whole ? "whole" : "ragged"));
        ProblemSet set = whole ? make_batch(Data::kFullRange, 1, m, n, 2 * instance.info.split_k * k, 1)
                               : make_batch(Data::kFullRange, 1, m + 9, 2 * n + 16, k + 80, 2);
        give_all(set, extras().back(), 3);
        give_encode(set, DUALGEMM_DTYPE_NVFP4);
        check_quantised(set, options, instance);
      }
    }
  }
}

TEST_CASE("NVFP4: a batch, with factors at their stride and an encode scale each, on host and device",
          "[nvfp4][batch]") {
  const int32_t problems = thorough() ? 3 : 2;
  size_t turn = 0;  // tiles have the gaps in turn
  for (const NamedInstance& instance : nvfp4_instances(false)) {
    ++turn;
    DYNAMIC_SECTION(instance.name) {
      for (const int32_t gap : all_or_every<int32_t>(2, turn, {0, 3})) {
        SetOptions options = use(instance);
        options.gap = gap;
        ProblemSet set = make_batch(Data::kFullRange, problems, 130, 176, 64, 4 + gap, Alphas::kOwn);
        give_encode(set, DUALGEMM_DTYPE_NVFP4);  // one each, so on the device
        check_quantised(set, options, instance);
        for (Problem& p : set.problems) p.encode = 7;
        std::vector<Output> from[2];
        for (const bool on_device : {false, true}) {
          options.encode_on_device = on_device;
          from[on_device] = run(set, options);
        }
        CHECK((from[0] == from[1]));
        for (size_t i = 0; i < from[0].size(); ++i) check(from[0][i], set.problems[i], options);
      }
    }
  }
}

TEST_CASE("NVFP4: each group's factors begin at a block of 128 rows of its own", "[nvfp4][grouped]") {
  size_t turn = 0;  // a tile has two of the lists in one mode, and the next tile in the other
  for (const NamedInstance& instance : nvfp4_instances(true)) {
    for (const dualgemm_group_mode_t mode : kGroupModes) {
      ++turn;
      DYNAMIC_SECTION(instance.name << " " << text(mode)) {
        const int32_t m = instance.info.tile_m;
        const std::vector<std::vector<int32_t>> lists = {
            {0, 1, 128, 0, 129, 17, 0}, {257, 3, m - 1, m + 1}, {0, 0, 0}, {5, 300}};
        for (const std::vector<int32_t>& rows : all_or_every<std::vector<int32_t>>(2, turn / 2, lists)) {
          INFO(text(rows));
          SetOptions options = use(instance);
          options.gap = mode == DUALGEMM_GROUP_MASKED && rows.size() == 4 ? 5 : 0;
          // Room for 150 rows more than are used: with MASKED there are blocks that nobody may touch, with
          // OFFSETS the rows in front of the first group and behind the last have none at all.
          ProblemSet set = mode == DUALGEMM_GROUP_MASKED
                               ? make_masked(Data::kFullRange, rows, 176, 80, 5, 150)
                               : make_offsets(Data::kFullRange, rows, 176, 80, 5, 150, 33);
          give_all(set, extras().back(), 6);
          give_encode(set, DUALGEMM_DTYPE_NVFP4);
          check_quantised(set, options, instance);
        }
      }
    }
  }
}

TEST_CASE("NVFP4: a larger buffer of factors is touched no further than the groups reach",
          "[nvfp4][grouped]") {
  for (const NamedInstance& instance : nvfp4_instances(true)) {
    DYNAMIC_SECTION(instance.name) {
      SetOptions options = use(instance);
      options.any_division = true;
      ProblemSet set = make_offsets(Data::kFullRange, {3, 0, 140, 1}, 208, 64, 7, 300);
      give_encode(set, DUALGEMM_DTYPE_NVFP4);
      check_quantised(set, options, instance);
    }
  }
}

TEST_CASE("NVFP4: NaN makes the factor of its block NaN and no other", "[nvfp4]") {
  for (const NamedInstance& instance : nvfp4_instances(false)) {
    DYNAMIC_SECTION(instance.name) {
      Problem p = make_problem(Data::kFullRange, 70, 80, 64, 8);
      p.encode = 5;
      p.sfb1[ref::sf_offset(p.k, 37, 1)] = 0x7F;  // column 37
      p.c_row_scale.assign(70, 1);
      p.c_row_scale[66] = std::numeric_limits<float>::quiet_NaN();
      const Output out = run(p, use(instance));
      check(out, p, use(instance));
      for (int64_t row = 0; row < 70; ++row)
        for (int64_t block = 0; block < 5; ++block)
          CHECK((out.factors[row * 5 + block] == 0x7F) == (block == 2 || row == 66));
    }
  }
}

TEST_CASE("NVFP4: blocks of zeros and of numbers too small for a factor are +0", "[nvfp4]") {
  for (const NamedInstance& instance : nvfp4_instances(false)) {
    DYNAMIC_SECTION(instance.name) {
      Problem p = make_problem(Data::kFullRange, 40, 80, 64, 9);
      p.c_row_scale.assign(40, 1);
      for (int row : {3, 17}) p.c_row_scale[row] = row == 3 ? 0 : -1e-7f;
      for (int64_t block = 0; block < 4; ++block)
        for (int64_t column = 16; column < 32; ++column) p.sfb2[ref::sf_offset(p.k, column, block)] = 0;
      const Output out = run(p, use(instance));
      check(out, p, use(instance));
      for (int64_t row = 0; row < 40; ++row)
        for (int64_t column = 0; column < 80; ++column)
          if (row == 3 || row == 17 || column / 16 == 1) {
            CHECK(out.code(row, column) == 0);
            CHECK(out.factors[row * 5 + column / 16] == 0);
          }
    }
  }
}

TEST_CASE("NVFP4: encode scales from the smallest to the largest factors", "[nvfp4]") {
  for (const NamedInstance& instance : nvfp4_instances(false)) {
    if (instance.info.tile_m != 128 || instance.info.split_k != 1) continue;
    DYNAMIC_SECTION(instance.name) {
      for (const float encode : {1e-5f, 1e-3f, 0.1f, 100.0f, 1e4f, 3e7f}) {
        ProblemSet set = make_batch(Data::kFullRange, 1, 33, 208, 64, 10);
        set.problems[0].encode = encode;
        check_quantised(set, use(instance), instance);
      }
      // The scale that makes the largest element the largest number.
      ProblemSet set = make_batch(Data::kFullRange, 1, 33, 208, 64, 11);
      const Output wide = run(set, with_type(use(instance), instance, DUALGEMM_DTYPE_FP32))[0];
      std::vector<float> x;
      for (int64_t i = 0; i < wide.m * wide.n; ++i)
        x.push_back(static_cast<float>(wide.value(i / wide.n, i % wide.n)));
      check_status(dualgemm_global_scale_host(x.data(), 33, 208, 0, &set.problems[0].encode));
      check_quantised(set, use(instance), instance);
      const Output out = run(set, use(instance))[0];
      CHECK(std::count(out.factors.begin(), out.factors.end(), 0x7E) > 0);
    }
  }
}

TEST_CASE("NVFP4: encode scales on the device that no rule can look at", "[nvfp4]") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const NamedInstance& instance : nvfp4_instances(false)) {
    DYNAMIC_SECTION(instance.name) {
      ProblemSet set = make_batch(Data::kFullRange, 6, 33, 96, 64, 15);
      const float encodes[] = {-1, -0.0f, 0, kInfinity, -kInfinity, std::nanf("")};
      for (size_t i = 0; i < std::size(encodes); ++i) {
        Problem& p = set.problems[i];
        p.encode = encodes[i];
        for (int64_t block = 0; block < 4; ++block)  // columns of zeros
          for (int64_t column = 16; column < 32; ++column) p.sfb2[ref::sf_offset(p.k, column, block)] = 0;
      }
      SetOptions options = use(instance);
      const std::vector<Output> narrow = run(set, options),
                                wide = run(set, with_type(options, instance, DUALGEMM_DTYPE_FP32));
      for (size_t i = 0; i < std::size(encodes); ++i) {
        INFO("encode scale " << encodes[i]);
        CHECK((narrow[i] == quantised(wide[i], encodes[i])));
      }
    }
  }
}

TEST_CASE("NVFP4: 176 columns need a pitch of 192, and nothing is written where there is none", "[nvfp4]") {
  const Problem p = make_problem(Data::kFullRange, 40, 176, 64, 12);
  SetOptions options;
  options.dtype = DUALGEMM_DTYPE_NVFP4;
  const DeviceSet device(set_of(p), options);
  CHECK(device.args().ldc == 192);
  const auto launched = [&](auto change) {
    dualgemm_args_t args = device.args();
    change(args);
    return dualgemm_launch_ex(&args, nullptr);
  };
  CHECK(launched([](dualgemm_args_t& args) { args.ldc = 0; }) == DUALGEMM_STATUS_INVALID_STRIDE);
  CHECK_THAT(dualgemm_last_error(), contains("ldc"));
  CHECK(launched([](dualgemm_args_t& args) { args.ldc = 176; }) == DUALGEMM_STATUS_INVALID_STRIDE);
  CHECK(launched([](dualgemm_args_t& args) { args.n = 168; }) == DUALGEMM_STATUS_INVALID_SHAPE);
  CHECK(launched([](dualgemm_args_t& args) { args.sfc = nullptr; }) == DUALGEMM_STATUS_NULL_POINTER);
  // The padding of the factors, which every launch writes, is still poison.
  CHECK_THROWS_WITH(device.download(), contains("padding"));
  CHECK(launched([](dualgemm_args_t&) {}) == DUALGEMM_STATUS_SUCCESS);
  check(device.download()[0], p, options);
}

TEST_CASE("nothing is found in launches with NVFP4 outputs", "[nvfp4][edge]") {
  for (const bool grouped : {false, true})
    for (const NamedInstance& instance : nvfp4_instances(grouped)) {
      DYNAMIC_SECTION(instance.name) {
        const int32_t m = instance.info.tile_m, n = instance.info.tile_n, k = instance.info.tile_k;
        Judged judged;
        SetOptions options = use(instance);
        options.max_sms = instance.info.split_k > 1 ? 0 : instance.info.cta_group;
        ProblemSet sets[2] = {grouped
                                  ? make_offsets(Data::kFullRange, {m + 1, 0, 5, 129}, n + 16, k + 16, 13, 2)
                                  : make_batch(Data::kFullRange, 2, m + 1, n + 16, k + 16, 13, Alphas::kOwn),
                              grouped ? make_masked(Data::kFullRange, {1, m, 0}, 16, 64, 14, 130)
                                      : make_batch(Data::kFullRange, 1, 1, 16, 16, 14)};
        for (ProblemSet& set : sets) {
          give_encode(set, DUALGEMM_DTYPE_NVFP4);
          check_launch(set, options);
        }
        CHECK(judged.findings_and_certificate() == "");
      }
    }
}
