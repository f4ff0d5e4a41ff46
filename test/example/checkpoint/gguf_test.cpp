// gguf_test.cpp -- what is refused of a .gguf file, and with which words.
#include "example/checkpoint/gguf.h"

#include <string>

#include "support/catch.hpp"

using checkpoint::FormatError;
using checkpoint::read_gguf;
using dualgemm_test::contains;

namespace {

// A file, number by number.
struct Writer {
  std::vector<uint8_t> file;

  Writer& number(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) file.push_back(static_cast<uint8_t>(value >> (8 * i)));
    return *this;
  }
  Writer& string(const std::string& text) {
    number(text.size(), 8);
    file.insert(file.end(), text.begin(), text.end());
    return *this;
  }
  Writer& header(uint64_t tensors, uint64_t pairs, uint32_t version = 3) {
    file.assign({'G', 'G', 'U', 'F'});
    return number(version, 4).number(tensors, 8).number(pairs, 8);
  }
  Writer& tensor(const std::string& name, const std::vector<uint64_t>& extents, uint32_t type,
                 uint64_t offset) {
    string(name).number(extents.size(), 4);
    for (const uint64_t extent : extents) number(extent, 8);
    return number(type, 4).number(offset, 8);
  }
  Writer& data(size_t bytes, size_t alignment = 32) {
    file.resize((file.size() + alignment - 1) / alignment * alignment + bytes);
    return *this;
  }
};

constexpr uint32_t kF32 = 0, kNvfp4 = 40;

}  // namespace

TEST_CASE("gguf: tensors have their name, type, shape and bytes", "[checkpoint][gguf]") {
  Writer w;
  w.header(4, 4);
  w.string("general.architecture").number(8, 4).string("llama");
  w.string("a.number").number(10, 4).number(1, 8);
  w.string("names").number(9, 4).number(8, 4).number(2, 8).string("one").string("");
  w.string("numbers").number(9, 4).number(5, 4).number(3, 8).number(0, 12);
  w.tensor("w", {128, 2, 3}, kNvfp4, 0).tensor("k", {32}, 14, 448).tensor("s", {1}, kF32, 448);
  w.tensor("l", {32}, 99, 448);
  w.data(452);
  const auto [tensors, metadata] = read_gguf(w.file);
  CHECK(metadata == checkpoint::Metadata{
                        {"general.architecture", "llama"}, {"a.number", ""}, {"names", ""}, {"numbers", ""}});
  REQUIRE(tensors.size() == 4);
  CHECK(tensors[0].name == "w");
  CHECK(checkpoint::describe(tensors[0]) == "NVFP4 [3, 2, 128]");
  CHECK(tensors[0].bytes.size() == 3 * 2 * 2 * 36);
  CHECK(tensors[0].bytes.data() == w.file.data() + w.file.size() - 452);
  CHECK(checkpoint::describe(tensors[1]) == "Q6_K [32]");
  CHECK(tensors[1].bytes.empty());
  CHECK(tensors[2].bytes.data() == w.file.data() + w.file.size() - 4);
}

TEST_CASE("gguf: the data begins at a multiple of the file's alignment", "[checkpoint][gguf]") {
  Writer w;
  w.header(1, 1).string("general.alignment").number(4, 4).number(256, 4);
  w.tensor("s", {1}, kF32, 256).data(260, 256);
  CHECK(read_gguf(w.file).tensors[0].bytes.data() == w.file.data() + w.file.size() - 4);

  Writer bad;
  bad.header(0, 1).string("general.alignment").number(4, 4).number(GENERATE(0, 24), 4);
  CHECK_THROWS_WITH(read_gguf(bad.file), contains("no power of 2"));
}

TEST_CASE("gguf: an entry that lies is refused, and the tensor named", "[checkpoint][gguf]") {
  struct Case {
    std::vector<uint64_t> extents;
    uint32_t type;
    uint64_t offset;
    const char* expected;
  };
  constexpr uint64_t kHuge = ~uint64_t{0};
  const auto [extents, type, offset, expected] = GENERATE(values<Case>({
      {{65}, kF32, 0, "blk.0: its data reaches outside the file"},
      {{1}, kF32, 256, "blk.0: its data reaches outside the file"},
      {{1}, kF32, kHuge - 31, "blk.0: its data reaches outside the file"},
      {{1}, kF32, 8, "blk.0: its data is not aligned to 32 bytes"},
      {{63}, kNvfp4, 0, "blk.0: NVFP4 [63] has no whole number of blocks"},
      {{}, kNvfp4, 0, "blk.0: NVFP4 [] has no whole number of blocks"},
      {{kHuge},
       kF32,
       0,
       "blk.0: F32 [18446744073709551615] has no whole number of blocks in a row, or too many"},
      {{uint64_t{1} << 32, uint64_t{1} << 32}, kF32, 0, "blk.0: the product of its shape does not fit"},
      {{1, 1, 1, 1, 1}, kF32, 0, "blk.0: has 5 dimensions"},
      {{24}, kF32, 32, "blk.0: its data overlaps"},
      {{24}, kF32, 0, "other: its data overlaps"},
  }));
  Writer w;
  w.header(2, 0).tensor("blk.0", extents, type, offset).tensor("other", {16}, kF32, 32).data(256);
  CHECK_THROWS_AS(read_gguf(w.file), FormatError);
  CHECK_THROWS_WITH(read_gguf(w.file), contains(expected));
}

TEST_CASE("gguf: a header that lies is refused", "[checkpoint][gguf]") {
  const uint64_t huge = uint64_t{1} << 62;
  Writer w;
  CHECK_THROWS_WITH(read_gguf(std::vector<uint8_t>{'G', 'G', 'U'}), contains("does not begin with GGUF"));
  CHECK_THROWS_WITH(read_gguf(w.header(0, 0, 1).file), contains("GGUF of version 1"));
  CHECK_THROWS_WITH(read_gguf(w.header(huge, 0).file), contains("cut off in the name of a tensor"));
  CHECK_THROWS_WITH(read_gguf(w.header(0, huge).file), contains("cut off in a key"));
  CHECK_THROWS_WITH(read_gguf(w.header(1, 0).number(huge, 8).file), contains("cut off in the name"));
  CHECK_THROWS_WITH(read_gguf(w.header(0, 1).string("k").number(13, 4).file),
                    contains("the pair k has the unknown type 13"));
  w.header(0, 1).string("k").number(9, 4).number(9, 4).number(1, 8);
  CHECK_THROWS_WITH(read_gguf(w.file), contains("the pair k has the unknown type 9"));
  for (const int type : {4, 8, 10}) {
    w.header(0, 1).string("k").number(9, 4).number(type, 4).number(huge, 8);
    CHECK_THROWS_WITH(read_gguf(w.file), contains("cut off in k"));
  }
  w.header(2, 0).tensor("t", {1}, kF32, 0).tensor("t", {1}, kF32, 32).data(64);
  CHECK_THROWS_WITH(read_gguf(w.file), contains("t: the file has this name twice"));
}
