// quantize_fp8_test.cpp -- quantisation to FP8 on the host, against plain loops over the definition of E4M3:
// rounding with its ties, scales given, of the tensor and of rows, what has no number, a derived error bound,
// and which bytes are written.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "host/include/dualgemm.h"
#include "ref/formats.h"
#include "support/catch.hpp"
#include "support/rng.h"

namespace quantize_fp8_test {

constexpr float kMax = std::numeric_limits<float>::max();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr uint8_t kGuard = 0xA5, kNanCode = 0x7F;

// Computes E4M3 from its definition: 4 exponent bits, bias 7, 3 mantissa bits, a sign.
static double e4m3(int code) {
  const int magnitude = code & 0x7F;
  const double value =
      magnitude < 8 ? magnitude * 0x1p-9 : (1 + magnitude % 8 / 8.0) * std::ldexp(1.0, magnitude / 8 - 7);
  return code & 0x80 ? -value : value;
}

// Looks for the nearest of all numbers; of two that are equally near, the even code is it.
static uint8_t nearest(double x) {
  if (std::isnan(x)) return kNanCode;
  x = std::copysign(std::fmin(std::fabs(x), 1e9), x);  // so that doubles still tell the distances apart
  int best = -1;
  for (int code = 0; code < 256; ++code) {
    if ((code & 0x7F) == kNanCode || std::signbit(x) != (code >= 0x80)) continue;
    const double distance = std::fabs(e4m3(code) - x), least = best < 0 ? 1e30 : std::fabs(e4m3(best) - x);
    if (distance < least || (distance == least && code % 2 == 0)) best = code;
  }
  return static_cast<uint8_t>(best);
}

// What the header says of a row whose largest magnitude this is.
struct RowScale {
  float encode = 1, decode = 1;
};
static RowScale scale_of(float largest) {
  if (largest == 0) return {};
  const float capped = std::fmin(largest, kMax);
  return {std::fmin(448 / capped, kMax / 512), std::fmax(capped / 448, 512 / kMax)};
}

static float largest_of(const float* x, int32_t k) {
  float largest = 0;
  for (int32_t i = 0; i < k; ++i)
    if (std::fabs(x[i]) > largest) largest = std::fabs(x[i]);
  return largest;
}

static dualgemm_quantize_args_t args_of(const float* x, int32_t rows, int32_t k, void* q) {
  dualgemm_quantize_args_t args;
  dualgemm_quantize_args_init(&args);
  args.rows = rows;
  args.k = k;
  args.x_dtype = DUALGEMM_DTYPE_FP32;
  args.x = x;
  args.q = q;
  args.q_dtype = DUALGEMM_DTYPE_FP8_E4M3;
  return args;
}

static void quantize(const dualgemm_quantize_args_t& args) {
  const dualgemm_status_t status = dualgemm_quantize_host_ex(&args);
  INFO(dualgemm_last_error());
  REQUIRE(status == DUALGEMM_STATUS_SUCCESS);
}

static std::vector<uint8_t> given(std::vector<float> x, float scale) {
  x.resize((x.size() + 15) / 16 * 16);
  std::vector<uint8_t> q(x.size());
  dualgemm_quantize_args_t args = args_of(x.data(), 1, static_cast<int32_t>(x.size()), q.data());
  args.global_scale = scale;
  quantize(args);
  return q;
}

// Rows of all kinds: finite numbers of any size, zeros, subnormals, NaN and infinities among others.
static std::vector<float> rows_of_all_kinds(int32_t rows, int32_t k, uint64_t seed) {
  dualgemm_test::Rng random(seed);
  std::vector<float> x;
  for (int32_t r = 0; r < rows; ++r) {
    const float size = std::ldexp(1.0f, static_cast<int>(random.below(240)) - 120);
    for (int32_t i = 0; i < k; ++i) {
      const auto unit = static_cast<float>(2 * random.unit() - 1);
      switch (r % 6) {
        case 0: x.push_back(r % 12 == 0 ? -0.0f : 0.0f); break;
        case 1: x.push_back(unit * 0x1p-126f); break;
        case 2: x.push_back(random.below(9) == 0 ? kNan : unit * size); break;
        case 3: x.push_back(random.below(9) == 0 ? std::copysign(kInfinity, unit) : unit * kMax); break;
        default: x.push_back(unit * size);
      }
    }
  }
  return x;
}

TEST_CASE("E4M3 rounds to nearest, ties to even, keeps the sign and saturates", "[host][quantize]") {
  std::vector<float> x = {0, -0.0f, kMax, -kMax, kInfinity, -kInfinity, kNan, -kNan, 449, 464, 480, 1e-30f};
  x.push_back(std::numeric_limits<float>::signaling_NaN());
  for (int code = 0; code < 0x7F; ++code) {
    const auto value = static_cast<float>(e4m3(code)),
               middle = static_cast<float>((e4m3(code) + e4m3(code + 1)) / 2);
    for (const float one : {value, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, kMax)}) {
      x.push_back(one);
      x.push_back(-one);
    }
  }
  const std::vector<uint8_t> q = given(x, 1);
  for (size_t i = 0; i < x.size(); ++i) {
    INFO(x[i]);
    CHECK(q[i] == nearest(static_cast<double>(x[i])));
  }
  CHECK(q[1] == 0x80);
  CHECK(q[5] == 0xFE);
  CHECK(q[7] == 0x7F);
}

TEST_CASE("FP8: a given scale, and one in memory, are multiplied in", "[host][quantize]") {
  const std::vector<float> x = rows_of_all_kinds(24, 16, 1);
  for (const float scale : {1e-44f, 0.3f, 7.0f, kMax / 512}) {
    const std::vector<uint8_t> q = given(x, scale);
    for (size_t i = 0; i < x.size(); ++i) {
      const float scaled = x[i] * scale;
      CHECK(q[i] == nearest(static_cast<double>(scaled)));
    }
  }
  const float dev = 0.25f;
  std::vector<uint8_t> q(x.size());
  dualgemm_quantize_args_t args = args_of(x.data(), 24, 16, q.data());
  args.global_scale = 12;
  args.global_scale_dev = &dev;
  quantize(args);
  CHECK(q == given(x, 3));
}

TEST_CASE("FP8: a scale for each row", "[host][quantize]") {
  const int32_t rows = 61, k = 48;
  const std::vector<float> x = rows_of_all_kinds(rows, k, 2);
  std::vector<uint8_t> q(x.size());
  std::vector<float> scales(static_cast<size_t>(rows));
  dualgemm_quantize_args_t args = args_of(x.data(), rows, k, q.data());
  args.scale_mode = DUALGEMM_SCALE_ROW;
  args.row_scale = scales.data();
  quantize(args);
  for (int32_t r = 0; r < rows; ++r) {
    const float* const row = x.data() + r * k;
    const float largest = largest_of(row, k);
    const RowScale scale = scale_of(largest);
    CHECK(scales[static_cast<size_t>(r)] == scale.decode);
    int most = 0;
    for (int32_t i = 0; i < k; ++i) {
      const float scaled = row[i] * scale.encode;
      const uint8_t code = q[static_cast<size_t>(r * k + i)];
      CHECK(code == nearest(static_cast<double>(scaled)));
      if (code != kNanCode) most = std::max(most, code & 0x7F);
    }
    INFO("largest " << largest);
    if (largest > 448 * 512 / kMax) CHECK(most == 0x7E);
    if (largest == 0) CHECK(most == 0);
  }
}

// An element is off by half a step of E4M3, which is 2^-4 of it or 2^-10 of the row's scale, whichever is
// more. Three operations of fp32, of which each is off by 2^-24 at most, stand between x and what is rounded,
// and between that and the way back.
TEST_CASE("FP8: the way back is within half a step", "[host][quantize]") {
  const int32_t rows = 40, k = 64;
  dualgemm_test::Rng random(3);
  std::vector<float> x(static_cast<size_t>(rows * k)), scales(static_cast<size_t>(rows));
  for (float& value : x)
    value = static_cast<float>(2 * random.unit() - 1) * static_cast<float>(1 + random.below(99));
  std::vector<uint8_t> q(x.size());
  dualgemm_quantize_args_t args = args_of(x.data(), rows, k, q.data());
  args.scale_mode = DUALGEMM_SCALE_ROW;
  args.row_scale = scales.data();
  quantize(args);
  for (size_t i = 0; i < x.size(); ++i) {
    const double value = x[i], scale = scales[i / static_cast<size_t>(k)];
    const double half_step = std::max(std::fabs(value) * 0x1p-4, scale * 0x1p-10);
    CHECK(std::fabs(e4m3(q[i]) * scale - value) <= half_step + std::fabs(value) * 4 * 0x1p-24);
  }
}

TEST_CASE("FP8: one scale for all rows in use", "[host][quantize]") {
  const int32_t rows = 30, k = 32;
  for (const float huge : {1.0f, kInfinity, 0.0f}) {
    std::vector<float> x(static_cast<size_t>(rows * k), 0.0f);
    if (huge != 0)
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 37) - 18;
    x[5] = kNan;
    x[70] = -40 * huge;
    std::vector<uint8_t> q(x.size());
    float scales[3] = {-1, -1, -1};
    dualgemm_quantize_args_t args = args_of(x.data(), rows, k, q.data());
    args.scale_mode = DUALGEMM_SCALE_TENSOR;
    args.tensor_scales = scales;
    quantize(args);
    const float largest = std::fmin(40 * huge, kMax), scale = scale_of(largest).encode;
    CHECK(scales[0] == largest);
    CHECK(scales[1] == scale);
    CHECK(scales[2] == 1 / scale);
    for (size_t i = 0; i < x.size(); ++i) {
      const float scaled = x[i] * scale;
      CHECK(q[i] == nearest(static_cast<double>(scaled)));
    }
  }
}

TEST_CASE("FP8: 16 bits of x, rows apart, and nothing is written between them", "[host][quantize]") {
  const int32_t rows = 3, k = 16, ldx = 24, ldq = 48;
  for (const int32_t dtype : {DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP16}) {
    dualgemm_test::Rng random(4);
    std::vector<uint16_t> x(static_cast<size_t>(rows * ldx));
    for (uint16_t& bits : x) bits = static_cast<uint16_t>(random.below(0x10000));
    std::vector<uint8_t> q(static_cast<size_t>(rows * ldq), kGuard);
    dualgemm_quantize_args_t args = args_of(nullptr, rows, k, q.data());
    args.x = x.data();
    args.x_dtype = dtype;
    args.ldx = ldx;
    args.ldq = ldq;
    args.global_scale = 5;
    quantize(args);
    for (int32_t r = 0; r < rows; ++r)
      for (int32_t i = 0; i < ldq; ++i) {
        const uint16_t bits = x[static_cast<size_t>(r * ldx + std::min(i, k - 1))];
        const double value = dtype == DUALGEMM_DTYPE_BF16 ? ref::bf16_decode(bits) : ref::fp16_decode(bits);
        const float scaled = static_cast<float>(value) * 5;
        CHECK(q[static_cast<size_t>(r * ldq + i)] == (i < k ? nearest(static_cast<double>(scaled)) : kGuard));
      }
  }
}

TEST_CASE("FP8: groups, and rows by their index", "[host][quantize]") {
  const int32_t k = 16, x_rows = 5;
  const std::vector<float> x = rows_of_all_kinds(x_rows, k, 5);
  const std::vector<int32_t> index = {9, 4, -1, 2, 5, 4}, ends = {1, 3, 3, 5}, counts = {2, 0};
  std::vector<uint8_t> q(6 * 16, kGuard);
  std::vector<float> scales(6, -1);
  dualgemm_quantize_args_t args = args_of(x.data(), 6, k, q.data());
  args.group_mode = DUALGEMM_GROUP_OFFSETS;
  args.groups = 3;
  args.group_rows = ends.data();
  args.row_index = index.data();
  args.x_rows = x_rows;
  args.scale_mode = DUALGEMM_SCALE_ROW;
  args.row_scale = scales.data();
  quantize(args);
  for (int32_t r = 0; r < 6; ++r) {
    const bool in_use = r >= 1 && r < 5;
    const int32_t from = index[static_cast<size_t>(r)];
    const bool exists = from >= 0 && from < x_rows;
    const RowScale scale = scale_of(exists ? largest_of(x.data() + from * k, k) : 0);
    CHECK(scales[static_cast<size_t>(r)] == (in_use ? scale.decode : -1));
    for (int32_t i = 0; i < k; ++i) {
      const float scaled = exists ? x[static_cast<size_t>(from * k + i)] * scale.encode : 0;
      CHECK(q[static_cast<size_t>(r * k + i)] == (in_use ? nearest(static_cast<double>(scaled)) : kGuard));
    }
  }

  std::vector<uint8_t> masked(4 * 16, kGuard);
  args = args_of(x.data(), 2, k, masked.data());
  args.group_mode = DUALGEMM_GROUP_MASKED;
  args.groups = 2;
  args.group_rows = counts.data();
  quantize(args);
  for (size_t i = 0; i < masked.size(); ++i)
    CHECK(masked[i] == (i < 32 ? nearest(static_cast<double>(x[i])) : kGuard));
}

}  // namespace quantize_fp8_test
