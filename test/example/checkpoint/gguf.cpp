// gguf.cpp -- the format, by docs/gguf.md of the project ggml, and by the package gguf 0.19.0 for the
// types' numbers. All numbers are little-endian, a string is its length in 64 bits and its bytes:
//
//     "GGUF", version (32 bits; 2 and 3 differ in nothing that is read here), tensors (64), pairs (64)
//     pairs     key (string), type (32), value; general.alignment (a UINT32) is 32 where there is none
//     tensors   name (string), dimensions (32), the extent of each (64), type (32), offset of its data (64)
//     padding   to a multiple of the alignment, from where offsets count, themselves multiples of it
//
// The first extent is that of elements which follow each other: [K, N] is [N, K] in row-major.

#include "example/checkpoint/gguf.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <type_traits>

namespace checkpoint {
namespace {

struct Type {
  const char* name;
  uint64_t elements, bytes;  // of a block
};
// The numbers are those of enum ggml_type, in ggml's ggml.h.
const std::map<uint32_t, Type> kTypes = {{0, {"F32", 1, 4}},  {1, {"F16", 1, 2}},   {24, {"I8", 1, 1}},
                                         {25, {"I16", 1, 2}}, {26, {"I32", 1, 4}},  {27, {"I64", 1, 8}},
                                         {28, {"F64", 1, 8}}, {30, {"BF16", 1, 2}}, {40, {"NVFP4", 64, 36}}};

// Types that are not read, so that a refusal can call them by their name.
const std::map<uint32_t, const char*> kOtherTypes = {
    {2, "Q4_0"},     {3, "Q4_1"},    {6, "Q5_0"},     {7, "Q5_1"},   {8, "Q8_0"},    {9, "Q8_1"},
    {10, "Q2_K"},    {11, "Q3_K"},   {12, "Q4_K"},    {13, "Q5_K"},  {14, "Q6_K"},   {15, "Q8_K"},
    {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"},
    {22, "IQ2_S"},   {23, "IQ4_XS"}, {29, "IQ1_M"},   {34, "TQ1_0"}, {35, "TQ2_0"},  {39, "MXFP4"}};

std::string name_of_type(uint32_t type) {
  if (const auto known = kTypes.find(type); known != kTypes.end()) return known->second.name;
  const auto other = kOtherTypes.find(type);
  return other == kOtherTypes.end() ? "type " + std::to_string(type) : other->second;
}

enum ValueType : uint32_t { kUint32 = 4, kString = 8, kArray = 9 };
// Bytes of a value, by its type; a string and an array have their own length.
constexpr uint64_t kValueBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

constexpr uint32_t kMostDimensions = 4;

class GgufReader {
 public:
  explicit GgufReader(Bytes file) : file_(file) {}

  uint64_t position() const { return at_; }
  template <typename T>
  T number(const std::string& what) {
    static_assert(std::is_unsigned_v<T>);
    T value = 0;
    const Bytes from = take(sizeof(T), what);
    for (size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(T{from[i]} << (8 * i));
    return value;
  }
  std::string string(const std::string& what) {
    const Bytes text = take(number<uint64_t>(what), what);
    return {text.begin(), text.end()};
  }
  Bytes take(uint64_t bytes, const std::string& what) {
    if (bytes > file_.size() - at_) throw FormatError("cut off in " + printable(what));
    at_ += bytes;
    return file_.subspan(at_ - bytes, bytes);
  }

 private:
  Bytes file_;
  uint64_t at_ = 0;
};

void skip_values(GgufReader& reader, uint32_t type, uint64_t count, const std::string& key) {
  if (type == kArray || type >= std::size(kValueBytes))
    throw FormatError("the pair " + printable(key) + " has the unknown type " + std::to_string(type));
  if (type == kString) {
    for (; count > 0; --count) reader.string(key);
  } else {
    if (count > UINT64_MAX / 8) throw FormatError("cut off in " + printable(key));
    reader.take(count * kValueBytes[type], key);
  }
}

// Keeps the keys of all pairs, and the values of strings. Returns the alignment, the only pair that says
// where something is.
uint64_t read_pairs(GgufReader& reader, uint64_t pairs, Metadata& metadata) {
  uint64_t alignment = 32;
  for (; pairs > 0; --pairs) {
    const std::string key = reader.string("a key");
    uint32_t type = reader.number<uint32_t>(key);
    if (key == "general.alignment" && type == kUint32) {
      alignment = reader.number<uint32_t>(key);
      if (!std::has_single_bit(alignment))
        throw FormatError("general.alignment is " + std::to_string(alignment) + ", which is no power of 2");
      continue;
    }
    if (type == kString) {
      metadata.emplace_back(key, reader.string(key));
      continue;
    }
    metadata.emplace_back(key, "");
    uint64_t count = 1;
    if (type == kArray) {
      type = reader.number<uint32_t>(key);
      count = reader.number<uint64_t>(key);
    }
    skip_values(reader, type, count, key);
  }
  return alignment;
}

struct Entry {
  StoredTensor tensor;
  uint64_t offset, size;
};

Entry read_entry(GgufReader& reader, uint64_t alignment) {
  Entry entry{};
  StoredTensor& tensor = entry.tensor;
  tensor.name = reader.string("the name of a tensor");
  const std::string name = printable(tensor.name);
  const uint32_t dimensions = reader.number<uint32_t>(name);
  if (dimensions > kMostDimensions)
    throw FormatError(name + ": has " + std::to_string(dimensions) + " dimensions, more than 4");
  for (uint32_t i = 0; i < dimensions; ++i)
    tensor.shape.insert(tensor.shape.begin(), reader.number<uint64_t>(name));
  const uint32_t type = reader.number<uint32_t>(name);
  entry.offset = reader.number<uint64_t>(name);
  if (entry.offset % alignment != 0)
    throw FormatError(name + ": its data is not aligned to " + std::to_string(alignment) + " bytes");

  const auto known = kTypes.find(type);
  tensor.dtype = name_of_type(type);
  tensor.ggml_type = type;
  const uint64_t count = element_count(tensor.name, tensor.shape);
  if (known == kTypes.end()) return entry;
  const auto& [_, elements, bytes] = known->second;
  if (count >= uint64_t{1} << 58 || (tensor.shape.empty() ? 1 : tensor.shape.back()) % elements != 0)
    throw FormatError(name + ": " + describe(tensor) +
                      " has no whole number of blocks in a row, or too many");
  entry.size = count / elements * bytes;
  return entry;
}

// Gives every tensor its bytes, in the order of their data.
void place(std::vector<Entry>& entries, Bytes data) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.offset, a.size) < std::pair(b.offset, b.size);
  });
  uint64_t end = 0;
  for (Entry& entry : entries) {
    const std::string name = printable(entry.tensor.name);
    if (entry.offset > data.size() || entry.size > data.size() - entry.offset)
      throw FormatError(name + ": its data reaches outside the file");
    if (entry.offset < end) throw FormatError(name + ": its data overlaps that of another tensor");
    end = entry.offset + entry.size;
    entry.tensor.bytes = data.subspan(entry.offset, entry.size);
  }
}

}  // namespace

bool is_gguf(Bytes file) { return file.size() >= 4 && std::equal(file.begin(), file.begin() + 4, "GGUF"); }

Contents read_gguf(Bytes file) {
  if (!is_gguf(file)) throw FormatError("does not begin with GGUF");
  GgufReader reader(file);
  reader.take(4, "the first word");
  const uint32_t version = reader.number<uint32_t>("the version");
  if (version != 2 && version != 3)
    throw FormatError("is GGUF of version " + std::to_string(version) + ", neither 2 nor 3");
  const uint64_t tensors = reader.number<uint64_t>("the number of tensors");
  Contents contents;
  const uint64_t alignment =
      read_pairs(reader, reader.number<uint64_t>("the number of pairs"), contents.metadata);

  // A count that is a lie ends at the end of the file: every entry takes bytes.
  std::vector<Entry> entries;
  std::set<std::string> names;
  for (uint64_t i = 0; i < tensors; ++i) {
    entries.push_back(read_entry(reader, alignment));
    const std::string& name = entries.back().tensor.name;
    if (!names.insert(name).second) throw FormatError(printable(name) + ": the file has this name twice");
  }
  const uint64_t data = (reader.position() + alignment - 1) / alignment * alignment;
  place(entries, file.subspan(std::min<uint64_t>(data, file.size())));

  for (Entry& entry : entries) contents.tensors.push_back(std::move(entry.tensor));
  return contents;
}

}  // namespace checkpoint
