// moe_test.cpp -- what stands around the launches of a layer of experts, on the device and by the twins on
// the host, byte by byte: rows of the experts against a stable sort of the choices, sums of a token's rows
// against additions one by one, rows that are quantised by index against the same rows copied first, and rows
// of 16 bits against copies one by one. Every byte around the outputs stays. Most of it is judged.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "kernel/convert.h"
#include "kernel/judged.h"
#include "support/device_set.h"
#include "support/stream.h"

using namespace dualgemm_test;

namespace {

constexpr dualgemm_dtype_t kTypes[] = {DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP16, DUALGEMM_DTYPE_FP32};
constexpr const char* kModes[] = {"early",      "late",    "one-late", "starve-warp",
                                  "starve-cta", "reverse", "diverge",  "random"};

Buffer buffer_of(const std::vector<int32_t>& values) {
  Buffer out(values.size() * 4);
  for (size_t i = 0; i < values.size(); ++i) out.put(static_cast<int64_t>(i), values[i]);
  return out;
}

// The choices of a router.
struct Routing {
  int32_t tokens, top_k, experts;
  std::vector<int32_t> ids;

  int32_t choices() const { return tokens * top_k; }
  std::string text() const {
    return std::to_string(tokens) + " tokens, top_k " + std::to_string(top_k) + ", " +
           std::to_string(experts) + " experts";
  }
};

enum class Kind { kAll, kSome, kFew, kNone };  // of the experts are chosen; the rest is of other ranks

Routing routing(int32_t tokens, int32_t top_k, int32_t experts, Kind kind, uint64_t seed) {
  Rng random(seed);
  Routing out{tokens, top_k, experts, {}};
  for (int32_t i = 0; i < out.choices(); ++i) {
    const int32_t any = random.between(0, experts - 1);
    const int32_t others[] = {-1, experts, INT32_MIN, INT32_MAX};
    const int32_t other = others[random.below(4)];
    if (kind == Kind::kAll) out.ids.push_back(any);
    else if (kind == Kind::kSome) out.ids.push_back(random.below(2) ? any : other);
    else if (kind == Kind::kFew) out.ids.push_back(any / 7 * 7);
    else out.ids.push_back(other);
  }
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

size_t bytes_of(dualgemm_dtype_t dtype) { return dtype == DUALGEMM_DTYPE_FP32 ? 4 : 2; }

double decoded(dualgemm_dtype_t dtype, uint16_t bits) {
  return dtype == DUALGEMM_DTYPE_FP16 ? ref::fp16_decode(bits) : ref::bf16_decode(bits);
}
float element(dualgemm_dtype_t dtype, const Buffer& from, int64_t i) {
  if (dtype == DUALGEMM_DTYPE_FP32) return from.get<float>(i);
  return static_cast<float>(decoded(dtype, from.get<uint16_t>(i)));
}

// Returns what is nearest to x in a type of 16 bits, ties to even. Codes are ordered as their numbers are.
// Beyond the last finite one the next number would be as far away as the one before.
uint16_t nearest(dualgemm_dtype_t dtype, float x) {
  const uint16_t infinity = dtype == DUALGEMM_DTYPE_FP16 ? 0x7C00 : 0x7F80;
  const auto number = [&](uint16_t code) {
    if (code < infinity) return decoded(dtype, code);
    return 2 * decoded(dtype, infinity - 1) - decoded(dtype, infinity - 2);
  };
  const double magnitude = std::fabs(double{x});
  uint16_t low = 0, high = infinity;
  while (high - low > 1) {
    const auto middle = static_cast<uint16_t>((low + high) / 2);
    (number(middle) <= magnitude ? low : high) = middle;
  }
  const double below = magnitude - number(low), above = number(high) - magnitude;
  const uint16_t code = below < above || (below == above && low % 2 == 0) ? low : high;
  return static_cast<uint16_t>(code | (std::signbit(x) ? 0x8000 : 0));
}
void put_nearest(dualgemm_dtype_t dtype, Buffer& to, int64_t i, float x) {
  if (dtype == DUALGEMM_DTYPE_FP32) to.put(i, x);
  else to.put(i, nearest(dtype, x));
}

enum class Add { kNone, kOther, kInPlace };

struct Case {
  Routing routing;
  int32_t n;
  dualgemm_dtype_t c_dtype = DUALGEMM_DTYPE_BF16, out_dtype = DUALGEMM_DTYPE_BF16;
  Add add = Add::kNone;
  int64_t gap = 0;  // units of 16 bytes between rows
};

// Numbers so far apart that the order of additions decides.
void fill(Buffer& to, dualgemm_dtype_t dtype, uint64_t seed) {
  Rng random(seed);
  for (int64_t i = 0; i < static_cast<int64_t>(to.size() / bytes_of(dtype)); ++i) {
    const float x = std::ldexp(1 + static_cast<float>(random.below(256)) / 256, random.between(-13, 13));
    put_nearest(dtype, to, i, random.below(2) ? -x : x);
  }
}

struct Sums {
  int64_t ldc, ld_add, ld_out;
  Buffer token_row, c, add, out, out_after;

  explicit Sums(const Case& s)
      : ldc(s.n + s.gap * 16 / static_cast<int64_t>(bytes_of(s.c_dtype))),
        ld_add(s.n + 2 * s.gap * 16 / static_cast<int64_t>(bytes_of(s.out_dtype))),
        ld_out(s.add == Add::kInPlace ? ld_add
                                      : s.n + 3 * s.gap * 16 / static_cast<int64_t>(bytes_of(s.out_dtype))),
        token_row(static_cast<size_t>(s.routing.choices()) * 4),
        c(static_cast<size_t>(s.routing.choices() * ldc) * bytes_of(s.c_dtype)),
        add(static_cast<size_t>(s.routing.tokens * ld_add) * bytes_of(s.out_dtype)),
        out(static_cast<size_t>(s.routing.tokens * ld_out) * bytes_of(s.out_dtype)),
        out_after(out) {
    Arrays arrays(s.routing);
    arrays.expect(s.routing, false);
    token_row = arrays.token_row;
    // What is no row adds nothing.
    const int32_t outside[] = {INT32_MIN, s.routing.choices(), INT32_MAX, -7};
    for (int32_t i = 0, turn = 0; i < s.routing.choices(); ++i)
      if (token_row.get<int32_t>(i) < 0) token_row.put(i, outside[turn++ % 4]);
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
          const auto row = token_row.get<int32_t>(token * s.routing.top_k + slot);
          if (row < 0 || row >= s.routing.choices()) continue;
          sum += element(s.c_dtype, c, row * ldc + column);
        }
        if (s.add != Add::kNone) sum += element(s.out_dtype, add, token * ld_add + column);
        put_nearest(s.out_dtype, out_after, token * ld_out + column, sum);
      }
  }
};

template <class Buffers>
dualgemm_moe_combine_args_t args_of(const Case& s, const Sums& sums, Buffers& token_row, Buffers& c,
                                    Buffers& add, Buffers& out) {
  dualgemm_moe_combine_args_t args;
  dualgemm_moe_combine_args_init(&args);
  args.tokens = s.routing.tokens, args.top_k = s.routing.top_k, args.n = s.n;
  args.c_dtype = s.c_dtype, args.out_dtype = s.out_dtype;
  args.token_row = token_row.template data<int32_t>();
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
                        << static_cast<int>(s.add) << ", gap " << s.gap);
  Sums sums(s);
  {
    const DeviceBuffer token_row(sums.token_row), c(sums.c), add(sums.add), out(sums.out);
    const dualgemm_moe_combine_args_t args = args_of(s, sums, token_row, c, add, out);
    check_status(dualgemm_moe_combine(&args, nullptr));
    CHECK(out.difference(sums.out_after) == "");
    CHECK(c.difference(sums.c) == "");
    CHECK(add.difference(sums.add) == "");
  }
  const dualgemm_moe_combine_args_t args = args_of(s, sums, sums.token_row, sums.c, sums.add, sums.out);
  check_status(dualgemm_moe_combine_host(&args));
  CHECK(difference(sums.out, sums.out_after) == "");
}

}  // namespace

TEST_CASE("combine: each token gets the sum of its rows, of every type, with what is added", "[moe]") {
  Judged judged;
  const int32_t ns[] = {8, 24, 256, 2040, 2056};
  int32_t turn = 0;
  for (const dualgemm_dtype_t c_dtype : kTypes)
    for (const dualgemm_dtype_t out_dtype : kTypes)
      for (const Add add : {Add::kNone, Add::kOther, Add::kInPlace}) {
        const Kind kind = turn % 5 == 4 ? Kind::kNone : turn % 2 ? Kind::kSome : Kind::kAll;
        const int32_t n = ns[turn % 5];
        check_sums({routing(n > 2000 ? 3 : 1 + turn, 1 + turn % 8, 9, kind, static_cast<uint64_t>(turn)), n,
                    c_dtype, out_dtype, add, turn % 3});
        ++turn;
      }
  CHECK(judged.findings() == "");
}

// Four CTAs run on each of 148 SMs.
TEST_CASE("combine: a CTA has several tokens", "[moe]") {
  check_sums({routing(900, 5, 4, Kind::kSome, 8), 16, DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP16, Add::kOther});
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
  const Case s{routing(9, 8, 5, Kind::kSome, 9), 2056, DUALGEMM_DTYPE_FP32, DUALGEMM_DTYPE_FP32,
               Add::kInPlace};
  const Sums sums(s);
  for (const char* const mode : kModes) {
    INFO(mode);
    const Scheduled scheduled(mode, 23);
    const DeviceBuffer token_row(sums.token_row), c(sums.c), add(sums.add), out(sums.out);
    const dualgemm_moe_combine_args_t args = args_of(s, sums, token_row, c, add, out);
    check_status(dualgemm_moe_combine(&args, nullptr));
    CHECK(out.difference(sums.out_after) == "");
  }
}

namespace {

// A quantisation by index, and the same of a copy.
struct Gathered {
  Division division;
  int32_t k, x_rows;
  dualgemm_dtype_t dtype;
  dualgemm_scale_mode_t mode;
  int64_t ldx;
  std::vector<int32_t> index;
  Buffer x, copy;

  Gathered(const Division& d, int32_t k_, int32_t x_rows_, dualgemm_dtype_t type,
           dualgemm_scale_mode_t scales)
      : division(d),
        k(k_),
        x_rows(x_rows_),
        dtype(type),
        mode(scales),
        ldx(k + 16),
        x(static_cast<size_t>(x_rows * ldx) * bytes_of(type)),
        copy(static_cast<size_t>(d.rows * ldx) * bytes_of(type)) {
    Rng random(static_cast<uint64_t>(d.rows + k));
    fill(x, dtype, 10);
    fill(copy, dtype, 11);  // of rows that are not in use, too
    const auto row_bytes = static_cast<int64_t>(bytes_of(dtype)) * ldx;
    const int32_t outside[] = {-1, x_rows, INT32_MIN, INT32_MAX};
    for (int64_t row = 0; row < d.rows; ++row) {
      const bool inside = random.below(4) != 0;
      index.push_back(inside ? random.between(0, x_rows - 1) : outside[random.below(4)]);
      uint8_t* const to = copy.host() + row * row_bytes;
      if (inside) std::memcpy(to, x.host() + index.back() * row_bytes, static_cast<size_t>(row_bytes));
      else std::memset(to, 0, static_cast<size_t>(row_bytes));
    }
  }

  dualgemm_quantize_args_t args(const void* from, const int32_t* row_index, const int32_t* group_rows,
                                void* q, void* sf, float* scales) const {
    dualgemm_quantize_args_t args;
    dualgemm_quantize_args_init(&args);
    args.rows = division.rows, args.k = k, args.x_dtype = dtype, args.ldx = ldx;
    args.group_mode = division.mode, args.groups = division.groups();
    if (division.mode != DUALGEMM_GROUP_NONE) args.group_rows = group_rows;
    args.x = from, args.q = q, args.sf = sf;
    args.row_index = row_index, args.x_rows = row_index ? x_rows : 0;
    args.scale_mode = mode;
    if (mode == DUALGEMM_SCALE_GIVEN) args.global_scale = 3;
    if (mode == DUALGEMM_SCALE_TENSOR) args.tensor_scales = scales;
    if (mode == DUALGEMM_SCALE_ROW) args.row_scale = scales;
    return args;
  }
};

void check_gathered(const Gathered& g) {
  INFO(g.division.text() << ", k " << g.k << ", type " << g.dtype << ", mode " << g.mode);
  Buffer q(static_cast<size_t>(g.division.rows * g.k / 2)),
      scales(static_cast<size_t>(g.division.rows + 3) * 4),
      sf(static_cast<size_t>(g.division.blocks) * ref::sf_bytes(128, g.k));
  const DeviceArray<int32_t> index(g.index), group_rows(g.division.group_rows);
  const DeviceBuffer x(g.x), q_device(q), sf_device(sf), scales_device(scales);
  const auto on_device = g.args(x.data(), index.data(), group_rows.data(), q_device.data(), sf_device.data(),
                                scales_device.data<float>());
  check_status(dualgemm_quantize(&on_device, nullptr));
  Buffer q_host(q), sf_host(sf), scales_host(scales);
  const auto on_host = g.args(g.x.host(), g.index.data(), g.division.group_rows.data(), q_host.host(),
                              sf_host.host(), scales_host.data<float>());
  check_status(dualgemm_quantize_host_ex(&on_host));
  const auto of_copy =
      g.args(g.copy.host(), nullptr, g.division.group_rows.data(), q.host(), sf.host(), scales.data<float>());
  check_status(dualgemm_quantize_host_ex(&of_copy));
  CHECK(q_device.difference(q) == "");
  CHECK(sf_device.difference(sf) == "");
  CHECK(scales_device.difference(scales) == "");
  CHECK(difference(q_host, q) == "");
  CHECK(difference(sf_host, sf) == "");
  CHECK(difference(scales_host, scales) == "");
}

}  // namespace

TEST_CASE("quantise: rows by index are those of a copy", "[moe][quantize]") {
  Judged judged;
  const Division all[] = {batch_of(1), batch_of(133), offsets({33, 0, 129, 1}, 0, 0),
                          offsets({0, 64, 30}, 7, 20)};
  int32_t turn = 0;
  for (const dualgemm_scale_mode_t mode : {DUALGEMM_SCALE_GIVEN, DUALGEMM_SCALE_TENSOR, DUALGEMM_SCALE_ROW})
    for (const dualgemm_dtype_t dtype : kTypes)
      for (const Division& division : all) {
        if (turn++ % 2 == 0) check_gathered({division, 32 * (1 + turn % 5), turn % 40 + 1, dtype, mode});
      }
  CHECK(judged.findings() == "");
}

namespace {

// A copy by index of rows of 16 bits.
struct Copied {
  int32_t rows, k, x_rows;
  dualgemm_dtype_t dtype;
  bool compact;
  int64_t ldx, ld_out;
  Buffer index, x, out, out_after;

  Copied(int32_t rows_, int32_t k_, int32_t x_rows_, dualgemm_dtype_t type, bool without_gaps)
      : rows(rows_),
        k(k_),
        x_rows(x_rows_),
        dtype(type),
        compact(without_gaps),
        ldx(k + (compact ? 0 : 24)),
        ld_out(k + (compact ? 0 : 40)),
        index(static_cast<size_t>(rows) * 4),
        x(static_cast<size_t>(x_rows * ldx) * 2),
        out(static_cast<size_t>(rows * ld_out) * 2),
        out_after(out) {
    Rng random(static_cast<uint64_t>(rows + k));
    for (size_t i = 0; i < x.size(); ++i) x.host()[i] = static_cast<uint8_t>(random.below(256));
    for (size_t i = 0; i < out.size(); ++i) out.host()[i] = static_cast<uint8_t>(random.below(256));
    out_after = out;
    const int32_t outside[] = {-1, x_rows, INT32_MIN, INT32_MAX};
    for (int64_t row = 0; row < rows; ++row) {
      const bool inside = random.below(4) != 0;
      const int32_t from = inside ? random.between(0, x_rows - 1) : outside[random.below(4)];
      index.put(row, from);
      if (!inside) continue;
      for (int64_t column = 0; column < k; ++column)
        out_after.put(row * ld_out + column, x.get<uint16_t>(from * ldx + column));
    }
  }

  template <class Buffers>
  dualgemm_moe_gather_args_t args(Buffers& row_index, Buffers& from, Buffers& to) const {
    dualgemm_moe_gather_args_t args;
    dualgemm_moe_gather_args_init(&args);
    args.rows = rows, args.k = k, args.x_rows = x_rows, args.x_dtype = dtype;
    args.row_index = row_index.template data<int32_t>();
    args.x = from.data(), args.out = to.data();
    if (!compact) args.ldx = ldx, args.ld_out = ld_out;
    return args;
  }

  void check_device() const {
    const DeviceBuffer index_device(index), x_device(x), out_device(out);
    const dualgemm_moe_gather_args_t on_device = args(index_device, x_device, out_device);
    check_status(dualgemm_moe_gather(&on_device, nullptr));
    CHECK(out_device.difference(out_after) == "");
    CHECK(x_device.difference(x) == "");
    CHECK(index_device.difference(index) == "");
  }
};

void check_copied(Copied c) {
  INFO(c.rows << " rows of " << c.x_rows << ", k " << c.k << ", type " << c.dtype << ", compact "
              << c.compact);
  c.check_device();
  const dualgemm_moe_gather_args_t on_host = c.args(c.index, c.x, c.out);
  check_status(dualgemm_moe_gather_host(&on_host));
  CHECK(difference(c.out, c.out_after) == "");
}

}  // namespace

// A tile is 32 rows by 256 columns.
TEST_CASE("gather: rows by index are copied, and those that nobody owns stay", "[moe]") {
  Judged judged;
  const int32_t ks[] = {8, 64, 72, 248, 256, 264, 520}, all_rows[] = {1, 31, 32, 33, 100};
  int32_t turn = 0;
  for (const int32_t k : ks)
    for (const int32_t rows : all_rows) {
      check_copied({rows, k, turn % 11 + 1, kTypes[turn % 2], turn % 3 == 0});
      ++turn;
    }
  CHECK(judged.findings() == "");
}

// Four CTAs run on each of 148 SMs.
TEST_CASE("gather: a CTA has several tiles", "[moe]") {
  check_copied({20000, 264, 300, DUALGEMM_DTYPE_FP16, false});
}

TEST_CASE("gather: every schedule gives the same bits", "[moe]") {
  const Copied c(70, 328, 9, DUALGEMM_DTYPE_BF16, false);
  for (const char* const mode : kModes) {
    INFO(mode);
    const Scheduled scheduled(mode, 29);
    c.check_device();
  }
}

namespace {

// A whole layer of experts: permute, quantise or gather, gate and up to NVFP4, down, combine.
struct Layer {
  bool quantises;  // else A is bf16, as x
  static constexpr int32_t kTokens = 21, kTopK = 3, kExperts = 4, kN = 96, kK = 64, kOut = 72,
                           kRows = kTokens * kTopK;
  DeviceArray<uint16_t> x;
  DeviceArray<float> topk_weights, row_weight, row_scale;
  DeviceArray<int32_t> ids, group_rows, row_token, token_row;
  DeviceArray<uint16_t> gathered;
  DeviceArray<uint8_t> a, sfa, b, sfb, hidden, sf_hidden, b_down, sfb_down;
  DeviceArray<uint16_t> c, out;

  explicit Layer(bool in_nvfp4)
      : quantises(in_nvfp4),
        x(some(kTokens * kK, 1)),
        topk_weights(std::vector<float>(kRows, 0.25f)),
        row_weight(kRows),
        row_scale(kRows),
        ids(kRows, 0),
        group_rows(kExperts + 1),
        row_token(kRows),
        token_row(kRows),
        gathered(kRows * kK),
        a(kRows * kK / 2),
        sfa(ref::sf_bytes(128, kK) * kExperts),
        b(bytes(2 * kExperts * kN * kK / 2, 2)),
        sfb(2 * kExperts * ref::sf_bytes(kN, kK), 0x38),
        hidden(kRows * kN / 2),
        sf_hidden(ref::sf_bytes(128, kN) * kExperts),
        b_down(bytes(kExperts * kOut * kN / 2, 3)),
        sfb_down(kExperts * ref::sf_bytes(kOut, kN), 0x30),
        c(kRows * kOut),
        out(kTokens * kOut) {}

  // The two launches of some rows in `a`; whose experts they are is left to the caller.
  dualgemm_args_t up_args(int32_t rows) const {
    dualgemm_args_t up;
    dualgemm_args_init(&up);
    up.m = rows, up.n = kN, up.k = kK;
    if (quantises) up.a = a.data(), up.sfa = sfa.data(), up.a_row_scale = row_scale.data();
    else up.a = gathered.data(), up.a_dtype = DUALGEMM_DTYPE_BF16;
    up.b1 = b.data(), up.b2 = b.data() + b.size() / 2;
    up.sfb1 = sfb.data(), up.sfb2 = sfb.data() + sfb.size() / 2;
    up.alpha1 = up.alpha2 = 0.0625f;
    up.c = hidden.data(), up.sfc = sf_hidden.data(), up.c_dtype = DUALGEMM_DTYPE_NVFP4;
    return up;
  }
  dualgemm_args_t down_args(int32_t rows) const {
    dualgemm_args_t down;
    dualgemm_args_init(&down);
    down.products = 1;
    down.m = rows, down.n = kOut, down.k = kN;
    down.a = hidden.data(), down.sfa = sf_hidden.data();
    down.b1 = b_down.data(), down.sfb1 = sfb_down.data();
    down.c_row_scale = row_weight.data();
    down.c = c.data();
    return down;
  }

  void enqueue_a(uint32_t flags, cudaStream_t stream) const {
    if (!quantises) {
      dualgemm_moe_gather_args_t gather;
      dualgemm_moe_gather_args_init(&gather);
      gather.flags = flags;
      gather.rows = kRows, gather.k = kK, gather.x_rows = kTokens;
      gather.row_index = row_token.data(), gather.x = x.data(), gather.out = gathered.data();
      check_status(dualgemm_moe_gather(&gather, stream));
      return;
    }
    dualgemm_quantize_args_t quantize;
    dualgemm_quantize_args_init(&quantize);
    quantize.flags = flags;
    quantize.rows = kRows, quantize.k = kK;
    quantize.group_mode = DUALGEMM_GROUP_OFFSETS, quantize.groups = kExperts;
    quantize.group_rows = group_rows.data();
    quantize.x = x.data(), quantize.q = a.data(), quantize.sf = sfa.data();
    quantize.scale_mode = DUALGEMM_SCALE_ROW, quantize.row_scale = row_scale.data();
    quantize.row_index = row_token.data(), quantize.x_rows = kTokens;
    check_status(dualgemm_quantize(&quantize, stream));
  }

  void enqueue(uint32_t flags, cudaStream_t stream) const {
    dualgemm_moe_permute_args_t permute;
    dualgemm_moe_permute_args_init(&permute);
    permute.flags = flags & DUALGEMM_FLAG_PDL;
    permute.tokens = kTokens, permute.top_k = kTopK, permute.experts = kExperts;
    permute.topk_ids = ids.data(), permute.topk_weights = topk_weights.data();
    permute.group_rows = group_rows.data(), permute.row_token = row_token.data();
    permute.token_row = token_row.data(), permute.row_weight = row_weight.data();
    check_status(dualgemm_moe_permute(&permute, stream));

    enqueue_a(flags & DUALGEMM_FLAG_PDL, stream);

    for (dualgemm_args_t args : {up_args(kRows), down_args(kRows)}) {
      args.flags = flags | DUALGEMM_FLAG_BATCH_INVARIANT;
      args.group_mode = DUALGEMM_GROUP_OFFSETS, args.groups = kExperts, args.group_rows = group_rows.data();
      check_status(dualgemm_launch_ex(&args, stream));
    }

    dualgemm_moe_combine_args_t combine;
    dualgemm_moe_combine_args_init(&combine);
    combine.flags = flags & DUALGEMM_FLAG_PDL;
    combine.tokens = kTokens, combine.top_k = kTopK, combine.n = kOut;
    combine.token_row = token_row.data(), combine.c = c.data(), combine.out = out.data();
    check_status(dualgemm_moe_combine(&combine, stream));
  }

  void quantise_token(int32_t token) const {
    dualgemm_quantize_args_t quantize;
    dualgemm_quantize_args_init(&quantize);
    quantize.rows = 1, quantize.k = kK;
    quantize.x = x.data() + token * kK, quantize.q = a.data(), quantize.sf = sfa.data();
    quantize.scale_mode = DUALGEMM_SCALE_ROW, quantize.row_scale = row_scale.data();
    check_status(dualgemm_quantize(&quantize, nullptr));
  }

  // The sums that token by token, expert by expert, the launch without groups gives.
  std::vector<uint16_t> token_by_token(const std::vector<int32_t>& choices) const;

  static std::vector<uint16_t> some(size_t count, uint64_t seed) {
    Rng random(seed);
    std::vector<uint16_t> values(count);
    for (uint16_t& bits : values)
      bits = static_cast<uint16_t>(random.below(2) << 15 | (0x3F00 + random.below(256)));
    return values;
  }
  static std::vector<uint8_t> bytes(size_t count, uint64_t seed) {
    Rng random(seed);
    std::vector<uint8_t> values(count);
    for (uint8_t& value : values) value = static_cast<uint8_t>(random.below(256));
    return values;
  }
};

std::vector<uint16_t> Layer::token_by_token(const std::vector<int32_t>& choices) const {
  std::vector<uint16_t> all(kTokens * kOut);
  const std::vector<float> weight(1, 0.25f);
  check_cuda(cudaMemcpy(row_weight.data(), weight.data(), sizeof(float), cudaMemcpyHostToDevice), "a weight");
  for (int32_t token = 0; token < kTokens; ++token) {
    std::vector<float> sums(kOut, 0.0f);
    for (int32_t slot = 0; slot < kTopK; ++slot) {
      const int32_t expert = choices[static_cast<size_t>(token * kTopK + slot)];
      if (expert < 0 || expert >= kExperts) continue;
      dualgemm_args_t up = up_args(1), down = down_args(1);
      if (quantises) quantise_token(token);
      else up.a = x.data() + token * kK;
      const auto of_expert = [expert](const void* start, size_t bytes) {
        return static_cast<const uint8_t*>(start) + static_cast<size_t>(expert) * bytes;
      };
      for (const void** weights : {&up.b1, &up.b2}) *weights = of_expert(*weights, size_t{kN} * kK / 2);
      for (const void** factors : {&up.sfb1, &up.sfb2}) *factors = of_expert(*factors, ref::sf_bytes(kN, kK));
      down.b1 = of_expert(down.b1, size_t{kOut} * kN / 2);
      down.sfb1 = of_expert(down.sfb1, ref::sf_bytes(kOut, kN));
      for (dualgemm_args_t* args : {&up, &down}) {
        args->flags = DUALGEMM_FLAG_BATCH_INVARIANT;
        check_status(dualgemm_launch_ex(args, nullptr));
      }
      const std::vector<uint16_t> got = c.host();
      for (size_t i = 0; i < kOut; ++i) sums[i] += static_cast<float>(ref::bf16_decode(got[i]));
    }
    for (size_t i = 0; i < kOut; ++i)
      all[static_cast<size_t>(token) * kOut + i] = nearest(DUALGEMM_DTYPE_BF16, sums[i]);
  }
  return all;
}

}  // namespace

namespace {

void check_layer(bool in_nvfp4) {
  const Layer layer(in_nvfp4);
  const Stream stream;
  layer.enqueue(0, stream.get());  // this loads the kernels, as dualgemm_init loads all
  check_cuda(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  check_cuda(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
  layer.enqueue(DUALGEMM_FLAG_PDL | DUALGEMM_FLAG_STATIC_WEIGHTS, stream.get());
  check_cuda(cudaStreamEndCapture(stream.get(), &graph), "cudaStreamEndCapture");
  check_cuda(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  for (const Kind kind : {Kind::kAll, Kind::kSome, Kind::kNone}) {
    INFO(static_cast<int>(kind));
    const Routing r = routing(Layer::kTokens, Layer::kTopK, Layer::kExperts, kind, 12);
    check_cuda(cudaMemcpy(layer.ids.data(), r.ids.data(), r.ids.size() * 4, cudaMemcpyHostToDevice), "ids");
    check_cuda(cudaMemset(layer.out.data(), 0xEE, layer.out.size() * 2), "cudaMemset");
    Judged judged;
    check_cuda(cudaGraphLaunch(executable, stream.get()), "cudaGraphLaunch");
    check_cuda(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
    CHECK(judged.findings() == "");
    const std::vector<uint16_t> out = layer.out.host();
    CHECK((kind == Kind::kNone) ==
          (std::count(out.begin(), out.end(), 0) == static_cast<int64_t>(out.size())));
    CHECK((out == layer.token_by_token(r.ids)));
  }
  check_cuda(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
  check_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
}

}  // namespace

TEST_CASE("the five calls of a layer are captured into one graph, and replay with the choices they then find",
          "[moe]") {
  check_layer(true);
}

TEST_CASE("the five calls of a layer take an A of 16 bits on Hopper", "[moe]") {
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  check_status(dualgemm_current_device(&device));
  if (device.cc_major == 9) check_layer(false);
}
