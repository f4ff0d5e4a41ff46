// safetensors_test.cpp -- what is refused of a .safetensors file, and with which words.
#include "example/checkpoint/safetensors.h"

#include <string>

#include "support/catch.hpp"

using checkpoint::FormatError;
using checkpoint::read_safetensors;
using dualgemm_test::contains;

static std::vector<uint8_t> file_of(const std::string& header, size_t data, uint64_t length) {
  std::vector<uint8_t> file;
  for (int i = 0; i < 8; ++i) file.push_back(static_cast<uint8_t>(length >> (8 * i)));
  file.insert(file.end(), header.begin(), header.end());
  file.resize(file.size() + data);
  return file;
}

static std::vector<uint8_t> file_of(const std::string& header, size_t data) {
  return file_of(header, data, header.size());
}

// An entry of a header.
static std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                         const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets +
         "}";
}

TEST_CASE("safetensors: tensors have their name, type, shape and bytes", "[checkpoint][safetensors]") {
  auto file = file_of("{\"__metadata__\":{\"format\":\"pt\"}," + entry("b", "F32", "[]", "[6,10]") + "," +
                          entry("a", "U8", "[2,3]", "[0,6]") + "," +
                          entry("none", "BF16", "[0,7]", "[10,10]") + "}   ",
                      10);
  file[file.size() - 10] = 7;
  const auto [tensors, metadata] = read_safetensors(file);
  CHECK(metadata == checkpoint::Metadata{{"format", "pt"}});
  REQUIRE(tensors.size() == 3);
  CHECK(tensors[0].name == "a");
  CHECK(checkpoint::describe(tensors[0]) == "U8 [2, 3]");
  CHECK(tensors[0].bytes.data() == file.data() + file.size() - 10);
  CHECK(tensors[0].bytes.size() == 6);
  CHECK(tensors[0].bytes[0] == 7);
  CHECK(checkpoint::describe(tensors[1]) == "F32 []");
  CHECK(tensors[1].bytes.data() == file.data() + file.size() - 4);
  CHECK(tensors[1].bytes.size() == 4);
  CHECK(tensors[2].bytes.empty());
}

TEST_CASE("safetensors: every dtype takes its size", "[checkpoint][safetensors]") {
  const auto [dtype, bytes] = GENERATE(table<std::string, size_t>(
      {{"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"BOOL", 8},    {"U8", 8},     {"I8", 8},   {"F8_E4M3", 8},
       {"F8_E5M2", 8},     {"F8_E8M0", 8},     {"I16", 16},    {"U16", 16},   {"F16", 16}, {"BF16", 16},
       {"I32", 32},        {"U32", 32},        {"F32", 32},    {"I64", 64},   {"U64", 64}, {"F64", 64},
       {"C64", 64},        {"F4", 4},          {"F6_E2M3", 6}, {"F6_E3M2", 6}}));
  const std::string header = "{" + entry("t", dtype, "[2,4]", "[0," + std::to_string(bytes) + "]") + "}";
  CHECK(read_safetensors(file_of(header, bytes)).tensors[0].bytes.size() == bytes);
  const std::string more = "{" + entry("t", dtype, "[2,4]", "[0," + std::to_string(bytes + 1) + "]") + "}";
  CHECK_THROWS_WITH(read_safetensors(file_of(more, bytes + 1)), contains("t: data_offsets"));
}

TEST_CASE("safetensors: a header that lies is refused, and the tensor named", "[checkpoint][safetensors]") {
  struct Case {
    std::string header;
    size_t data;
    const char* expected;
  };
  const std::string good = entry("good", "U8", "[4]", "[0,4]");
  const auto [header, data, expected] = GENERATE_COPY(values<Case>({
      {"{" + entry("x.y", "U8", "[5]", "[0,5]") + "}", 4, "x.y: data_offsets [0, 5] reach outside the file"},
      {"{" + entry("x", "U8", "[4]", "[18446744073709551612,18446744073709551615]") + "}", 4,
       "x: data_offsets [18446744073709551612, 18446744073709551615] reach outside"},
      {"{" + entry("x", "U8", "[4]", "[4,0]") + "}", 4, "x: data_offsets [4, 0] end before they begin"},
      {"{" + entry("x", "U8", "[4]", "[0,3]") + "}", 3, "x: data_offsets [0, 3] are not the size of U8 [4]"},
      {"{" + entry("x", "F4", "[3]", "[0,1]") + "}", 1, "x: data_offsets [0, 1] are not the size of F4 [3]"},
      {"{" + entry("x", "U8", "[-4]", "[0,4]") + "}", 4, "x: shape has -4"},
      {"{" + entry("x", "U8", "[4.0]", "[0,4]") + "}", 4, "x: shape has 4.0"},
      {"{" + entry("x", "U8", "[18446744073709551620]", "[0,4]") + "}", 4, "x: shape has 1.84"},
      {"{" + entry("x", "U8", "[4294967296,4294967296]", "[0,0]") + "}", 0, "x: the product of its shape"},
      {"{" + entry("x", "F64", "[2305843009213693952]", "[0,0]") + "}", 0,
       "x: data_offsets [0, 0] are not the size"},
      {"{" + entry("x", "U8", "4", "[0,4]") + "}", 4, "x: shape is not an array"},
      {"{" + entry("x", "U8", "[4]", "[0]") + "}", 4, "x: data_offsets has not two numbers"},
      {"{" + entry("x", "U8", "[4]", "[0,\"4\"]") + "}", 4, "x: data_offsets has \"4\""},
      {"{" + entry("x", "U9", "[4]", "[0,5]") + "}", 4, "x: data_offsets [0, 5] reach outside the file"},
      {"{" + good + "," + entry("x", "U9", "[2]", "[2,4]") + "}", 4, "x: its data overlaps that of good"},
      {"{" + good + "," + entry("x", "U8", "[2]", "[2,4]") + "}", 4, "x: its data overlaps that of good"},
      {"{" + good + "," + entry("x", "U8", "[2]", "[5,7]") + "}", 7, "x: there is a hole of 1 bytes before"},
      {"{" + entry("x", "U8", "[2]", "[1,3]") + "}", 3, "x: there is a hole of 1 bytes before"},
      {"{" + good + "}", 6, "no tensor owns the last 2 bytes"},
      {"{}", 1, "no tensor owns the last 1 bytes"},
      {"{" + good + "," + good + "}", 4, "good: the header has this name twice"},
      {"{\"x\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0, "x: has \"dtype\" twice"},
      {"{\"x\":{\"dtype\":\"U8\",\"shape\":[4]}}", 0, "x: has no data_offsets"},
      {"{\"x\":{\"dtype\":8,\"shape\":[4],\"data_offsets\":[0,4]}}", 4, "x: dtype is not a string"},
      {"{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4],\"more\":1}}", 4,
       "x: has the unknown field"},
      {"{\"x\":[0,4]}", 4, "x: its entry is not an object"},
      {"{\"x\":{\"shape\":[[[[4]]]]}}", 4, "x: the header is nested deeper"},
      {"{\"__metadata__\":{\"a\":1}}", 0, "__metadata__: \"a\" is not a string"},
      {"{\"__metadata__\":7}", 0, "__metadata__: is not an object"},
      {"{\"x\":{\"dtype\":", 0, "the header is not JSON near x"},
      {"{\"x\xFF\":{}}", 0, "the header is not JSON"},
      {"{} {}", 0, "the header is not JSON"},
      {" {}", 0, "does not begin with '{'"},
      {"", 0, "does not begin with '{'"},
  }));
  CAPTURE(header);
  CHECK_THROWS_AS(read_safetensors(file_of(header, data)), FormatError);
  CHECK_THROWS_WITH(read_safetensors(file_of(header, data)), contains(expected));
}

TEST_CASE("safetensors: a header longer than the file, or than is read, is refused",
          "[checkpoint][safetensors]") {
  CHECK_THROWS_WITH(read_safetensors({}), contains("too short"));
  CHECK_THROWS_WITH(read_safetensors(std::vector<uint8_t>(7)), contains("too short"));
  CHECK_THROWS_WITH(read_safetensors(file_of("{}", 0, 3)), contains("cut off in its header"));
  CHECK_THROWS_WITH(read_safetensors(file_of("{}", 0, 100'000'001)), contains("at most 100,000,000"));
  CHECK_THROWS_WITH(read_safetensors(file_of("{}", 0, ~uint64_t{0})), contains("at most 100,000,000"));
  const std::string text = "root:x:0:0:root:/root:/bin/bash\n";
  CHECK_THROWS_WITH(
      read_safetensors(std::vector<uint8_t>(text.begin(), text.end())),
      contains("neither GGUF nor safetensors, whose header would have 3475222254926655346 bytes"));
}

TEST_CASE("safetensors: a million brackets end at the third", "[checkpoint][safetensors]") {
  const std::string deep = "{\"x\":" + std::string(1'000'000, '[');
  CHECK_THROWS_WITH(read_safetensors(file_of(deep, 0)), contains("x: the header is nested deeper"));
}

TEST_CASE("safetensors: a name is printed as printable text of a line", "[checkpoint][safetensors]") {
  const std::string name = "\\u001b[31m" + std::string(1000, 'n');
  const std::string header = "{" + entry(name, "U8", "[4]", "[4,0]") + "}";
  CHECK_THROWS_WITH(read_safetensors(file_of(header, 4)),
                    "?[31m" + std::string(115, 'n') + "...: data_offsets [4, 0] end before they begin");
}

TEST_CASE("safetensors: a tensor of an unknown dtype has the bytes that its offsets say",
          "[checkpoint][safetensors]") {
  const std::string dtype = "F8_E3M4_\\u001b" + std::string(200, 'x');
  const std::string header =
      "{" + entry("a", dtype, "[3,5]", "[0,7]") + "," + entry("b", "U8", "[2]", "[7,9]") + "}";
  const auto file = file_of(header, 9);
  const auto tensors = read_safetensors(file).tensors;
  REQUIRE(tensors.size() == 2);
  CHECK(tensors[0].bytes.size() == 7);
  CHECK(tensors[1].bytes.data() == tensors[0].bytes.data() + 7);
  CHECK(checkpoint::describe(tensors[0]) == "F8_E3M4_?" + std::string(111, 'x') + "... [3, 5]");
}
