// reference_test.cpp -- the library's reference against that of the tests, which shares nothing with it:
// every activation and output, everything that a launch may have, batches and groups as they lie in the
// tensors of a launch.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "host/include/dualgemm.h"
#include "ref/formats.h"
#include "support/catch.hpp"
#include "support/compare.h"
#include "support/extras.h"

namespace reference_test {

using namespace dualgemm_test;

constexpr uint8_t kPoison = 0xEE;

// The biases of a problem, as its launch has them.
static std::vector<uint8_t> bias_bytes(const Problem& p, const std::vector<float>& bias) {
  std::vector<uint8_t> out;
  for (const float value : bias) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    const bool wide = p.bias_dtype == DUALGEMM_DTYPE_FP32;
    if (!wide) bits >>= 16;
    const auto* const bytes = reinterpret_cast<const uint8_t*>(&bits);
    out.insert(out.end(), bytes, bytes + (wide ? 4 : 2));
  }
  return out;
}

// Everything that a launch of one problem writes, on the host.
struct Result {
  Output c, d[2];
  float amax = 0.25f;
  std::vector<double> y;
};

struct Asked {
  dualgemm_dtype_t dtype = DUALGEMM_DTYPE_FP32;
  dualgemm_activation_t activation = kDefaultActivation;
  dualgemm_dtype_t d_dtype = DUALGEMM_DTYPE_BF16;
};

static void set_activation(dualgemm_args_t& args, const Problem& p, dualgemm_activation_t activation) {
  args.activation = activation;
  if (activation == DUALGEMM_ACTIVATION_SWIGLU || activation == DUALGEMM_ACTIVATION_SWIGLU_STEP) {
    args.swiglu_alpha = static_cast<float>(p.parameters.alpha);
    args.swiglu_beta = static_cast<float>(p.parameters.beta);
    args.swiglu_limit = static_cast<float>(p.parameters.limit);
  } else if (activation == DUALGEMM_ACTIVATION_SITU) {
    args.situ_gate = static_cast<float>(p.parameters.situ_gate);
    args.situ_up = static_cast<float>(p.parameters.situ_up);
  }
}

static const float* given(const std::vector<float>& numbers) {
  return numbers.empty() ? nullptr : numbers.data();
}

static dualgemm_args_t operands_of(const Problem& p) {
  dualgemm_args_t args;
  dualgemm_args_init(&args);
  args.m = p.m;
  args.n = p.n;
  args.k = p.k;
  args.a = p.a.data();
  args.b1 = p.b1.data();
  args.b2 = p.b2.data();
  args.sfa = p.sfa.data();
  if (!p.a16.empty()) {
    args.a = p.a16.data();
    args.a_dtype = p.a16_dtype;
    args.sfa = nullptr;
  }
  args.sfb1 = p.sfb1.data();
  args.sfb2 = p.sfb2.data();
  args.lda = p.lda;
  args.ldb1 = p.ldb1;
  args.ldb2 = p.ldb2;
  args.alpha1 = p.alpha1;
  args.alpha2 = p.alpha2;
  return args;
}

// Returns rows of `pitch` elements without what is between them, which has to be poison still.
static Output without_gaps(const std::vector<uint8_t>& bytes, int64_t m, int64_t n, int64_t pitch,
                           dualgemm_dtype_t dtype) {
  Output out{m, n, dtype};
  const int64_t row_bytes = n * bits_of(dtype) / 8, pitch_bytes = pitch * bits_of(dtype) / 8;
  out.bits.resize(static_cast<size_t>(m * row_bytes / 2));
  for (int64_t row = 0; row < m; ++row) {
    std::memcpy(reinterpret_cast<uint8_t*>(out.bits.data()) + row * row_bytes,
                bytes.data() + row * pitch_bytes, static_cast<size_t>(row_bytes));
    for (int64_t i = row_bytes; i < pitch_bytes; ++i)
      REQUIRE(bytes[static_cast<size_t>(row * pitch_bytes + i)] == kPoison);
  }
  return out;
}

static Result reference_of(const Problem& p, const Asked& asked) {
  Result out;
  dualgemm_args_t args = operands_of(p);
  const std::vector<uint8_t> bias1 = bias_bytes(p, p.bias1), bias2 = bias_bytes(p, p.bias2);
  set_activation(args, p, asked.activation);
  args.a_row_scale = given(p.row_scale);
  args.c_row_scale = given(p.c_row_scale);
  args.bias1 = bias1.empty() ? nullptr : bias1.data();
  args.bias2 = bias2.empty() ? nullptr : bias2.data();
  args.bias_dtype = p.bias_dtype;
  args.c_dtype = asked.dtype;
  args.ldc = (p.n + 31) / 32 * 32 + 32;
  std::vector<uint8_t> c(static_cast<size_t>(p.m * args.ldc * 4), kPoison),
      d[2] = {c, c}, sfc(ref::sf_bytes(p.m, p.n), kPoison);
  args.c = c.data();
  if (asked.dtype == DUALGEMM_DTYPE_NVFP4) args.sfc = sfc.data();
  if (asked.dtype == DUALGEMM_DTYPE_NVFP4 || asked.dtype == DUALGEMM_DTYPE_FP8_E4M3)
    args.c_global_scale = p.encode;
  args.d1 = d[0].data();
  args.d2 = d[1].data();
  args.ldd1 = args.ldd2 = args.ldc;
  args.d_dtype = asked.d_dtype;
  args.amax_out = &out.amax;
  out.y.assign(static_cast<size_t>(p.m) * p.n, -1);
  REQUIRE(dualgemm_reference_host(&args, out.y.data()) == DUALGEMM_STATUS_SUCCESS);

  out.c = without_gaps(c, p.m, p.n, args.ldc, asked.dtype);
  out.c.encode = p.encode;
  for (int side : {0, 1}) out.d[side] = without_gaps(d[side], p.m, p.n, args.ldc, asked.d_dtype);
  if (asked.dtype == DUALGEMM_DTYPE_NVFP4)
    for (int64_t row = 0; row < (p.m + 127) / 128 * 128; ++row)
      for (int64_t block = 0; block < (p.n + 63) / 64 * 4; ++block) {
        const uint8_t factor = sfc[ref::sf_offset(p.n, row, block)];
        if (row < p.m && block < p.n / 16) out.c.factors.push_back(factor);
        else REQUIRE(factor == 0);
      }
  return out;
}

// The results of the tests' reference, which are to be met without the room that a kernel has.
template <class Exact>
static Exact without_error(Exact exact) {
  for (std::vector<float>& error : exact.error)
    for (size_t i = 0; i < error.size(); ++i)
      error[i] = static_cast<float>(0x1p-40 * std::fabs(exact.c[i]) + 1e-300);
  return exact;
}

TEST_CASE("the reference is that of the tests: every activation, output and extra", "[host][reference]") {
  size_t turn = 0;
  for (const dualgemm_activation_t activation : kActivations)
    for (const Extra& extra : extras()) {
      Rng random(turn);
      Problem p = make_problem(Data::kFullRange, 21, 80, 144, turn, turn % 2 * 32);
      extra.give(p, random);
      p.encode = 12;
      const Asked asked{kOutputs[turn % std::size(kOutputs)], activation,
                        kBeforeActivation[turn % std::size(kBeforeActivation)]};
      ++turn;
      INFO("activation " << activation << ", type " << asked.dtype << ", " << extra.name);
      const Result got = reference_of(p, asked);
      const ref::DualGemm expected = p.reference(activation);
      // What fp32 rounds: alphas by row factors, y and its encode scale. The rest is double.
      const Comparison c = compare(got.c, expected);
      INFO(c.first);
      CHECK(c.mismatches == 0);
      CHECK(c.exceptions <= 2);
      for (int side : {0, 1}) {
        const Comparison d = compare(got.d[side], without_error(p.reference_d(side)));
        INFO("D" << side + 1 << ": " << d.first);
        CHECK(d.mismatches == 0);
      }
      double largest = 0.25;
      for (size_t i = 0; i < got.y.size(); ++i) {
        CHECK(got.y[i] == Approx(expected.c[i]).epsilon(1e-9).margin(1e-30));
        largest = std::max(largest, std::fabs(got.y[i]));
      }
      CHECK(got.amax == static_cast<float>(largest));
    }
}

TEST_CASE("the reference takes an A of 16 bits", "[host][reference]") {
  for (const dualgemm_dtype_t a_dtype : {DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP16})
    for (const int64_t padding : {0, 32}) {
      const Problem p =
          with_sixteen_bits(make_problem(Data::kFullRange, 21, 80, 144, 5, padding), a_dtype, 6);
      const Result got = reference_of(p, {});
      const ref::DualGemm expected = p.reference();
      const Comparison c = compare(got.c, expected);
      INFO(c.first);
      CHECK(c.mismatches == 0);
      for (size_t i = 0; i < got.y.size(); ++i)
        CHECK(got.y[i] == Approx(expected.c[i]).epsilon(1e-9).margin(1e-30));
    }
}

TEST_CASE("the reference rounds an output once, to nearest", "[host][reference]") {
  for (const dualgemm_dtype_t dtype :
       {DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP16, DUALGEMM_DTYPE_FP32, DUALGEMM_DTYPE_FP8_E4M3}) {
    Problem p = make_problem(Data::kFullRange, 64, 128, 64, 7);
    p.c_row_scale.assign(64, 1);
    for (size_t row = 0; row < 64; ++row)
      p.c_row_scale[row] = std::ldexp(1.0f, static_cast<int>(row * 4) - 127);
    INFO("type " << dtype);
    const Comparison result = compare(reference_of(p, {dtype}).c, without_error(p.reference()));
    INFO(result.first);
    CHECK(result.mismatches == 0);
  }
}

TEST_CASE("the reference passes NaN on, and infinity where an output overflows", "[host][reference]") {
  Problem p = make_problem(Data::kFullRange, 6, 32, 64, 3);
  p.sfb1[ref::sf_offset(p.k, 5, 1)] = 0x7F;
  p.alpha2 = 1e30f;
  for (const dualgemm_dtype_t dtype : kOutputs) {
    const Result got = reference_of(p, {dtype});
    CHECK(std::isnan(got.amax));
    for (int64_t row = 0; row < 6; ++row) CHECK(std::isnan(got.y[static_cast<size_t>(row * 32 + 5)]));
    if (dtype != DUALGEMM_DTYPE_FP16) continue;
    CHECK(compare(got.c, p.reference()).first == "");
    CHECK(std::count(got.c.bits.begin(), got.c.bits.end(), uint16_t{0x7C00}) > 10);
  }
}

// The tensors of a set of problems as they lie in one launch: each at its stride, with OFFSETS the rows of
// all following each other and the factors of each from a block of its own.
struct HostSet {
  std::vector<uint8_t> a, sfa, b1, b2, sfb1, sfb2, c, sfc;
  std::vector<float> rows, alphas;
  std::vector<int32_t> group_rows;
  dualgemm_args_t args;

  HostSet(const ProblemSet& set, dualgemm_dtype_t dtype) : group_rows(set.group_rows()) {
    const Problem& first = set.problems[0];
    const bool shared = set.mode == DUALGEMM_GROUP_OFFSETS;
    args = operands_of(first);
    args.m = set.m;
    const int64_t count = static_cast<int64_t>(set.problems.size());
    const int64_t a_bytes = set.m * first.lda / 2,
                  sfa_bytes = static_cast<int64_t>(ref::sf_bytes(set.m, set.k));
    const std::vector<int64_t> blocks = set.row_blocks();
    const int64_t ldc = (set.n + 31) / 32 * 32;
    rows.assign(static_cast<size_t>(count * set.m), std::numeric_limits<float>::quiet_NaN());
    a.assign(static_cast<size_t>(count * a_bytes), 0x77);
    sfa.assign(static_cast<size_t>(count * (sfa_bytes + 512 * 8)), 0x7F);
    for (int64_t i = 0; i < count; ++i) {
      const Problem& p = set.problems[static_cast<size_t>(i)];
      const int64_t row = shared ? group_rows[static_cast<size_t>(i)] : i * set.m;
      std::copy(p.a.begin(), p.a.end(), a.begin() + row * first.lda / 2);
      std::copy(p.sfa.begin(), p.sfa.end(),
                sfa.begin() +
                    (shared ? blocks[static_cast<size_t>(i)] * static_cast<int64_t>(ref::sf_bytes(128, set.k))
                            : i * sfa_bytes));
      std::copy(p.row_scale.begin(), p.row_scale.end(), rows.begin() + row);
      b1.insert(b1.end(), p.b1.begin(), p.b1.end());
      b2.insert(b2.end(), p.b2.begin(), p.b2.end());
      sfb1.insert(sfb1.end(), p.sfb1.begin(), p.sfb1.end());
      sfb2.insert(sfb2.end(), p.sfb2.begin(), p.sfb2.end());
      alphas.push_back(p.alpha1);
      alphas.push_back(p.alpha2);
    }
    c.assign(static_cast<size_t>(count * set.m * ldc) * 4, kPoison);
    sfc.assign(sfa.size() + static_cast<size_t>(count) * ref::sf_bytes(set.m + 128, set.n), kPoison);
    args.a = a.data();
    args.sfa = sfa.data();
    args.b1 = b1.data();
    args.b2 = b2.data();
    args.sfb1 = sfb1.data();
    args.sfb2 = sfb2.data();
    args.a_row_scale = rows.data();
    args.c = c.data();
    args.ldc = ldc;
    args.c_dtype = dtype;
    if (dtype == DUALGEMM_DTYPE_NVFP4) args.sfc = sfc.data();
    if (dtype == DUALGEMM_DTYPE_NVFP4) args.c_global_scale = first.encode;
    args.alpha1 = args.alpha2 = 1;
    args.alpha1_dev = alphas.data();
    args.alpha2_dev = alphas.data() + 1;
    args.alpha_stride = 2;
    if (set.mode == DUALGEMM_GROUP_NONE) {
      args.batch = static_cast<int32_t>(count);
    } else {
      args.group_mode = set.mode;
      args.groups = static_cast<int32_t>(count);
      args.group_rows = group_rows.data();
    }
  }
};

TEST_CASE("the reference computes each problem of a launch as if it were alone", "[host][reference]") {
  std::vector<ProblemSet> sets = {make_batch(Data::kFullRange, 3, 20, 48, 80, 1, Alphas::kOwn),
                                  make_masked(Data::kFullRange, {5, 0, 130}, 48, 80, 2, 7),
                                  make_offsets(Data::kFullRange, {33, 0, 129, 1}, 48, 80, 3, 5, 4)};
  for (ProblemSet& set : sets)
    for (const dualgemm_dtype_t dtype : {DUALGEMM_DTYPE_FP32, DUALGEMM_DTYPE_NVFP4}) {
      INFO("mode " << set.mode << ", type " << dtype);
      Rng random(4);
      for (Problem& p : set.problems) {
        p.encode = 9;
        p.row_scale.clear();
        give_row_scale(p, random);
      }
      HostSet host(set, dtype);
      std::vector<uint8_t> c = host.c, sfc = host.sfc;
      const int64_t bits = bits_of(dtype), pitch = host.args.ldc * bits / 8;
      const std::vector<int64_t> blocks = set.row_blocks();
      const bool shared = set.mode == DUALGEMM_GROUP_OFFSETS;
      for (size_t i = 0; i < set.problems.size(); ++i) {
        const Problem& p = set.problems[i];
        if (p.m == 0) continue;
        const Result alone = reference_of(p, {dtype});
        const int64_t row = shared ? host.group_rows[i] : static_cast<int64_t>(i) * set.m;
        for (int64_t r = 0; r < p.m; ++r)
          std::memcpy(c.data() + (row + r) * pitch,
                      reinterpret_cast<const uint8_t*>(alone.c.bits.data()) + r * p.n * bits / 8,
                      static_cast<size_t>(p.n * bits / 8));
        if (dtype != DUALGEMM_DTYPE_NVFP4) continue;
        uint8_t* const factors =
            sfc.data() + (shared ? blocks[i] * static_cast<int64_t>(ref::sf_bytes(128, p.n))
                                 : static_cast<int64_t>(i * ref::sf_bytes(set.m, p.n)));
        std::fill(factors, factors + ref::sf_bytes(p.m, p.n), uint8_t{0});
        for (int64_t r = 0; r < p.m; ++r)
          for (int64_t block = 0; block < p.n / 16; ++block)
            factors[ref::sf_offset(p.n, r, block)] =
                alone.c.factors[static_cast<size_t>(r * (p.n / 16) + block)];
      }
      REQUIRE(dualgemm_reference_host(&host.args, nullptr) == DUALGEMM_STATUS_SUCCESS);
      CHECK((host.c == c));
      CHECK((host.sfc == sfc));
    }
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kMax = std::numeric_limits<float>::max(), kLeast = std::numeric_limits<float>::min();

struct Steps {
  float alpha = 0, row_scale = 1, weight = 1;
  float gate = 4, up = 25;  // SITU's bounds
  uint32_t flags = 0;
};
struct Stepped {
  double g, y;
  float c;
};

// Returns element 0 of a product whose sums are 16, with these biases.
static Stepped stepped(dualgemm_activation_t activation, float g, float u, const Steps& steps = {}) {
  Problem p = make_problem(Data::kIntegers, 1, 16, 32, 1);
  for (std::vector<uint8_t>* codes : {&p.a, &p.b1, &p.b2})
    std::fill(codes->begin(), codes->end(), uint8_t{0});
  for (std::vector<uint8_t>* codes : {&p.a, &p.b1, &p.b2})
    std::fill_n(codes->begin(), 8, uint8_t{0x22});  // sixteen ones, then zeros
  p.sfa[0] = p.sfb1[0] = p.sfb2[0] = 0x38;          // 1
  dualgemm_args_t args = operands_of(p);
  args.alpha1 = args.alpha2 = steps.alpha;
  args.flags = steps.flags;
  args.a_row_scale = &steps.row_scale;
  args.c_row_scale = &steps.weight;
  const std::vector<float> bias1(16, g), bias2(16, u);
  args.bias1 = bias1.data();
  args.bias2 = bias2.data();
  args.bias_dtype = args.c_dtype = args.d_dtype = DUALGEMM_DTYPE_FP32;
  args.activation = activation;
  if (activation == DUALGEMM_ACTIVATION_SITU) args.situ_gate = steps.gate, args.situ_up = steps.up;
  std::vector<float> c(16), d1(16), d2(16);
  std::vector<double> y(16);
  args.c = c.data();
  args.d1 = d1.data();
  args.d2 = d2.data();
  REQUIRE(dualgemm_reference_host(&args, y.data()) == DUALGEMM_STATUS_SUCCESS);
  return {d1[0], y[0], c[0]};
}

TEST_CASE("the reference's steps have the range of fp32: a gate that underflows makes NaN of an infinite up",
          "[host][reference]") {
  const auto swiglu = DUALGEMM_ACTIVATION_SWIGLU, step = DUALGEMM_ACTIVATION_SWIGLU_STEP;
  const auto tanh = DUALGEMM_ACTIVATION_GEGLU_TANH, erf = DUALGEMM_ACTIVATION_GEGLU_ERF;
  const auto glu = DUALGEMM_ACTIVATION_GLU, situ = DUALGEMM_ACTIVATION_SITU;
  const Steps exact{.flags = DUALGEMM_FLAG_EXACT_ACT};
  // The sigmoid of -100 is 3.7e-44, of -80 1.8e-35; exp(-g^2 / 2) of -14 is 2.7e-43, of -12 5.4e-32.
  for (const auto& [activation, none, some] :
       {std::tuple(swiglu, -100.0f, -80.0f), std::tuple(step, -100.0f, -80.0f),
        std::tuple(glu, -100.0f, -80.0f), std::tuple(tanh, -12.0f, -8.0f), std::tuple(erf, -14.0f, -12.0f)}) {
    INFO("activation " << activation);
    const float sign = activation == glu ? 1.0f : -1.0f;
    CHECK(std::isnan(stepped(activation, none, kInfinity).y));
    CHECK(std::isnan(stepped(activation, none, -kInfinity).c));
    CHECK(stepped(activation, none, 5).y == 0);
    CHECK(stepped(activation, some, kInfinity).y == sign * kInfinity);
    // In fp64 nothing is lost.
    CHECK(stepped(activation, none, kInfinity, exact).y == sign * kInfinity);
  }
  CHECK(stepped(situ, -100, kInfinity).y == 0);  // its up is bounded
  // One step of fp64, whose result is a subnormal float.
  CHECK(stepped(swiglu, -100, 1, exact).y ==
        Approx(-100 / (1 + std::exp(100.0))).epsilon(0).margin(0x1p-149));
}

TEST_CASE("the reference's steps have the range of fp32: what leaves it does not come back",
          "[host][reference]") {
  const auto reglu = DUALGEMM_ACTIVATION_REGLU, situ = DUALGEMM_ACTIVATION_SITU;
  CHECK(stepped(reglu, 1e30f, 1e30f, {.weight = 1e-30f}).y == kInfinity);
  CHECK(stepped(reglu, 1e30f, 1e30f, {.weight = 1e-30f}).c == kInfinity);
  CHECK(stepped(reglu, 1e30f, 1e30f, {.weight = 1e-30f, .flags = DUALGEMM_FLAG_EXACT_ACT}).y == kInfinity);
  CHECK(stepped(reglu, 1e-30f, 1e-30f, {.weight = 1e30f}).y == 0);
  CHECK(stepped(reglu, 1, 1, {.weight = kInfinity}).y == kInfinity);
  // The alpha times the row's factor is one step, and the sum of 16 times that another.
  CHECK(stepped(reglu, 0, 1, {.alpha = 1e30f, .row_scale = 1e30f}).g == kInfinity);
  CHECK(stepped(reglu, 3, 1, {.alpha = 1e-30f, .row_scale = 1e-30f}).g == 3);
  CHECK(std::isnan(stepped(reglu, -kInfinity, 1, {.alpha = 1e38f}).g));
  CHECK(stepped(reglu, 0, 1, {.alpha = kMax / 16}).g == kMax / 16 * 16);
  // Bounds of SITU at the ends of what is legal.
  const Steps largest{.gate = kMax, .up = kMax}, small{.gate = kLeast, .up = kMax};
  CHECK(stepped(situ, kMax, kMax, largest).y == kInfinity);
  CHECK(stepped(situ, 1e10f, 1, largest).y == Approx(1e10).epsilon(1e-12));
  CHECK(stepped(situ, -20, kMax, small).y == 0);
  CHECK(stepped(situ, 20, kMax, small).y == Approx(kLeast * (kMax * std::tanh(1.0))).epsilon(1e-6));
  CHECK(stepped(situ, -20, kMax, {.gate = kLeast, .up = kMax, .flags = DUALGEMM_FLAG_EXACT_ACT}).y ==
        Approx(-kLeast / (1 + std::exp(20.0)) * (kMax * std::tanh(1.0))).epsilon(1e-6));
}

TEST_CASE("the reference of K = 0 is zero, and it refuses what a launch refuses", "[host][reference]") {
  const Problem p = make_problem(Data::kFullRange, 3, 32, 64, 5);
  dualgemm_args_t args = operands_of(p);
  std::vector<uint8_t> c(3 * 32 * 2, kPoison);
  args.c = c.data();
  args.k = 40;
  CHECK(dualgemm_reference_host(&args, nullptr) == DUALGEMM_STATUS_INVALID_SHAPE);
  CHECK(std::string(dualgemm_last_error()) == "k=40: must be a multiple of 16");
  args.k = 64;
  args.lda = 0;
  args.c_dtype = DUALGEMM_DTYPE_NVFP4;
  CHECK(dualgemm_reference_host(&args, nullptr) == DUALGEMM_STATUS_NULL_POINTER);
  CHECK(dualgemm_reference_host(nullptr, nullptr) == DUALGEMM_STATUS_NULL_POINTER);
  for (const uint8_t byte : c) CHECK(byte == kPoison);
  args.c_dtype = DUALGEMM_DTYPE_BF16;
  args.k = 0;
  args.swiglu_beta = -1;
  args.a = nullptr;
  REQUIRE(dualgemm_reference_host(&args, nullptr) == DUALGEMM_STATUS_SUCCESS);
  for (const uint8_t byte : c) CHECK(byte == 0);
}

}  // namespace reference_test
