// tensor_map_test.cpp -- the encoder's documented rules one by one, and box transfers against an
// element-by-element definition of what a box is.
#include "sim/engine/tensor_map.h"

#include <cstring>
#include <functional>
#include <map>

#include "sim/unit/fault_of.hpp"
#include "support/catch.hpp"

namespace tensor_map_test {

using sim_test::fault_of;

enum : uint32_t {
  kUint8 = 0,
  kUint16 = 1,
  kInt32 = 3,
  kInt64 = 5,
  kF16 = 6,
  kF32 = 7,
  kF64 = 8,
  kBf16 = 9,
  kF32Ftz = 10,
  kTf32 = 11,
  kU4Align8 = 13,
  kU4Align16 = 14,
  kU6Align16 = 15
};

struct Arguments {
  uint32_t type = kUint8, rank = 2;
  uint64_t base = 0x10000;
  std::vector<uint64_t> dims{512, 64};
  std::vector<uint64_t> strides{512};
  std::vector<uint32_t> box{128, 64}, element_strides{1, 1};
  uint32_t interleave = 0, swizzle = 3, l2 = 0, fill = 0;
};

struct Encoded {
  alignas(128) unsigned char bytes[128];
  int result;
  std::string why;
};

static Encoded encode(const Arguments& a) {
  Encoded e{};
  e.result = sim::encode_tiled(e.bytes, a.type, a.rank, reinterpret_cast<void*>(a.base), a.dims.data(),
                               a.strides.data(), a.box.data(), a.element_strides.data(), a.interleave,
                               a.swizzle, a.l2, a.fill, &e.why);
  return e;
}

static void check_rejected(const std::string& text, const std::function<void(Arguments&)>& change) {
  Arguments a;
  REQUIRE(encode(a).result == 0);
  change(a);
  const Encoded e = encode(a);
  INFO(text);
  INFO(e.why);
  CHECK(e.result == 1);
  CHECK(e.why.find(text) != std::string::npos);
}

static sim::TensorMap map_of(const Arguments& a) {
  const Encoded e = encode(a);
  INFO(e.why);
  REQUIRE(e.result == 0);
  return sim::decode_tensor_map(e.bytes);
}

// An image says where every byte of shared memory comes from: a global address, or nothing when it is filled.
using Image = std::map<uint32_t, int64_t>;
constexpr int64_t kFilled = -1;

static Image image_of_pieces(const sim::TensorMap& map, const std::array<int32_t, 5>& at, uint32_t smem,
                             sim::Transfer transfer = sim::Transfer::kLoad) {
  std::vector<sim::BoxPiece> pieces(3);  // leftovers of a previous call must not survive
  sim::box_pieces(map, at, smem, transfer, pieces);
  Image image;
  int bad_sizes = 0, written_twice = 0;
  for (const sim::BoxPiece& piece : pieces) {
    bad_sizes += piece.bytes < 1 || piece.bytes > 16;
    for (uint32_t i = 0; i < piece.bytes; ++i) {
      const auto [where, fresh] = image.emplace(
          piece.smem_offset + i, piece.outside ? kFilled : static_cast<int64_t>(piece.global) + i);
      written_twice += !fresh;
    }
  }
  CHECK(bad_sizes == 0);
  CHECK(written_twice == 0);
  return image;
}

// The definition takes element (i0, i1, ...) of the box, dense with i0 fastest, byte by byte, then the XOR of
// the swizzle.
static Image image_by_definition(const Arguments& a, const std::array<int32_t, 5>& at, uint32_t smem,
                                 int bits) {
  const uint32_t mask = a.swizzle == 3 ? 7 : a.swizzle == 2 ? 3 : a.swizzle == 1 ? 1 : 0;
  std::vector<uint32_t> count = a.box;
  for (uint32_t i = 1; i < a.rank; ++i)
    count[i] = (a.box[i] + a.element_strides[i] - 1) / a.element_strides[i];
  uint64_t rows = 1;
  for (uint32_t i = 1; i < a.rank; ++i) rows *= count[i];
  Image image;
  uint32_t linear = 0;
  for (uint64_t row = 0; row < rows; ++row) {
    uint64_t rest = row;
    bool inside_row = true;
    int64_t address = static_cast<int64_t>(a.base);
    for (uint32_t i = 1; i < a.rank; ++i) {
      const int64_t c = at[i] + static_cast<int64_t>(rest % count[i]) * a.element_strides[i];
      rest /= count[i];
      inside_row = inside_row && c >= 0 && c < static_cast<int64_t>(a.dims[i]);
      address += c * static_cast<int64_t>(a.strides[i - 1]);
    }
    for (uint32_t byte = 0; byte < a.box[0] * static_cast<uint32_t>(bits) / 8; ++byte, ++linear) {
      const int64_t in_row = static_cast<int64_t>(at[0]) * bits / 8 + byte;
      const bool inside = inside_row && in_row >= 0 && in_row < static_cast<int64_t>(a.dims[0]) * bits / 8;
      const uint32_t absolute = smem + linear;
      const uint32_t physical = absolute ^ (((absolute >> 7) & mask) << 4);
      image[physical - smem] = inside ? address + in_row : kFilled;
    }
  }
  return image;
}

TEST_CASE("tensor map: every documented rule of the encoder rejects its violation by name", "[tensor]") {
  check_rejected("tensorDataType", [](Arguments& a) { a.type = 16; });
  check_rejected("tensorRank 0", [](Arguments& a) { a.rank = 0; });
  check_rejected("tensorRank 6", [](Arguments& a) { a.rank = 6; });
  check_rejected("tensorRank >= 3", [](Arguments& a) { a.interleave = 1; });
  check_rejected("interleave 3", [](Arguments& a) { a.interleave = 3; });
  check_rejected("swizzle 7", [](Arguments& a) { a.swizzle = 7; });
  check_rejected("l2Promotion 4", [](Arguments& a) { a.l2 = 4; });
  check_rejected("oobFill 2", [](Arguments& a) { a.fill = 2; });
  check_rejected("oobFill NaN", [](Arguments& a) { a.fill = 1; });
  check_rejected("globalAddress", [](Arguments& a) { a.base += 8; });
  check_rejected("larger than shared memory", [](Arguments& a) {
    a.rank = 3;
    a.dims = {512, 64, 8};
    a.strides = {512, 32768};
    a.box = {128, 64, 32};
    a.element_strides = {1, 1, 1};
  });
  check_rejected("globalDim[1] = 0", [](Arguments& a) { a.dims[1] = 0; });
  check_rejected("globalDim[0] = 4294967297", [](Arguments& a) { a.dims[0] = (uint64_t{1} << 32) + 1; });
  check_rejected("globalStrides[0] = 520", [](Arguments& a) { a.strides[0] = 520; });
  check_rejected("2^40", [](Arguments& a) { a.strides[0] = uint64_t{1} << 40; });
  check_rejected("boxDim[1] = 0", [](Arguments& a) { a.box[1] = 0; });
  check_rejected("boxDim[1] = 257", [](Arguments& a) { a.box[1] = 257; });
  check_rejected("16 bytes", [](Arguments& a) { a.box[0] = 72; });
  check_rejected("swizzle span", [](Arguments& a) { a.box[0] = 144; });
  check_rejected("swizzle span", [](Arguments& a) { a.swizzle = 2; });
  check_rejected("elementStrides[1] = 9", [](Arguments& a) { a.element_strides[1] = 9; });
  check_rejected("elementStrides[0] = 0", [](Arguments& a) { a.element_strides[0] = 0; });
  check_rejected("is odd", [](Arguments& a) {
    a.type = kU4Align8;
    a.dims[0] = 511;
    a.box[0] = 256;
  });
  check_rejected("multiple of 128", [](Arguments& a) {
    a.type = kU4Align16;
    a.dims[0] = 192;
  });
  check_rejected("is not 128", [](Arguments& a) {
    a.type = kU4Align16;
    a.box[0] = 64;
  });
  check_rejected("aligned to 32", [](Arguments& a) {
    a.type = kU6Align16;
    a.base += 16;
  });
  check_rejected("multiple of 32", [](Arguments& a) {
    a.type = kU4Align16;
    a.strides[0] = 528;
  });
  check_rejected("not available", [](Arguments& a) {
    a.type = kU4Align16;
    a.swizzle = 6;
  });
}

TEST_CASE("tensor map: limits that are legal", "[tensor]") {
  Arguments a;
  a.dims = {uint64_t{1} << 32, uint64_t{1} << 32};
  a.strides = {(uint64_t{1} << 40) - 16};
  a.box = {128, 256};
  a.element_strides = {8, 8};
  const sim::TensorMap map = map_of(a);
  CHECK(map.dims[0] == uint64_t{1} << 32);
  CHECK(map.strides[1] == (uint64_t{1} << 40) - 16);
  CHECK(map.box[1] == 256);
  CHECK(map.element_strides[1] == 8);
  CHECK(map.box_bytes() == 128 * 32);
  for (uint32_t type = 0; type < 13; ++type) {
    Arguments b;
    b.type = type;
    b.box[0] = 16;
    b.swizzle = 0;
    CHECK(encode(b).result == 0);
  }
}

TEST_CASE("tensor map: 128 bytes that the encoder did not write do not decode", "[tensor]") {
  Encoded e = encode(Arguments{});
  CHECK(sim::decode_tensor_map(e.bytes).box_bytes() == 128 * 64);
  e.bytes[20] ^= 1;
  CHECK(fault_of([&] { sim::decode_tensor_map(e.bytes); }).kind() == sim::FaultKind::kProtocol);
  const unsigned char zeros[128] = {};
  CHECK(fault_of([&] { sim::decode_tensor_map(zeros); }).kind() == sim::FaultKind::kProtocol);
}

TEST_CASE("tensor map: a replaced field makes of a map what the encoder makes of the changed arguments",
          "[tensor]") {
  using Field = sim::MapField;
  const auto check = [](Field field, uint32_t ordinal, uint64_t value, void (*change)(Arguments&)) {
    Arguments a;
    a.box[0] = 64;  // legal with every swizzle and type below
    a.swizzle = 0;
    Encoded before = encode(a);
    change(a);
    const Encoded after = encode(a);
    INFO(after.why);
    REQUIRE(after.result == 0);
    REQUIRE(std::memcmp(before.bytes, after.bytes, sizeof before.bytes) != 0);
    sim::replace_field(before.bytes, field, ordinal, value);
    CHECK(std::memcmp(before.bytes, after.bytes, sizeof before.bytes) == 0);
  };
  check(Field::kGlobalAddress, 0, 0x20000, [](Arguments& a) { a.base = 0x20000; });
  check(Field::kBoxDim, 1, 7, [](Arguments& a) { a.box[1] = 7; });
  check(Field::kGlobalDim, 0, 500, [](Arguments& a) { a.dims[0] = 500; });
  check(Field::kGlobalDim, 1, 33, [](Arguments& a) { a.dims[1] = 33; });
  check(Field::kGlobalStride, 0, 1024, [](Arguments& a) { a.strides[0] = 1024; });
  check(Field::kElementStride, 1, 2, [](Arguments& a) { a.element_strides[1] = 2; });
  check(Field::kSwizzle, 0, 2, [](Arguments& a) { a.swizzle = 2; });
  // The instruction has its own numbers for the types.
  check(Field::kElementType, 0, 7, [](Arguments& a) { a.type = kF32; });
  check(Field::kElementType, 0, 8, [](Arguments& a) { a.type = kF32Ftz; });
  check(Field::kElementType, 0, 9, [](Arguments& a) { a.type = kF64; });
  check(Field::kElementType, 0, 10, [](Arguments& a) { a.type = kBf16; });
  check(Field::kElementType, 0, 13, [](Arguments& a) { a.type = kU4Align8; });
  Encoded fewer = encode(Arguments{});  // the other dimensions stay as they were
  sim::replace_field(fewer.bytes, Field::kRank, 0, 0);
  CHECK(sim::decode_tensor_map(fewer.bytes).rank == 1);
  sim::replace_field(fewer.bytes, Field::kRank, 0, 1);
  CHECK(std::memcmp(fewer.bytes, encode(Arguments{}).bytes, sizeof fewer.bytes) == 0);
}

TEST_CASE("tensor map: boxes inside, across every edge and outside equal the definition", "[tensor]") {
  Arguments a;
  a.base = 0x40000;
  struct Type {
    uint32_t code;
    int bits;
  };
  const Type type =
      GENERATE(Type{kUint8, 8}, Type{kF16, 16}, Type{kF32, 32}, Type{kInt64, 64}, Type{kU4Align8, 4});
  const uint32_t swizzle = GENERATE(0u, 1u, 2u, 3u);
  const uint32_t inner_bytes = swizzle == 0 ? 48 : 16u << swizzle;
  a.type = type.code;
  a.swizzle = swizzle;
  a.rank = 3;
  a.dims = {200, 21, 3};
  a.strides = {1664, 1664 * 32};
  a.box = {inner_bytes * 8 / static_cast<uint32_t>(type.bits), 11, 2};
  a.element_strides = {1, GENERATE(1u, 3u), 1};
  const sim::TensorMap map = map_of(a);
  uint64_t bytes = inner_bytes * 2;
  bytes *= (11 + a.element_strides[1] - 1) / a.element_strides[1];
  CHECK(map.box_bytes() == bytes);
  for (uint32_t smem : {0u, 0x8400u, 0x480u}) {
    for (const std::array<int32_t, 5>& at : {std::array<int32_t, 5>{0, 0, 0},
                                             {32, 3, 1},
                                             {-32, -4, -1},
                                             {192, 15, 2},
                                             {-416, 0, 0},
                                             {416, 0, 0},
                                             {32, 21, 0},
                                             {160, -11, 1}}) {
      CHECK(image_of_pieces(map, at, smem) == image_by_definition(a, at, smem, type.bits));
      CHECK(image_of_pieces(map, at, smem).size() == bytes);
    }
  }
}

TEST_CASE("tensor map: ranks 1 and 5", "[tensor]") {
  Arguments a;
  a.swizzle = 0;
  SECTION("1: an INT64 line") {
    a.type = kInt64;
    a.rank = 1;
    a.dims = {1000};
    a.strides = {};
    a.box = {256};
    a.element_strides = {1};
    const sim::TensorMap map = map_of(a);
    CHECK(map.box_bytes() == 2048);
    CHECK(image_of_pieces(map, {900}, 256) == image_by_definition(a, {900}, 256, 64));
  }
  SECTION("5") {
    a.rank = 5;
    a.dims = {64, 3, 4, 5, 6};
    a.strides = {64, 256, 1024, 8192};
    a.box = {32, 2, 3, 2, 2};
    a.element_strides = {1, 1, 2, 1, 1};
    const std::array<int32_t, 5> at{48, 2, 1, -1, 5};
    CHECK(image_of_pieces(map_of(a), at, 1024) == image_by_definition(a, at, 1024, 8));
  }
}

TEST_CASE("tensor map: a 128-byte swizzled tile puts row 13, byte 50 where the tensor core looks for it",
          "[tensor]") {
  Arguments a;  // tile base 0x8400, K element 100 = byte 50: physical address 0x8AE2
  const Image image = image_of_pieces(map_of(a), {0, 0}, 0x8400);
  CHECK(image.at(0x8AE2 - 0x8400) == static_cast<int64_t>(a.base) + 13 * 512 + 50);
}

TEST_CASE("tensor map: transfers whose result is not established are refused", "[tensor]") {
  std::vector<sim::BoxPiece> pieces;
  const auto kind = [&](const std::function<void(Arguments&)>& change) {
    Arguments a;
    change(a);
    const sim::TensorMap map = map_of(a);
    return fault_of([&] { sim::box_pieces(map, {0, 0}, 1024, sim::Transfer::kLoad, pieces); }).kind();
  };
  CHECK(kind([](Arguments& a) { a.swizzle = 4; }) == sim::FaultKind::kUnsupported);
  CHECK(kind([](Arguments& a) { a.swizzle = 5; }) == sim::FaultKind::kUnsupported);
  CHECK(kind([](Arguments& a) { a.swizzle = 6; }) == sim::FaultKind::kUnsupported);
  CHECK(kind([](Arguments& a) { a.box[0] = 64; }) == sim::FaultKind::kUnsupported);
  CHECK(kind([](Arguments& a) { a.type = kU4Align16; }) == sim::FaultKind::kUnsupported);
  CHECK(kind([](Arguments& a) {
          a.type = kTf32;
          a.box[0] = 32;
        }) == sim::FaultKind::kUnsupported);
  CHECK(kind([](Arguments& a) {
          a.type = kF32Ftz;
          a.box[0] = 32;
        }) == sim::FaultKind::kUnsupported);
}

TEST_CASE("tensor map: misaligned shared memory", "[tensor]") {
  std::vector<sim::BoxPiece> pieces;
  CHECK(fault_of([&] {
          sim::box_pieces(map_of(Arguments{}), {0, 0}, 1024 + 64, sim::Transfer::kLoad, pieces);
        }).kind() == sim::FaultKind::kMisaligned);
}

// On an H200 all of these are illegal instructions.
TEST_CASE("tensor map: coordinates that the machine refuses", "[tensor]") {
  std::vector<sim::BoxPiece> pieces;
  const auto kind = [&](const Arguments& a, int32_t inner, int32_t outer, sim::Transfer transfer) {
    return fault_of([&] { sim::box_pieces(map_of(a), {inner, outer}, 1024, transfer, pieces); }).kind();
  };
  const auto works = [&](const Arguments& a, int32_t inner, int32_t outer, sim::Transfer transfer) {
    CHECK_NOTHROW(sim::box_pieces(map_of(a), {inner, outer}, 1024, transfer, pieces));
  };
  const Arguments a;
  for (const sim::Transfer transfer : {sim::Transfer::kLoad, sim::Transfer::kStore}) {
    for (int32_t inner : {1, 15, 20, -5}) CHECK(kind(a, inner, 0, transfer) == sim::FaultKind::kMisaligned);
    for (int32_t inner : {0, 16, 512, 528}) works(a, inner, 0, transfer);
    works(a, 0, 64, transfer);
  }
  works(a, -16, -1, sim::Transfer::kLoad);
  CHECK(kind(a, -16, 0, sim::Transfer::kStore) == sim::FaultKind::kBounds);
  CHECK(kind(a, 0, -1, sim::Transfer::kStore) == sim::FaultKind::kBounds);
  Arguments words;
  words.type = kInt32;
  words.box[0] = 32;
  CHECK(kind(words, 2, 0, sim::Transfer::kLoad) == sim::FaultKind::kMisaligned);
  works(words, 4, 0, sim::Transfer::kLoad);
  Arguments packed;
  packed.type = kU4Align8;
  packed.box[0] = 256;
  CHECK(kind(packed, 16, 0, sim::Transfer::kLoad) == sim::FaultKind::kMisaligned);
  works(packed, 32, 0, sim::Transfer::kLoad);
}

TEST_CASE("tensor map: a store writes the 16 bytes in which a row ends whole, a load fills their rest",
          "[tensor]") {
  Arguments a;
  a.dims[0] = 499;  // 31 chunks and 3 bytes
  const Image loaded = image_of_pieces(map_of(a), {480, 0}, 0),
              stored = image_of_pieces(map_of(a), {480, 0}, 0, sim::Transfer::kStore);
  for (uint32_t byte = 0; byte < 128; ++byte) {
    CHECK(loaded.at(byte) == (byte < 19 ? static_cast<int64_t>(a.base) + 480 + byte : kFilled));
    CHECK(stored.at(byte) == (byte < 32 ? static_cast<int64_t>(a.base) + 480 + byte : kFilled));
  }
}

TEST_CASE("tensor map: fill patterns are zero, or the NaN that an H200 writes for every type", "[tensor]") {
  Arguments a;
  CHECK(sim::fill_pattern(map_of(a)) == std::array<uint8_t, 16>{});
  a.swizzle = 0;
  a.box[0] = 16;
  a.fill = 1;
  a.type = GENERATE(kF16 + 0u, kF32 + 0u, kF64 + 0u, kBf16 + 0u);
  const std::array<uint8_t, 16> pattern = sim::fill_pattern(map_of(a));
  for (size_t i = 0; i < 16; ++i) CHECK(pattern[i] == (i % 2 == 0 ? 0xF7 : 0x7F));
}

}  // namespace tensor_map_test
