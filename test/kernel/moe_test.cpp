// moe_test.cpp -- what sorts a router's choices and what sums their rows, on the device and by the twins
// on the host, byte by byte: rows of the experts against a stable sort of the choices, sums of a token's
// rows against additions one by one. Every byte around the outputs stays. Most of it is judged.
#include <algorithm>
#include <numeric>

#include "kernel/judged.h"
#include "kernel/moe.h"
#include "support/device_set.h"

using namespace dualgemm_test;

namespace {

Buffer buffer_of(const std::vector<int32_t>& values) {
  Buffer out(values.size() * 4);
  for (size_t i = 0; i < values.size(); ++i) out.put(static_cast<int64_t>(i), values[i]);
  return out;
}

// The arrays of a permutation before and after it.
struct Arrays {
  Buffer ids, weights, group_rows, row_token, token_row, row_weight;

  explicit Arrays(const Routing& r)
      : ids(buffer_of(r.ids)),
        weights(r.ids.size() * 4),
        group_rows(static_cast<size_t>(r.experts + 1) * 4),
        row_token(r.ids.size() * 4),
        token_row(r.ids.size() * 4),
        row_weight(r.ids.size() * 4) {
    for (int32_t i = 0; i < r.choices(); ++i) weights.put(i, 1.0f / static_cast<float>(i + 1));
  }

  // Sorts the choices by their experts.
  void expect(const Routing& r, bool weighted) {
    std::vector<int32_t> sorted;
    for (int32_t i = 0; i < r.choices(); ++i)
      if (r.ids[static_cast<size_t>(i)] >= 0 && r.ids[static_cast<size_t>(i)] < r.experts)
        sorted.push_back(i);
    const auto id = [&r](int32_t i) { return r.ids[static_cast<size_t>(i)]; };
    std::stable_sort(sorted.begin(), sorted.end(), [&](int32_t a, int32_t b) { return id(a) < id(b); });
    for (int32_t i = 0; i < r.choices(); ++i) {
      token_row.put(i, -1);
      row_token.put(i, -1);
      if (weighted) row_weight.put(i, 0.0f);
    }
    std::vector<int32_t> counts(static_cast<size_t>(r.experts) + 1, 0);
    for (size_t row = 0; row < sorted.size(); ++row) {
      const int32_t i = sorted[row];
      token_row.put(i, static_cast<int32_t>(row));
      row_token.put(static_cast<int64_t>(row), i / r.top_k);
      if (weighted) row_weight.put(static_cast<int64_t>(row), weights.get<float>(i));
      ++counts[static_cast<size_t>(id(i)) + 1];
    }
    std::partial_sum(counts.begin(), counts.end(), counts.begin());
    for (size_t i = 0; i < counts.size(); ++i) group_rows.put(static_cast<int64_t>(i), counts[i]);
  }
};

template <class Buffers>
dualgemm_moe_permute_args_t args_of(const Routing& r, bool weighted, Buffers& ids, Buffers& weights,
                                    Buffers& group_rows, Buffers& row_token, Buffers& token_row,
                                    Buffers& row_weight) {
  dualgemm_moe_permute_args_t args;
  dualgemm_moe_permute_args_init(&args);
  args.tokens = r.tokens, args.top_k = r.top_k, args.experts = r.experts;
  args.topk_ids = ids.template data<int32_t>();
  args.group_rows = group_rows.template data<int32_t>();
  args.row_token = row_token.template data<int32_t>();
  args.token_row = token_row.template data<int32_t>();
  if (!weighted) return args;
  args.topk_weights = weights.template data<float>();
  args.row_weight = row_weight.template data<float>();
  return args;
}

// The arrays on the device, with what a launch takes.
struct Permuted {
  DeviceBuffer ids, weights, group_rows, row_token, token_row, row_weight;
  dualgemm_moe_permute_args_t args;

  Permuted(const Routing& r, const Arrays& a, bool weighted)
      : ids(a.ids),
        weights(a.weights),
        group_rows(a.group_rows),
        row_token(a.row_token),
        token_row(a.token_row),
        row_weight(a.row_weight),
        args(args_of(r, weighted, ids, weights, group_rows, row_token, token_row, row_weight)) {}

  // Empty: all is as expected.
  std::string difference(const Arrays& after) const {
    return ids.difference(after.ids) + weights.difference(after.weights) +
           group_rows.difference(after.group_rows) + row_token.difference(after.row_token) +
           token_row.difference(after.token_row) + row_weight.difference(after.row_weight);
  }
};

void check_permutation(const Routing& r, bool weighted = true) {
  INFO(r.text());
  const Arrays before(r);
  Arrays after(r);
  after.expect(r, weighted);
  const Permuted device(r, before, weighted);
  check_status(dualgemm_moe_permute(&device.args, nullptr));
  CHECK(device.difference(after) == "");
  Arrays host(r);
  const dualgemm_moe_permute_args_t args = args_of(r, weighted, host.ids, host.weights, host.group_rows,
                                                   host.row_token, host.token_row, host.row_weight);
  check_status(dualgemm_moe_permute_host(&args));
  CHECK(difference(host.group_rows, after.group_rows) == "");
  CHECK(difference(host.row_token, after.row_token) == "");
  CHECK(difference(host.token_row, after.token_row) == "");
  CHECK(difference(host.row_weight, after.row_weight) == "");
}

}  // namespace

TEST_CASE("permute: choices of every kind become rows of the experts, in the order of the tokens", "[moe]") {
  Judged judged;
  const int32_t tokens[] = {1, 2, 7, 31, 32, 33, 100, 200}, experts[] = {1, 2, 8, 60, 128};
  uint64_t seed = 0;
  for (int32_t top_k = 1; top_k <= 8; ++top_k)
    for (const Kind kind : {Kind::kAll, Kind::kSome, Kind::kFew, Kind::kNone}) {
      const int32_t t = tokens[(seed * 3 + seed / 8) % std::size(tokens)];
      check_permutation(routing(t, top_k, experts[seed % std::size(experts)], kind, seed), seed % 4 != 1);
      ++seed;
    }
  CHECK(judged.findings() == "");
}

// Four CTAs run on each of 148 SMs, and a warp loads four steps of 32 choices at a time.
TEST_CASE("permute: a CTA has several experts, and a warp many choices", "[moe]") {
  check_permutation(routing(3, 4, 1024, Kind::kAll, 1));
  check_permutation(routing(1000, 8, 3, Kind::kSome, 2));
  check_permutation(routing(1001, 7, 5, Kind::kAll, 3));
}

TEST_CASE("permute: every schedule gives the same bits", "[moe]") {
  const Routing r = routing(50, 6, 12, Kind::kSome, 4);
  const Arrays before(r);
  Arrays after(r);
  after.expect(r, true);
  for (const char* const mode : kModes) {
    INFO(mode);
    const Scheduled scheduled(mode, 17);
    const Permuted device(r, before, true);
    check_status(dualgemm_moe_permute(&device.args, nullptr));
    CHECK(device.difference(after) == "");
  }
}

namespace {

enum class Add { kNone, kOther, kInPlace };

struct Case {
  Routing routing;
  int32_t n;
  dualgemm_dtype_t c_dtype = DUALGEMM_DTYPE_BF16, out_dtype = DUALGEMM_DTYPE_BF16;
  Add add = Add::kNone;
  int64_t gap = 0;  // units of 16 bytes between rows
  bool weighted = false;
};

struct Sums {
  int64_t ldc, ld_add, ld_out;
  Buffer token_row, weights, c, add, out, out_after;

  explicit Sums(const Case& s)
      : ldc(s.n + s.gap * 16 / static_cast<int64_t>(bytes_of(s.c_dtype))),
        ld_add(s.n + 2 * s.gap * 16 / static_cast<int64_t>(bytes_of(s.out_dtype))),
        ld_out(s.add == Add::kInPlace ? ld_add
                                      : s.n + 3 * s.gap * 16 / static_cast<int64_t>(bytes_of(s.out_dtype))),
        token_row(static_cast<size_t>(s.routing.choices()) * 4),
        weights(token_row.size()),
        c(static_cast<size_t>(s.routing.choices() * ldc) * bytes_of(s.c_dtype)),
        add(static_cast<size_t>(s.routing.tokens * ld_add) * bytes_of(s.out_dtype)),
        out(static_cast<size_t>(s.routing.tokens * ld_out) * bytes_of(s.out_dtype)),
        out_after(out) {
    Arrays arrays(s.routing);
    arrays.expect(s.routing, false);
    token_row = arrays.token_row;
    // What is no row adds nothing, whatever its weight is.
    const int32_t outside[] = {INT32_MIN, s.routing.choices(), INT32_MAX, -7};
    Rng random(static_cast<uint64_t>(s.n));
    for (int32_t i = 0, turn = 0; i < s.routing.choices(); ++i) {
      const bool no_row = token_row.get<int32_t>(i) < 0;
      if (no_row) token_row.put(i, outside[turn++ % 4]);
      const float weight = std::ldexp(1 + static_cast<float>(random.below(1 << 23)) * 0x1p-23f, -2);
      weights.put(i, no_row ? NAN : turn % 5 == 4 ? -weight : weight);
    }
    fill(c, s.c_dtype, 5);
    fill(add, s.out_dtype, 6);
    if (s.add == Add::kInPlace) out = add;
    out_after = out;
    expect(s);
  }

 private:
  void expect(const Case& s) {
    for (int64_t token = 0; token < s.routing.tokens; ++token)
      for (int64_t column = 0; column < s.n; ++column) {
        float sum = 0;
        for (int64_t slot = 0; slot < s.routing.top_k; ++slot) {
          const int64_t choice = token * s.routing.top_k + slot;
          const auto row = token_row.get<int32_t>(choice);
          if (row < 0 || row >= s.routing.choices()) continue;
          const float x = element(s.c_dtype, c, row * ldc + column);
          sum = s.weighted ? multiply_add(weights.get<float>(choice), x, sum) : sum + x;
        }
        if (s.add != Add::kNone) sum += element(s.out_dtype, add, token * ld_add + column);
        put_nearest(s.out_dtype, out_after, token * ld_out + column, sum);
      }
  }
};

template <class Buffers>
dualgemm_moe_combine_args_t args_of(const Case& s, const Sums& sums, Buffers& token_row, Buffers& weights,
                                    Buffers& c, Buffers& add, Buffers& out) {
  dualgemm_moe_combine_args_t args;
  dualgemm_moe_combine_args_init(&args);
  args.tokens = s.routing.tokens, args.top_k = s.routing.top_k, args.n = s.n;
  args.c_dtype = s.c_dtype, args.out_dtype = s.out_dtype;
  args.token_row = token_row.template data<int32_t>();
  if (s.weighted) args.topk_weights = weights.template data<float>();
  args.c = c.data(), args.out = out.data();
  if (s.add == Add::kOther) args.add = add.data();
  if (s.add == Add::kInPlace) args.add = out.data();
  if (s.gap == 0) return args;
  args.ldc = sums.ldc, args.ld_out = sums.ld_out;
  if (s.add != Add::kNone) args.ld_add = sums.ld_add;
  return args;
}

void check_sums(const Case& s) {
  INFO(s.routing.text() << ", n " << s.n << ", c " << s.c_dtype << ", out " << s.out_dtype << ", add "
                        << static_cast<int>(s.add) << ", gap " << s.gap << ", weighted " << s.weighted);
  Sums sums(s);
  {
    const DeviceBuffer token_row(sums.token_row), weights(sums.weights), c(sums.c), add(sums.add),
        out(sums.out);
    const dualgemm_moe_combine_args_t args = args_of(s, sums, token_row, weights, c, add, out);
    check_status(dualgemm_moe_combine(&args, nullptr));
    CHECK(out.difference(sums.out_after) == "");
    CHECK(c.difference(sums.c) == "");
    CHECK(add.difference(sums.add) == "");
    CHECK(weights.difference(sums.weights) == "");
  }
  const dualgemm_moe_combine_args_t args =
      args_of(s, sums, sums.token_row, sums.weights, sums.c, sums.add, sums.out);
  check_status(dualgemm_moe_combine_host(&args));
  CHECK(difference(sums.out, sums.out_after) == "");
}

}  // namespace

TEST_CASE("combine: each token gets the weighted sum of its rows, of every type, with what is added",
          "[moe]") {
  Judged judged;
  const int32_t ns[] = {8, 24, 256, 2040, 2056};
  int32_t turn = 0;
  for (const dualgemm_dtype_t c_dtype : kTypes)
    for (const dualgemm_dtype_t out_dtype : kTypes)
      for (const Add add : {Add::kNone, Add::kOther, Add::kInPlace}) {
        const Kind kind = turn % 5 == 4 ? Kind::kNone : turn % 2 ? Kind::kSome : Kind::kAll;
        const int32_t n = ns[turn % 5];
        for (const bool weighted : {false, true})
          check_sums({routing(n > 2000 ? 3 : 1 + turn, 1 + turn % 8, 9, kind, static_cast<uint64_t>(turn)), n,
                      c_dtype, out_dtype, add, turn % 3, weighted});
        ++turn;
      }
  CHECK(judged.findings() == "");
}

// Four CTAs run on each of 148 SMs.
TEST_CASE("combine: a CTA has several tokens", "[moe]") {
  check_sums({routing(900, 5, 4, Kind::kSome, 8), 16, DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP16, Add::kOther,
              0, true});
}

TEST_CASE("combine: what is too large becomes infinite, and NaN and infinities stay", "[moe]") {
  constexpr float kInfinity = HUGE_VALF;
  std::vector<float> c(16, 1.0f);
  const float rows[2][4] = {{60000, 3e38f, kInfinity, NAN}, {60000, 3e38f, -kInfinity, 0}};
  for (size_t i = 0; i < 4; ++i) c[i] = rows[0][i], c[8 + i] = rows[1][i];
  const DeviceArray<float> from(c);
  const DeviceArray<int32_t> token_row(std::vector<int32_t>{0, 1});
  for (const dualgemm_dtype_t dtype : kTypes) {
    INFO(dtype);
    const DeviceArray<uint32_t> out(8);
    dualgemm_moe_combine_args_t args;
    dualgemm_moe_combine_args_init(&args);
    args.tokens = 1, args.top_k = 2, args.n = 8;
    args.c_dtype = DUALGEMM_DTYPE_FP32, args.out_dtype = dtype;
    args.token_row = token_row.data(), args.c = from.data(), args.out = out.data();
    check_status(dualgemm_moe_combine(&args, nullptr));
    Buffer got(32);
    const std::vector<uint32_t> words = out.host();
    std::memcpy(got.host(), words.data(), 32);
    const float first = element(dtype, got, 0);
    CHECK((dtype == DUALGEMM_DTYPE_FP16 ? std::isinf(first) : std::fabs(first - 120000) < 500));
    CHECK(element(dtype, got, 1) == kInfinity);
    CHECK(std::isnan(element(dtype, got, 2)));
    CHECK(std::isnan(element(dtype, got, 3)));
    CHECK(element(dtype, got, 4) == 2);
  }
}

TEST_CASE("combine: every schedule gives the same bits", "[moe]") {
  const Case s{routing(9, 8, 5, Kind::kSome, 9),
               2056,
               DUALGEMM_DTYPE_FP32,
               DUALGEMM_DTYPE_FP32,
               Add::kInPlace,
               0,
               true};
  const Sums sums(s);
  for (const char* const mode : kModes) {
    INFO(mode);
    const Scheduled scheduled(mode, 23);
    const DeviceBuffer token_row(sums.token_row), weights(sums.weights), c(sums.c), add(sums.add),
        out(sums.out);
    const dualgemm_moe_combine_args_t args = args_of(s, sums, token_row, weights, c, add, out);
    check_status(dualgemm_moe_combine(&args, nullptr));
    CHECK(out.difference(sums.out_after) == "");
  }
}
