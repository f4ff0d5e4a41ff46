// quantize_device_test.cpp -- quantisation on the device and by its twin on the host, byte by byte against
// the arithmetic that the header writes down: to NVFP4 and FP8, all types of x, scales given, of the tensor
// and of rows, numbers from subnormal to infinite, NaN, batches, groups and gathered rows; every byte around
// the outputs stays. All of it is judged.
#include <cmath>
#include <limits>

#include "kernel/convert.h"
#include "kernel/grouped.h"
#include "kernel/judged.h"
#include "support/device_set.h"
#include "support/stream.h"

using namespace dualgemm_test;

namespace {

constexpr float kMax = std::numeric_limits<float>::max();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr dualgemm_dtype_t kTypes[] = {DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP16, DUALGEMM_DTYPE_FP32};
constexpr dualgemm_dtype_t kNvfp4 = DUALGEMM_DTYPE_NVFP4, kFp8 = DUALGEMM_DTYPE_FP8_E4M3;

struct Case {
  Division division;
  int32_t k;
  dualgemm_dtype_t dtype = DUALGEMM_DTYPE_BF16;
  dualgemm_scale_mode_t mode = DUALGEMM_SCALE_GIVEN;
  float scale = 300;
  std::vector<float> scales_dev = {};  // of each problem, or one
  int64_t gap = 0;                     // units of 16 bytes between rows, twice as many between matrices
  bool special = false;                // with NaN, infinities and the like
  dualgemm_dtype_t q_dtype = kNvfp4;
  bool gathers = false;  // rows of x by a row_index

  bool fp8() const { return q_dtype == kFp8; }
  // Elements of q in 16 bytes.
  int64_t q_unit() const { return fp8() ? 16 : 32; }
};

size_t bytes_of(dualgemm_dtype_t dtype) { return dtype == DUALGEMM_DTYPE_FP32 ? 4 : 2; }

float decoded(dualgemm_dtype_t dtype, const Buffer& x, int64_t i) {
  if (dtype == DUALGEMM_DTYPE_FP32) return x.get<float>(i);
  const auto bits = x.get<uint16_t>(i);
  return static_cast<float>(dtype == DUALGEMM_DTYPE_FP16 ? ref::fp16_decode(bits) : ref::bf16_decode(bits));
}

// Returns the bits of a number of the type, drawn so that blocks are of all magnitudes, and few of any kind.
uint32_t draw(Rng& random, dualgemm_dtype_t dtype, int64_t block, bool special) {
  const int sign_bit = dtype == DUALGEMM_DTYPE_FP32 ? 31 : 15;
  const uint32_t infinity = dtype == DUALGEMM_DTYPE_FP32   ? 0x7F800000
                            : dtype == DUALGEMM_DTYPE_FP16 ? 0x7C00
                                                           : 0x7F80;
  const uint32_t one = dtype == DUALGEMM_DTYPE_FP32   ? 0x3F800000
                       : dtype == DUALGEMM_DTYPE_FP16 ? 0x3C00
                                                      : 0x3F80;
  const uint32_t sign = random.below(2) << sign_bit;
  const uint32_t binade = dtype == DUALGEMM_DTYPE_FP32   ? 1u << 23
                          : dtype == DUALGEMM_DTYPE_FP16 ? 1u << 10
                                                         : 1u << 7;
  if (special) switch (block % 7) {
      case 0: return 0;                                                   // zeros
      case 1: return sign | random.below(binade);                         // subnormals
      case 2: return sign | (infinity - 1 - random.below(3 * binade));    // huge
      case 3: return random.below(8) ? sign | one : infinity + 1 + sign;  // NaN among ones
      case 4: return random.below(8) ? sign | one : infinity | sign;      // infinities
      case 5: return sign | random.below(infinity);                       // anything finite
      default: break;
    }
  return sign | (one - 4 * binade + random.below(6 * binade));
}

struct Scale {
  float encode, decode;
};
Scale scale_for(float largest, dualgemm_dtype_t q_dtype) {
  if (largest == 0) return {1, 1};
  const float capped = std::fmin(largest, kMax), wanted = (q_dtype == kFp8 ? 448.0f : 2688.0f) / capped;
  const float encode = std::fmin(wanted, kMax / 512);
  return {encode, 1 / encode};
}
// Returns what ROW writes for a row.
float row_scale_for(float largest, dualgemm_dtype_t q_dtype) {
  if (q_dtype != kFp8 || largest == 0) return scale_for(largest, q_dtype).decode;
  const float capped = std::fmin(largest, kMax), decode = capped / 448;
  return std::fmax(decode, 512 / kMax);
}

// fmax takes a signalling NaN for more than a number.
float larger(float x, float y) { return y > x ? y : x; }

// Quantises sixteen numbers as the header says.
uint8_t quantise(const std::vector<float>& x, float scale, uint8_t* packed) {
  float largest = 0;
  bool nan = false;
  for (const float value : x) {
    nan = nan || std::isnan(value);
    largest = larger(largest, std::fabs(value));
  }
  const float a_sixth = 1.0f / 6.0f, sixth = scale * a_sixth, scaled = largest * sixth;
  const uint8_t factor = nan || scaled < 0 ? 0x7F : ref::ue4m3_encode(scaled);
  const float reciprocal = 1.0f / ref::ue4m3_decode(factor), encode = scale * reciprocal;
  for (size_t i = 0; i < 16; i += 2) {
    uint8_t codes[2] = {0, 0};
    for (size_t j = 0; j < 2 && factor != 0; ++j) {
      const float value = x[i + j] * encode;
      codes[j] = std::isnan(value) ? 7 : ref::e2m1_encode(value);
    }
    packed[i / 2] = static_cast<uint8_t>(codes[0] | codes[1] << 4);
  }
  return factor;
}

// The buffers of a case, before and after.
struct Tensors {
  int64_t ldx, ldq, stride_x, stride_q, stride_sf, stride_rows;
  Buffer x, q, sf, rows, tensor, scales, index;
  Buffer q_after, sf_after, rows_after, tensor_after;

  static int64_t padded(int64_t elements, int64_t unit) { return (elements + unit - 1) / unit * unit; }

  explicit Tensors(const Case& c)
      : ldx(c.k + c.gap * (16 / static_cast<int64_t>(bytes_of(c.dtype)))),
        ldq(padded(c.k, c.q_unit()) + c.gap * c.q_unit()),
        stride_x(c.division.rows * ldx + 2 * c.gap * (16 / static_cast<int64_t>(bytes_of(c.dtype)))),
        stride_q(c.division.rows * ldq + 2 * c.gap * c.q_unit()),
        stride_sf(c.fp8() ? 0
                          : c.division.blocks * static_cast<int64_t>(ref::sf_bytes(128, c.k)) + 16 * c.gap),
        stride_rows(c.division.rows + c.gap),
        x(static_cast<size_t>(c.division.matrices * stride_x) * bytes_of(c.dtype)),
        q(static_cast<size_t>(c.division.matrices * stride_q / c.q_unit() * 16)),
        sf(static_cast<size_t>(c.division.matrices * stride_sf)),
        rows(static_cast<size_t>(c.division.matrices * stride_rows) * 4),
        tensor(12),
        scales(c.scales_dev.size() * 4),
        index(c.gathers ? static_cast<size_t>(c.division.rows) * 4 : 0),
        q_after(q),
        sf_after(sf),
        rows_after(rows),
        tensor_after(tensor) {
    for (size_t i = 0; i < c.scales_dev.size(); ++i) scales.put(static_cast<int64_t>(i), c.scales_dev[i]);
    // Some rows are taken twice, some are not in x.
    for (int32_t row = 0; c.gathers && row < c.division.rows; ++row)
      index.put(row, row % 5 == 3 ? (row % 2 == 0 ? c.division.rows : -1 - row) : row / 2);
    fill_x(c);
    expect(c);
  }

 private:
  // Rows that are not in use are larger than all that are.
  void fill_x(const Case& c) {
    Rng random(static_cast<uint64_t>(c.k + 7 * c.division.rows));
    const auto put = [&](int64_t i, uint32_t bits) {
      if (c.dtype == DUALGEMM_DTYPE_FP32) x.put(i, bits);
      else x.put(i, static_cast<uint16_t>(bits));
    };
    const uint32_t huge = c.dtype == DUALGEMM_DTYPE_FP32   ? 0x7F000000
                          : c.dtype == DUALGEMM_DTYPE_FP16 ? 0x7800
                                                           : 0x7F00;
    for (int64_t i = 0; i < static_cast<int64_t>(x.size() / bytes_of(c.dtype)); ++i) put(i, huge);
    for (const InUse& use : c.division.in_use)
      for (int64_t row = use.first; row < use.first + use.count; ++row)
        for (int64_t i = 0; i < c.k; ++i)
          put(use.matrix * stride_x + row * ldx + i, draw(random, c.dtype, row * 3 + i / 16, c.special));
  }
  float value(const Case& c, const InUse& use, int64_t row, int64_t i) const {
    int64_t x_row = use.first + row;
    if (c.gathers) x_row = index.get<int32_t>(x_row);
    if (x_row < 0 || x_row >= c.division.rows) return 0;
    return decoded(c.dtype, x, use.matrix * stride_x + x_row * ldx + i);
  }
  float largest(const Case& c, const InUse& use, int64_t row) const {
    float out = 0;
    for (int64_t i = 0; i < c.k; ++i) out = larger(out, std::fabs(value(c, use, row, i)));
    return out;
  }
  void expect(const Case& c) {
    float all = 0;
    for (const InUse& use : c.division.in_use)
      for (int64_t row = 0; row < use.count; ++row) all = larger(all, largest(c, use, row));
    if (c.mode == DUALGEMM_SCALE_TENSOR) {
      tensor_after.put(0, std::min(all, kMax));  // an infinity counts as the largest
      tensor_after.put(1, scale_for(all, c.q_dtype).encode);
      tensor_after.put(2, scale_for(all, c.q_dtype).decode);
    }
    for (size_t p = 0; p < c.division.in_use.size(); ++p) {
      const InUse& use = c.division.in_use[p];
      float scale = c.mode == DUALGEMM_SCALE_TENSOR ? scale_for(all, c.q_dtype).encode : c.scale;
      if (!c.scales_dev.empty()) scale *= c.scales_dev[c.scales_dev.size() > 1 ? p : 0];
      expect_rows(c, use, scale);
    }
  }
  void expect_rows(const Case& c, const InUse& use, float scale) {
    const auto band = static_cast<int64_t>(ref::sf_bytes(128, c.k));
    uint8_t* const factors = sf_after.host() + use.matrix * stride_sf + use.block * band;
    if (!c.fp8()) std::fill(factors, factors + (use.count + 127) / 128 * band, uint8_t{0});
    for (int64_t row = 0; row < use.count; ++row) {
      if (c.mode == DUALGEMM_SCALE_ROW) {
        const float own = largest(c, use, row);
        scale = scale_for(own, c.q_dtype).encode;
        rows_after.put(use.matrix * stride_rows + use.first + row, row_scale_for(own, c.q_dtype));
      }
      const int64_t first = use.matrix * stride_q + (use.first + row) * ldq;
      for (int64_t i = 0; c.fp8() && i < c.k; ++i) {
        const float scaled = value(c, use, row, i) * scale;
        q_after.put(first + i, ref::e4m3_encode(scaled));
      }
      if (c.fp8()) continue;
      for (int64_t block = 0; block < c.k / 16; ++block) {
        std::vector<float> values;
        for (int64_t i = 0; i < 16; ++i) values.push_back(value(c, use, row, block * 16 + i));
        uint8_t* const codes = q_after.host() + first / 2 + block * 8;
        factors[ref::sf_offset(c.k, row, block)] = quantise(values, scale, codes);
      }
    }
  }
};

// Fills everything in but the pointers.
dualgemm_quantize_args_t args_of(const Case& c, const Tensors& t) {
  dualgemm_quantize_args_t args;
  dualgemm_quantize_args_init(&args);
  args.rows = c.division.rows;
  args.k = c.k;
  args.batch = c.division.batch;
  args.x_dtype = c.dtype;
  args.group_mode = c.division.mode;
  args.groups = c.division.groups();
  args.ldx = c.gap == 0 ? 0 : t.ldx;
  args.ldq = t.ldq;
  if (c.gap != 0 && c.division.mode != DUALGEMM_GROUP_OFFSETS) {
    args.batch_stride_x = t.stride_x;
    args.batch_stride_q = t.stride_q;
    args.batch_stride_sf = t.stride_sf;  // 0 in FP8
    if (c.mode == DUALGEMM_SCALE_ROW) args.batch_stride_row_scale = t.stride_rows;
  }
  args.scale_mode = c.mode;
  if (c.mode == DUALGEMM_SCALE_GIVEN) args.global_scale = c.scale;
  args.global_scale_stride = c.scales_dev.size() > 1 ? 1 : 0;
  args.q_dtype = c.q_dtype;
  if (c.gathers) args.x_rows = c.division.rows;
  return args;
}

template <class Buffers>
void point(dualgemm_quantize_args_t& args, const Case& c, Buffers& x, Buffers& q, Buffers& sf, Buffers& rows,
           Buffers& tensor, Buffers& scales, Buffers& index) {
  args.x = x.data();
  args.q = q.data();
  args.sf = c.fp8() ? nullptr : sf.data();
  if (c.gathers) args.row_index = index.template data<int32_t>();
  if (c.mode == DUALGEMM_SCALE_ROW) args.row_scale = rows.template data<float>();
  if (c.mode == DUALGEMM_SCALE_TENSOR) args.tensor_scales = tensor.template data<float>();
  if (!c.scales_dev.empty()) args.global_scale_dev = scales.template data<float>();
}

void check_case(const Case& c) {
  INFO(c.division.text() << ", k " << c.k << ", type " << c.dtype << ", mode " << c.mode << ", gap " << c.gap
                         << ", to type " << c.q_dtype << (c.gathers ? ", gathered" : ""));
  const Tensors t(c);
  dualgemm_quantize_args_t args = args_of(c, t);
  {
    const DeviceArray<int32_t> group_rows(c.division.group_rows);
    const DeviceBuffer x(t.x), q(t.q), sf(t.sf), rows(t.rows), tensor(t.tensor), scales(t.scales),
        index(t.index);
    point(args, c, x, q, sf, rows, tensor, scales, index);
    args.group_rows = group_rows.data();
    check_status(dualgemm_quantize(&args, nullptr));
    CHECK(q.difference(t.q_after) == "");
    CHECK(sf.difference(t.sf_after) == "");
    CHECK(rows.difference(t.rows_after) == "");
    CHECK(tensor.difference(t.tensor_after) == "");
    CHECK(x.difference(t.x) == "");
  }
  Buffer x(t.x), q(t.q), sf(t.sf), rows(t.rows), tensor(t.tensor), scales(t.scales), index(t.index);
  point(args, c, x, q, sf, rows, tensor, scales, index);
  args.group_rows = c.division.mode == DUALGEMM_GROUP_NONE ? nullptr : c.division.group_rows.data();
  check_status(dualgemm_quantize_host_ex(&args));
  CHECK(difference(q, t.q_after) == "");
  CHECK(difference(sf, t.sf_after) == "");
  CHECK(difference(rows, t.rows_after) == "");
  CHECK(difference(tensor, t.tensor_after) == "");
}

constexpr dualgemm_scale_mode_t kModes[] = {DUALGEMM_SCALE_GIVEN, DUALGEMM_SCALE_TENSOR, DUALGEMM_SCALE_ROW};

}  // namespace

TEST_CASE("quantise: rows of every kind of launch, every type and scale", "[quantize]") {
  Judged judged;
  const int32_t ks[] = {16, 48, 64, 176, 272};
  const std::vector<Division> all = divisions();
  size_t turn = 0;
  for (const dualgemm_dtype_t q_dtype : {kNvfp4, kFp8})
    for (const dualgemm_scale_mode_t mode : kModes)
      for (const dualgemm_dtype_t dtype : kTypes)
        for (size_t i = turn % 2; i < all.size(); i += 2, ++turn)
          check_case({all[i],
                      ks[turn % std::size(ks)],
                      dtype,
                      mode,
                      300,
                      {},
                      static_cast<int64_t>(turn % 3),
                      false,
                      q_dtype});
  CHECK(judged.findings() == "");
}

TEST_CASE("quantise: rows of x by their index, of which some do not exist", "[quantize]") {
  Judged judged;
  for (const dualgemm_dtype_t q_dtype : {kNvfp4, kFp8})
    for (const dualgemm_scale_mode_t mode : kModes)
      for (const Division& division : {batch_of(37), offsets({7, 0, 33}, 2, 5)}) {
        Case c{division, 80, DUALGEMM_DTYPE_BF16, mode};
        c.q_dtype = q_dtype;
        c.gathers = true;
        check_case(c);
      }
  CHECK(judged.findings() == "");
}

// Short rows have up to 8 KB, four of them are one tile; a CTA keeps 32 KB of a longer row.
TEST_CASE("quantise: FP8 rows around the lengths at which the work is divided differently", "[quantize]") {
  for (const dualgemm_dtype_t dtype : {DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP32})
    for (const int32_t k : {2048, 2064, 4096, 4112, 8192, 8208, 16384, 16400, 32784}) {
      Case c{batch_of(2), k, dtype, DUALGEMM_SCALE_ROW};
      c.q_dtype = kFp8;
      check_case(c);
    }
  Case c{batch_of(2), 16400};
  c.q_dtype = kFp8;
  check_case(c);
}

// Four CTAs run on each of 148 SMs.
TEST_CASE("quantise: a CTA quantises several tiles", "[quantize][grouped]") {
  for (const Division& division : many_problems(10))
    check_case({division, 5120, DUALGEMM_DTYPE_BF16, DUALGEMM_SCALE_TENSOR});
  for (const Division& division : many_problems(10)) {
    Case c{division, 48};
    c.q_dtype = kFp8;
    check_case(c);
  }
}

TEST_CASE("quantise: the largest magnitudes of a CTA's tiles do not mix", "[quantize]") {
  Judged judged;
  Case c{batch_of(1, 40), 80, DUALGEMM_DTYPE_BF16, DUALGEMM_SCALE_ROW};
  check_case(c);
  c = {batch_of(700), 32, DUALGEMM_DTYPE_BF16, DUALGEMM_SCALE_ROW};
  c.q_dtype = kFp8;
  check_case(c);
  c = {batch_of(700), 8208, DUALGEMM_DTYPE_BF16, DUALGEMM_SCALE_ROW};
  c.q_dtype = kFp8;
  check_case(c);
  CHECK(judged.findings() == "");
}

TEST_CASE("quantise: zeros, subnormals, the largest, infinities and NaN", "[quantize]") {
  for (const dualgemm_dtype_t q_dtype : {kNvfp4, kFp8})
    for (const dualgemm_dtype_t dtype : kTypes)
      for (const dualgemm_scale_mode_t mode : kModes) {
        Case c{batch_of(37), 272, dtype, mode};
        c.special = true;
        c.q_dtype = q_dtype;
        check_case(c);
        if (mode != DUALGEMM_SCALE_GIVEN) continue;
        for (const float scale : {1e-44f, 1e-30f, 1.0f, kMax / 512}) {
          c.scale = scale;
          check_case(c);
        }
      }
}

// Each row is of one kind: zeros, subnormal numbers, huge numbers.
TEST_CASE("quantise: FP8 rows of one magnitude, from zeros to the largest", "[quantize]") {
  for (const dualgemm_dtype_t dtype : kTypes)
    for (const dualgemm_scale_mode_t mode : kModes) {
      Case c{batch_of(21), 16, dtype, mode};
      c.special = true;
      c.q_dtype = kFp8;
      check_case(c);
    }
}

TEST_CASE("quantise: NaN makes the factor of its block NaN, and no other number", "[quantize]") {
  const Case c{batch_of(40), 80, DUALGEMM_DTYPE_FP32, DUALGEMM_SCALE_ROW};
  Tensors t(c);
  t.x.put(33 * t.ldx + 21, kNan);
  const DeviceBuffer x(t.x), q(t.q), sf(t.sf), rows(t.rows), tensor(t.tensor), scales(t.scales),
      index(t.index);
  dualgemm_quantize_args_t args = args_of(c, t);
  point(args, c, x, q, sf, rows, tensor, scales, index);
  check_status(dualgemm_quantize(&args, nullptr));
  t.sf_after.host()[ref::sf_offset(80, 33, 1)] = 0x7F;
  for (int i = 0; i < 8; ++i) t.q_after.host()[33 * t.ldq / 2 + 8 + i] = 0x77;
  CHECK(sf.difference(t.sf_after) == "");
  CHECK(q.difference(t.q_after) == "");
}

TEST_CASE("quantise: a scale on the device, for all problems or one each, is multiplied in", "[quantize]") {
  Judged judged;
  for (const dualgemm_dtype_t q_dtype : {kNvfp4, kFp8})
    for (const Division& division : {batch_of(20, 3), masked({5, 0, 130}, 3), offsets({7, 0, 33}, 2, 5)})
      for (const std::vector<float>& scales : {std::vector<float>{70}, {70, 1, 0.03f}})
        check_case({division, 80, DUALGEMM_DTYPE_BF16, DUALGEMM_SCALE_GIVEN, 3, scales, 0, false, q_dtype});
  CHECK(judged.findings() == "");
}

// What is below 0 has no factor: a factor has no sign. In FP8 it turns the signs.
TEST_CASE("quantise: scales on the device that no rule can look at", "[quantize]") {
  for (const dualgemm_dtype_t dtype : kTypes) {
    Case c{batch_of(37, 6), 272, dtype, DUALGEMM_SCALE_GIVEN, 3, {-1, -0.0f, 0, kInfinity, -kInfinity, kNan}};
    for (const dualgemm_dtype_t q_dtype : {kNvfp4, kFp8})
      for (const bool special : {false, true}) {
        c.q_dtype = q_dtype;
        c.special = special;
        check_case(c);
      }
  }
}

TEST_CASE("quantise: the scale of a tensor or a row makes its largest element the largest number",
          "[quantize]") {
  for (const float x : {0.0f, 1e-44f, 1e-35f, 1.0f, 3e38f, kInfinity}) {
    INFO(x);
    std::vector<float> values(32, 0);
    values[9] = -x;
    float host_scale = 0;
    if (std::isfinite(x)) check_status(dualgemm_global_scale_host(values.data(), 1, 32, 0, &host_scale));
    const DeviceArray<float> from(values), scales(3), row(1);
    const DeviceArray<uint8_t> q(16), sf(512);
    dualgemm_quantize_args_t args;
    dualgemm_quantize_args_init(&args);
    args.rows = 1;
    args.k = 32;
    args.x_dtype = DUALGEMM_DTYPE_FP32;
    args.x = from.data();
    args.q = q.data();
    args.sf = sf.data();
    args.scale_mode = DUALGEMM_SCALE_TENSOR;
    args.tensor_scales = scales.data();
    check_status(dualgemm_quantize(&args, nullptr));
    const std::vector<float> got = scales.host();
    CHECK(got[0] == std::min(x, kMax));
    if (std::isfinite(x)) CHECK(got[1] == host_scale);
    else CHECK(got[1] == 2688 / kMax);
    CHECK(got[2] == 1 / got[1]);
    args.scale_mode = DUALGEMM_SCALE_ROW;
    args.tensor_scales = nullptr;
    args.row_scale = row.data();
    check_status(dualgemm_quantize(&args, nullptr));
    CHECK(row.host()[0] == got[2]);
    if (x >= 1e-30f) CHECK(q.host()[4] == 0xF0);  // element 9 is -6, and the factor 448
    if (x >= 1e-30f) CHECK(sf.host()[0] == 0x7E);
  }
}

TEST_CASE("quantise: one matrix has the bytes of dualgemm_quantize_host", "[quantize]") {
  Case c{batch_of(133), 208, DUALGEMM_DTYPE_FP32};
  const Tensors t(c);
  std::vector<float> values(133 * 208);
  std::memcpy(values.data(), t.x.host(), values.size() * 4);
  Buffer q(t.q.size()), sf(t.sf.size());
  check_status(dualgemm_quantize_host(values.data(), 133, 208, 0, c.scale, q.host(), t.ldq, sf.host()));
  CHECK(difference(sf, t.sf_after) == "");
  for (int64_t row = 0; row < 133; ++row)
    CHECK(std::memcmp(q.host() + row * t.ldq / 2, t.q_after.host() + row * t.ldq / 2, 104) == 0);
}

namespace {

// Quantises rows of x for A of a launch, each with a scale of its own.
struct Activations {
  Division division;
  DeviceArray<uint16_t> x;
  DeviceArray<float> row_scale;

  Activations(const Division& d, const std::vector<uint16_t>& values)
      : division(d), x(values), row_scale(static_cast<size_t>(d.matrices * d.rows)) {}

  void quantise(const dualgemm_args_t& launch, uint32_t flags, cudaStream_t stream) const {
    dualgemm_quantize_args_t args;
    dualgemm_quantize_args_init(&args);
    args.flags = flags;
    args.rows = launch.m;
    args.k = launch.k;
    args.group_mode = launch.group_mode;
    args.groups = launch.groups;
    args.group_rows = launch.group_rows;
    args.x = x.data();
    args.q = const_cast<void*>(launch.a);
    args.sf = const_cast<void*>(launch.sfa);
    args.ldq = launch.lda;
    args.batch_stride_sf = launch.batch_stride_sfa;
    args.batch_stride_q = launch.batch_stride_a;
    args.scale_mode = DUALGEMM_SCALE_ROW;
    args.row_scale = row_scale.data();
    check_status(dualgemm_quantize(&args, stream));
  }
};

std::vector<uint16_t> some_bf16(size_t count, uint64_t seed) {
  Rng random(seed);
  std::vector<uint16_t> out(count);
  for (uint16_t& bits : out) bits = static_cast<uint16_t>(draw(random, DUALGEMM_DTYPE_BF16, 6, false));
  return out;
}

// Replaces A of a problem by these rows, as the twin on the host quantises them.
void take_rows(Problem& p, const uint16_t* rows) {
  p.row_scale.assign(static_cast<size_t>(p.m), 0);
  const std::vector<uint16_t> x(rows, rows + static_cast<int64_t>(p.m) * p.k);
  dualgemm_quantize_args_t args;
  dualgemm_quantize_args_init(&args);
  args.rows = p.m;
  args.k = p.k;
  args.x = x.data();
  args.q = p.a.data();
  args.sf = p.sfa.data();
  args.ldq = p.lda;
  args.scale_mode = DUALGEMM_SCALE_ROW;
  args.row_scale = p.row_scale.data();
  check_status(dualgemm_quantize_host_ex(&args));
}

}  // namespace

TEST_CASE("quantise and launch are captured into one graph, and replay with the rows they then find",
          "[quantize]") {
  Problem p = make_problem(Data::kFullRange, 65, 136, 272, 1);
  const std::vector<uint16_t> rows[] = {some_bf16(65 * 272, 2), some_bf16(65 * 272, 3)};
  take_rows(p, rows[0].data());
  DeviceProblem device(p, {});
  Activations activations(batch_of(65), rows[0]);
  dualgemm_args_t launch = device.args();
  launch.a_row_scale = activations.row_scale.data();
  const Stream stream;
  // This loads the kernels, as dualgemm_init loads all.
  activations.quantise(launch, 0, stream.get());
  check_status(dualgemm_launch_ex(&launch, stream.get()));
  const Captured graph([&](cudaStream_t stream) {
    activations.quantise(launch, DUALGEMM_FLAG_PDL, stream);
    check_status(dualgemm_launch_ex(&launch, stream));
  });
  Judged judged;
  for (const std::vector<uint16_t>& one : rows) {
    activations.x.upload(one);
    device.poison();
    graph.replay();
    take_rows(p, one.data());
    const Output out = device.download();
    CHECK((out.bits == run(p).bits));
    CHECK(compare(out, p.reference()).first == "");
  }
  CHECK(judged.findings() == "");
}

TEST_CASE("quantise: groups with counts on the device go into a launch of theirs, with PDL",
          "[quantize][grouped]") {
  for (const dualgemm_group_mode_t mode : kGroupModes) {
    INFO(text(mode));
    const std::vector<int32_t> counts = {40, 0, 129, 1};
    ProblemSet set = make_groups(mode, Data::kFullRange, counts, 72, 272, 4, 10);
    const bool shared = mode == DUALGEMM_GROUP_OFFSETS;
    const std::vector<uint16_t> x = some_bf16(static_cast<size_t>(shared ? 1 : 4) * set.m * 272, 5);
    int64_t row = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      take_rows(set.problems[i], x.data() + (shared ? row : static_cast<int64_t>(i) * set.m) * 272);
      row += counts[i];
    }
    const std::vector<Output> expected = run(set, {});
    const DeviceSet device(set, {});
    const Activations activations(shared ? offsets(counts, 0, 10) : masked(counts, 10), x);
    dualgemm_args_t launch = device.args();
    REQUIRE(launch.m == activations.division.rows);
    launch.a_row_scale = activations.row_scale.data();
    launch.flags = DUALGEMM_FLAG_PDL | DUALGEMM_FLAG_STATIC_WEIGHTS;
    // Whatever lay there is written over.
    check_cuda(
        cudaMemset(const_cast<void*>(launch.a), 0xFF, static_cast<size_t>(set.problems[0].lda) / 2 * 40),
        "cudaMemset");
    Judged judged;
    activations.quantise(launch, DUALGEMM_FLAG_PDL, nullptr);
    check_status(dualgemm_launch_ex(&launch, nullptr));
    const std::vector<Output> out = device.download();
    for (size_t i = 0; i < out.size(); ++i) CHECK((out[i].bits == expected[i].bits));
    CHECK(judged.findings() == "");
  }
}
