// formats_test.cpp -- E2M1, UE4M3, blocks and packing as others have them: numpy with ml_dtypes and the
// package gguf (unit/formats/make.py wrote their answers down), and CUDA's own headers, for all codes and
// every bf16.
#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "host/convert/nvfp4.h"
#include "host/include/dualgemm.h"
#include "ref/formats.h"
#include "support/catch.hpp"
#include "support/rng.h"

// The compiler's wheels lack a header that these include.
#if __has_include(<nv/target>)
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#define HAVE_CUDA_FORMATS
#endif

using namespace dualgemm;

static std::vector<std::string> lines_of(const std::string& name) {
  std::ifstream file(FORMATS "/" + name);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  REQUIRE(lines.size() > 3);
  REQUIRE(lines[0][0] == '#');
  lines.erase(lines.begin());
  return lines;
}

static std::vector<uint8_t> octets(const std::string& hex) {
  std::vector<uint8_t> out;
  for (size_t i = 0; i < hex.size(); i += 2)
    out.push_back(static_cast<uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  return out;
}

static float number(const std::string& hex) {
  return std::bit_cast<float>(static_cast<uint32_t>(std::stoul(hex, nullptr, 16)));
}

static std::vector<std::string> words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

static std::vector<float> numbers(const std::vector<std::string>& words, size_t first, size_t count) {
  std::vector<float> out;
  for (size_t i = first; i < first + count; ++i) out.push_back(number(words.at(i)));
  return out;
}

static bool same(float x, float y) {
  return std::isnan(x) ? std::isnan(y) : std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
}

TEST_CASE("E2M1 and E4M3 are those of ml_dtypes: all codes, all middles and what lies beside them",
          "[host][formats]") {
  std::map<std::string, std::vector<std::string>> lists;
  for (const std::string& line : lines_of("ml_dtypes.txt")) {
    const std::vector<std::string> all = words(line);
    if (all[0] != "block") lists[all[0]] = {all.begin() + 1, all.end()};
  }
  REQUIRE(lists.size() == 6);
  const auto check = [&](const std::string& name, size_t codes, auto decode, auto encode) {
    INFO(name);
    const std::vector<float> values = numbers(lists[name + "_values"], 0, codes);
    REQUIRE(lists[name + "_values"].size() == codes);
    for (size_t code = 0; code < codes; ++code) CHECK(same(decode(static_cast<uint8_t>(code)), values[code]));
    const std::vector<float> from = numbers(lists[name + "_from"], 0, lists[name + "_from"].size());
    const std::vector<uint8_t> to = octets(lists[name + "_to"].at(0));
    REQUIRE(from.size() == to.size());
    REQUIRE(from.size() > 2 * codes);
    for (size_t i = 0; i < from.size(); ++i) {
      INFO(from[i]);
      CHECK(encode(from[i]) == to[i]);
    }
  };
  check("e2m1", 16, from_e2m1, to_e2m1);
  check("e4m3", 127, from_ue4m3, to_ue4m3);
}

TEST_CASE("blocks are quantised and packed as numpy and ml_dtypes do it", "[host][formats]") {
  int blocks = 0;
  for (const std::string& line : lines_of("ml_dtypes.txt")) {
    const std::vector<std::string> all = words(line);
    if (all[0] != "block") continue;
    INFO("block " << blocks++);
    const std::vector<float> x = numbers(all, 2, 16);
    std::vector<uint8_t> q(8), sf(512);
    REQUIRE(dualgemm_quantize_host(x.data(), 1, 16, 0, number(all[1]), q.data(), 0, sf.data()) ==
            DUALGEMM_STATUS_SUCCESS);
    CHECK(sf[0] == octets(all[18]).at(0));
    CHECK(q == octets(all[19]));
  }
  CHECK(blocks == 24);
}

TEST_CASE("imported blocks of GGUF have the numbers that the package gguf gives them",
          "[host][formats][import]") {
  const std::vector<std::string> lines = lines_of("gguf.txt");
  const auto rows = static_cast<int32_t>(lines.size());
  std::vector<uint8_t> blocks;
  std::vector<float> expected;
  for (const std::string& line : lines) {
    const std::vector<std::string> all = words(line);
    const std::vector<uint8_t> row = octets(all[0]);
    blocks.insert(blocks.end(), row.begin(), row.end());
    for (size_t i = 0; i < all.at(1).size(); i += 4) expected.push_back(number(all[1].substr(i, 4) + "0000"));
  }
  const auto k = static_cast<int32_t>(expected.size()) / rows;
  REQUIRE(blocks.size() == static_cast<size_t>(rows) * k / 64 * 36);
  std::vector<uint8_t> q(static_cast<size_t>(rows) * k / 2), sf(ref::sf_bytes(rows, k));
  REQUIRE(dualgemm_import_gguf_host(blocks.data(), 0, rows, k, q.data(), 0, sf.data()) ==
          DUALGEMM_STATUS_SUCCESS);
  std::vector<float> got(expected.size());
  REQUIRE(dualgemm_dequantize_host(q.data(), 0, sf.data(), rows, k, 1, got.data(), 0) ==
          DUALGEMM_STATUS_SUCCESS);
  CHECK(got == expected);
}

#ifdef HAVE_CUDA_FORMATS

static float half_value(__half_raw raw) { return static_cast<float>(ref::fp16_decode(raw.x)); }

static uint8_t cuda_e2m1(float x) {
  return static_cast<uint8_t>(__nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest));
}
static uint8_t cuda_e4m3(float x) { return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3); }

TEST_CASE("E2M1 and UE4M3 are those of cuda_fp4.h and cuda_fp8.h", "[host][formats]") {
  for (uint8_t code = 0; code < 16; ++code)
    CHECK(same(from_e2m1(code), half_value(__nv_cvt_fp4_to_halfraw(code, __NV_E2M1))));
  for (int code = 0; code < 0x80; ++code)
    CHECK(same(from_ue4m3(static_cast<uint8_t>(code)),
               half_value(__nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(code), __NV_E4M3))));
  // Every bf16, and the floats beside it, among which are all numbers and middles of both formats.
  int differences = 0;
  for (uint32_t upper = 0; upper < 0x10000; ++upper)
    for (const uint32_t lower : {0u, 1u, 0xFFFFu}) {
      const auto x = std::bit_cast<float>(upper << 16 | lower);
      const float magnitude = std::fabs(x);
      if (to_e2m1(x) != cuda_e2m1(x) || to_ue4m3(magnitude) != cuda_e4m3(magnitude)) ++differences;
    }
  CHECK(differences == 0);
}

TEST_CASE("blocks are quantised and packed as cuda_fp4.h does it", "[host][formats]") {
  dualgemm_test::Rng random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    const auto scale = static_cast<float>(std::ldexp(1 + random.unit(), random.between(-8, 8)));
    float x[16], largest = 0;
    for (float& value : x) {
      value = static_cast<float>(std::ldexp(random.unit() - 0.5, random.between(-4, 11))) / scale;
      largest = std::fmax(largest, std::fabs(value));
    }
    uint8_t packed[8];
    const uint8_t factor = quantize_block(x, scale, packed);
    const float a_sixth = 1.0f / 6.0f, sixth = scale * a_sixth;
    REQUIRE(factor == cuda_e4m3(largest * sixth));
    if (factor == 0) continue;
    const float reciprocal =
        1.0f / half_value(__nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(factor), __NV_E4M3));
    const float encode = scale * reciprocal;
    for (int i = 0; i < 8; ++i) {
      const float2 two{x[2 * i] * encode, x[2 * i + 1] * encode};
      REQUIRE(packed[i] == __nv_cvt_float2_to_fp4x2(two, __NV_E2M1, cudaRoundNearest));
    }
  }
}
#endif
