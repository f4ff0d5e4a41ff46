// host_overlap_test.cpp -- the functions for host memory without a structure: an output may lie right before
// and right behind any other tensor, or in gaps between its rows, and no nearer; who is refused writes
// nothing.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "arguments.h"
#include "host/include/dualgemm.h"
#include "ref/formats.h"
#include "support/catch.hpp"

namespace host_overlap_test {

using namespace dualgemm_test;

// A tensor: how many bytes it takes from its first to its last.
struct Part {
  const char* name;
  size_t bytes;
  bool written;
};

// A function with its tensors, inputs first, each list in the order of the arguments.
struct Function {
  const char* name;
  std::vector<Part> parts;
  std::function<dualgemm_status_t(const std::vector<uint8_t*>&)> call;
};

static const float* floats(const uint8_t* at) { return reinterpret_cast<const float*>(at); }
static float* floats(uint8_t* at) { return reinterpret_cast<float*>(at); }

// All have gaps between their rows. Of x and of blocks none follows the last row; of q one does where it is
// written. The addresses of floats are multiples of four in every test.
constexpr int32_t kRows = 3, kColumns = 64, kLdx = 72, kLdq = 80, kRowBytes = 40, kPitch = 5,
                  kSplitRows = 130;
constexpr size_t kX = (2 * kLdx + kColumns) * sizeof(float), kCodes = 2 * kLdq / 2 + kColumns / 2,
                 kCodesWithGaps = kRows * kLdq / 2, kFactors = 512, kBlocks = 2 * kRowBytes + 36,
                 kPowers = 2 * kPitch + kColumns / 32;

static std::vector<Function> functions() {
  std::vector<Function> all = {
      {"dualgemm_quantize_host",
       {{"x", kX, false}, {"q", kCodesWithGaps, true}, {"sf", kFactors, true}},
       [](const auto& at) {
         return dualgemm_quantize_host(floats(at[0]), kRows, kColumns, kLdx, 1, at[1], kLdq, at[2]);
       }},
      {"dualgemm_dequantize_host",
       {{"q", kCodes, false}, {"sf", kFactors, false}, {"x", kX, true}},
       [](const auto& at) {
         return dualgemm_dequantize_host(at[0], kLdq, at[1], kRows, kColumns, 1, floats(at[2]), kLdx);
       }},
      {"dualgemm_import_gguf_host",
       {{"blocks", kBlocks, false}, {"q", kCodesWithGaps, true}, {"sf", kFactors, true}},
       [](const auto& at) {
         return dualgemm_import_gguf_host(at[0], kRowBytes, kRows, kColumns, at[1], kLdq, at[2]);
       }},
      {"dualgemm_import_mxfp4_host",
       {{"q", kCodes, false}, {"scales", kPowers, false}, {"sf", kFactors, true}, {"scale", 4, true}},
       [](const auto& at) {
         return dualgemm_import_mxfp4_host(at[0], kLdq, at[1], kPitch, kRows, kColumns, at[2], floats(at[3]));
       }},
  };
  const size_t half = ref::sf_bytes(kSplitRows, kColumns);
  for (const auto order : {DUALGEMM_ROWS_STACKED, DUALGEMM_ROWS_INTERLEAVED})
    all.push_back(
        {"dualgemm_sf_split_host",
         {{"sf", ref::sf_bytes(2 * kSplitRows, kColumns), false}, {"sf1", half, true}, {"sf2", half, true}},
         [order](const auto& at) {
           return dualgemm_sf_split_host(at[0], kSplitRows, kColumns, order, at[1], at[2]);
         }});
  return all;
}

// Memory whose bytes are zero, a legal number of every format.
class Arena {
 public:
  Arena() : bytes_(size_t{1} << 16) {}
  uint8_t* at(size_t offset) { return bytes_.data() + offset; }
  void clear() { std::fill(bytes_.begin(), bytes_.end(), uint8_t{0}); }
  bool untouched() const {
    return std::all_of(bytes_.begin(), bytes_.end(), [](uint8_t byte) { return byte == 0; });
  }

 private:
  std::vector<uint8_t> bytes_;
};

template <class Pointer>
static std::string named(const char* name, Pointer at) {
  std::ostringstream text;
  text << name << "=" << static_cast<const void*>(at);
  return text.str();
}

static void check_refused(dualgemm_status_t status, const std::string& text) {
  CHECK(std::string(dualgemm_status_name(status)) == "DUALGEMM_STATUS_ALIASING");
  CHECK(std::string(dualgemm_last_error()) == text);
}

static void check_accepted(dualgemm_status_t status) {
  INFO(dualgemm_last_error());
  CHECK(status == DUALGEMM_STATUS_SUCCESS);
}

// Puts `one`, which is written, into the middle and the other at distances from it that will just do, and
// that will just not.
static void check_pair(const Function& function, size_t one, size_t two) {
  constexpr size_t kMiddle = size_t{1} << 15;
  const Part &written = function.parts[one], &other = function.parts[two];
  const bool of_floats = std::string(written.name) == "x" || std::string(other.name) == "x";
  const size_t nearer = of_floats ? sizeof(float) : 1;
  REQUIRE((written.bytes % nearer == 0 && other.bytes % nearer == 0));
  Arena arena;
  const auto call = [&](size_t offset, bool legal) {
    INFO(function.name << ": " << written.name << ", and " << other.name << " at "
                       << static_cast<int64_t>(offset - kMiddle));
    arena.clear();
    std::vector<uint8_t*> at;
    for (size_t i = 0; i < function.parts.size(); ++i) at.push_back(arena.at(i * 4096));
    at[one] = arena.at(kMiddle), at[two] = arena.at(offset);
    const dualgemm_status_t status = function.call(at);
    if (legal) return check_accepted(status);
    // The output comes first, of two the one that is first among the arguments.
    const size_t first = other.written ? std::min(one, two) : one, second = first == one ? two : one;
    check_refused(status, named(function.parts[first].name, at[first]) + ": overlaps " +
                              named(function.parts[second].name, at[second]));
    CHECK(arena.untouched());
  };
  call(kMiddle, false);
  call(kMiddle - other.bytes, true);
  call(kMiddle - other.bytes + nearer, false);
  call(kMiddle + written.bytes, true);
  call(kMiddle + written.bytes - nearer, false);
}

TEST_CASE("host functions: no output overlaps an input or another output", "[host][overlap]") {
  for (const Function& function : functions())
    for (size_t one = 0; one < function.parts.size(); ++one)
      for (size_t two = 0; two < function.parts.size(); ++two)
        if (one != two && function.parts[one].written) check_pair(function, one, two);
}

TEST_CASE("host functions: two inputs may overlap", "[host][overlap]") {
  const std::vector<uint8_t> both(kFactors, 0x38);
  std::vector<float> x(kX / sizeof(float));
  check_accepted(
      dualgemm_dequantize_host(both.data(), kLdq, both.data(), kRows, kColumns, 1, x.data(), kLdx));
}

TEST_CASE("host functions: what reads and writes rows alone may do so in the gaps of another tensor",
          "[host][overlap]") {
  // Rows of x have 64 bytes, of q 8; both are 96 bytes apart.
  constexpr int32_t rows = 5, k = 16, ldx = 24, ldq = 192;
  Arena arena;
  uint8_t *const x = arena.at(4096), *const sf = arena.at(0);
  const auto call = [&](int32_t distance) {
    arena.clear();
    for (int32_t row = 0; row < rows; ++row) std::fill_n(x + distance + row * 96, 8, uint8_t{0x22});
    std::fill_n(sf, kFactors, uint8_t{0x38});
    return dualgemm_dequantize_host(x + distance, ldq, sf, rows, k, 1, floats(x), ldx);
  };
  for (const int32_t distance : {64, 70, 88, 64 + 96, 88 - 96, 64 - 4 * 96}) {
    INFO("distance " << distance);
    check_accepted(call(distance));
    for (int32_t row = 0; row < rows; ++row)
      for (int32_t i = 0; i < k; ++i) REQUIRE(floats(x)[row * ldx + i] == 1);
  }
  for (const int32_t distance : {63, 89, 63 + 96, 89 - 96, 0, 96}) {
    INFO("distance " << distance);
    check_refused(call(distance), named("x", x) + ": overlaps " + named("q", x + distance));
  }
  // Quantising writes what is between the rows of q, too.
  check_refused(dualgemm_quantize_host(floats(x), rows, k, ldx, 1, x + 64, ldq, sf),
                named("q", x + 64) + ": overlaps " + named("x", x));
}

TEST_CASE("host functions: all of an output may lie in one gap of an input", "[host][overlap]") {
  Arena arena;
  uint8_t *const in = arena.at(4096), *const elsewhere = arena.at(0);
  // Rows of 64 bytes of x, 256 apart, leave room for 16 of q; rows of 36 bytes of blocks, 548 apart, for 512
  // of sf, or for 64 of q.
  const auto quantize = [&](size_t distance) {
    return dualgemm_quantize_host(floats(in), 2, 16, 64, 1, in + distance, 0, elsewhere);
  };
  const auto import_factors = [&](size_t distance) {
    return dualgemm_import_gguf_host(in, 548, 2, 64, elsewhere, 0, in + distance);
  };
  const auto import_codes = [&](size_t distance) {
    return dualgemm_import_gguf_host(in, 548, 2, 64, in + distance, 0, elsewhere);
  };
  check_accepted(quantize(64));
  check_accepted(quantize(240));
  check_accepted(import_factors(36));
  check_accepted(import_codes(36));
  check_accepted(import_codes(484));
  for (const size_t distance : {63, 241})
    check_refused(quantize(distance), named("q", in + distance) + ": overlaps " + named("x", in));
  for (const size_t distance : {35, 37})
    check_refused(import_factors(distance), named("sf", in + distance) + ": overlaps " + named("blocks", in));
  for (const size_t distance : {35, 485})
    check_refused(import_codes(distance), named("q", in + distance) + ": overlaps " + named("blocks", in));
}

TEST_CASE("host functions: a matrix takes less than 2^48 bytes and ends within the addresses",
          "[host][overlap]") {
  Arena arena;
  uint8_t *const q = arena.at(0), *const sf = arena.at(4096), *const x = arena.at(8192);
  constexpr int64_t kFar = int64_t{1} << 47;
  const auto check = [](dualgemm_status_t status, dualgemm_status_t expected, const std::string& text) {
    CHECK(std::string(dualgemm_status_name(status)) == dualgemm_status_name(expected));
    CHECK(std::string(dualgemm_last_error()) == text);
  };
  const std::string far = "=140737488355328: 2 rows must take less than 2^48 bytes",
                    beyond = " bytes reach beyond the last address";
  check(dualgemm_quantize_host(floats(x), 2, 16, kFar, 1, q, 0, sf), kStride, "ldx" + far);
  check(dualgemm_dequantize_host(q, 0, sf, 2, 16, 1, floats(x), kFar), kStride, "ldx" + far);
  check(dualgemm_import_gguf_host(x, kFar, 2, 64, q, 0, sf), kStride, "row_bytes" + far);
  check(dualgemm_import_gguf_host(x, 0, 2, 64, q, 4 * kFar, sf), kStride,
        "ldq=562949953421312: 2 rows must take less than 2^48 bytes");
  check(dualgemm_import_gguf_host(x, 0, 2, 64, q, 2 * kFar, sf), kStride,
        "ldq=281474976710656: 2 rows must take less than 2^48 bytes");

  const auto* const end = address<uint8_t>(uintptr_t{0} - 60);
  check(dualgemm_quantize_host(floats(end), 1, 16, 0, 1, q, 0, sf), kValue,
        named("x", end) + ": its 64" + beyond);
  check(dualgemm_import_gguf_host(end, 0, 2, 64, q, 0, sf), kValue,
        named("blocks", end) + ": its 72" + beyond);
  check(dualgemm_import_mxfp4_host(q, 2 * kFar * 2, x, 0, 2, 32, sf, floats(x)), kStride,
        "ldq=562949953421312: 2 rows must take less than 2^48 bytes");
  check(dualgemm_import_mxfp4_host(q, 0, x, kFar, 2, 32, sf, floats(x)), kStride, "pitch" + far);
  check(dualgemm_import_mxfp4_host(q, 0, end, 61, 2, 32, sf, floats(x)), kValue,
        named("scales", end) + ": its 62" + beyond);
  check(dualgemm_sf_split_host(end, 1, 16, DUALGEMM_ROWS_STACKED, q, sf), kValue,
        named("sf", end) + ": its 512" + beyond);
  CHECK(arena.untouched());
}

}  // namespace host_overlap_test
