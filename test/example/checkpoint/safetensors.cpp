// safetensors.cpp -- the format, by the page "Format" of the project safetensors and by its reference
// implementation (tensor.rs), whose rules these are:
//
//     8 bytes         N, the length of the header, unsigned, little-endian; at most 100,000,000
//     N bytes         JSON in UTF-8 that begins with '{' and may be padded with spaces at its end:
//                       {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [BEGIN, END]}, ...,
//                        "__metadata__": {"any string": "any string"}}
//                     names are unique
//     all the rest    the data, little-endian and row-major. Offsets count from its first byte, END is one
//                     behind the last. Together tensors cover all of it: none overlap, and there are no holes

#include "example/checkpoint/safetensors.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace checkpoint {
namespace {

using nlohmann::json;

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMostHeaderBytes = 100'000'000;

// Bits of an element. Other dtypes come with every year: of a tensor that has one the size is not compared,
// and whoever wants to use it refuses it.
const std::map<std::string, uint64_t> kBits = {
    {"BOOL", 8},        {"U8", 8},          {"I8", 8},      {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8},
    {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
    {"I32", 32},        {"U32", 32},        {"F32", 32},    {"I64", 64},    {"U64", 64},    {"F64", 64},
    {"C64", 64},        {"F4", 4},          {"F6_E2M3", 6}, {"F6_E3M2", 6}};

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw FormatError(printable(name) + ": " + why);
}

// JSON alone would let the last of two equal names win, and would nest as deep as the header is long.
json parse_header(Bytes text) {
  std::string tensor;
  std::set<std::string> names, fields;
  const auto watch = [&](int depth, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::key && depth == 1) {
      tensor = value.get<std::string>();
      fields.clear();
      if (!names.insert(tensor).second) refuse(tensor, "the header has this name twice");
    } else if (event == json::parse_event_t::key) {
      if (!fields.insert(value.get<std::string>()).second)
        refuse(tensor, "has \"" + printable(value.get<std::string>()) + "\" twice");
    } else if ((event == json::parse_event_t::object_start || event == json::parse_event_t::array_start) &&
               depth > 2) {
      refuse(tensor, "the header is nested deeper than that of a tensor");
    }
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), watch);
  } catch (const json::exception& e) {
    throw FormatError("the header is not JSON" + (tensor.empty() ? "" : " near " + printable(tensor)) + ": " +
                      printable(e.what()));
  }
}

std::vector<uint64_t> numbers(const std::string& name, const std::string& field, const json& value) {
  if (!value.is_array()) refuse(name, field + " is not an array");
  std::vector<uint64_t> all;
  for (const json& one : value) {
    // Of what does not fit, or has a fraction or an exponent, nlohmann makes a float.
    if (!one.is_number_unsigned())
      refuse(name, field + " has " + printable(one.dump()) + ", which is not an unsigned number of 64 bits");
    all.push_back(one.get<uint64_t>());
  }
  return all;
}

StoredTensor make_tensor(const std::string& name, const json& entry, Bytes data) {
  if (!entry.is_object()) refuse(name, "its entry is not an object");
  for (const auto& [field, value] : entry.items())
    if (field != "dtype" && field != "shape" && field != "data_offsets")
      refuse(name, "has the unknown field \"" + printable(field) + "\"");
  for (const char* field : {"dtype", "shape", "data_offsets"})
    if (!entry.contains(field)) refuse(name, std::string("has no ") + field);

  if (!entry["dtype"].is_string()) refuse(name, "dtype is not a string");
  StoredTensor tensor{name, entry["dtype"].get<std::string>(), numbers(name, "shape", entry["shape"]), {}};

  const std::vector<uint64_t> offsets = numbers(name, "data_offsets", entry["data_offsets"]);
  if (offsets.size() != 2) refuse(name, "data_offsets has not two numbers");
  const auto [begin, end] = std::pair(offsets[0], offsets[1]);
  const std::string range = "data_offsets [" + std::to_string(begin) + ", " + std::to_string(end) + "]";
  if (begin > end) refuse(name, range + " end before they begin");
  if (end > data.size())
    refuse(name,
           range + " reach outside the file, which has " + std::to_string(data.size()) + " bytes of data");

  // The data is smaller than 2^60 bytes, so a count that could overflow with its bits is too large anyway.
  const uint64_t count = element_count(name, tensor.shape);
  const auto bits = kBits.find(tensor.dtype);
  if (bits != kBits.end() && (count >= uint64_t{1} << 58 || count * bits->second % 8 != 0 ||
                              count * bits->second / 8 != end - begin))
    refuse(name, range + " are not the size of " + describe(tensor));
  tensor.bytes = data.subspan(begin, end - begin);
  return tensor;
}

Metadata read_metadata(const json& metadata) {
  if (!metadata.is_object()) refuse("__metadata__", "is not an object");
  Metadata entries;
  for (const auto& [key, value] : metadata.items()) {
    if (!value.is_string()) refuse("__metadata__", "\"" + printable(key) + "\" is not a string");
    entries.emplace_back(key, value.get<std::string>());
  }
  return entries;
}

// Neighbours in the order of their data: each begins where the one before it ends.
void check_cover(const std::vector<StoredTensor>& tensors, Bytes data) {
  std::vector<const StoredTensor*> order;
  for (const StoredTensor& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const StoredTensor* a, const StoredTensor* b) {
    return std::pair(a->bytes.data(), a->bytes.size()) < std::pair(b->bytes.data(), b->bytes.size());
  });
  const uint8_t* next = data.data();
  const StoredTensor* before = nullptr;
  for (const StoredTensor* tensor : order) {
    if (tensor->bytes.data() < next)
      refuse(tensor->name, "its data overlaps that of " + printable(before->name));
    if (tensor->bytes.data() > next)
      refuse(tensor->name,
             "there is a hole of " + std::to_string(tensor->bytes.data() - next) + " bytes before its data");
    next += tensor->bytes.size();
    before = tensor;
  }
  const auto left = data.data() + data.size() - next;
  if (left != 0) throw FormatError("no tensor owns the last " + std::to_string(left) + " bytes of the file");
}

}  // namespace

Contents read_safetensors(Bytes file) {
  if (file.size() < kLengthBytes) throw FormatError("too short for the length of a header");
  uint64_t length = 0;
  for (uint64_t i = 0; i < kLengthBytes; ++i) length |= uint64_t{file[i]} << (8 * i);
  if (length > kMostHeaderBytes)
    throw FormatError("neither GGUF nor safetensors, whose header would have " + std::to_string(length) +
                      " bytes: at most 100,000,000 are read");
  if (length > file.size() - kLengthBytes)
    throw FormatError("cut off in its header, of which there are " +
                      std::to_string(file.size() - kLengthBytes) + " of " + std::to_string(length) +
                      " bytes");
  const Bytes text = file.subspan(kLengthBytes, length), data = file.subspan(kLengthBytes + length);
  if (text.empty() || text[0] != '{') throw FormatError("the header does not begin with '{'");

  const json header = parse_header(text);
  Contents contents;
  for (const auto& [name, entry] : header.items())
    if (name == "__metadata__") contents.metadata = read_metadata(entry);
    else contents.tensors.push_back(make_tensor(name, entry, data));
  check_cover(contents.tensors, data);
  return contents;
}

}  // namespace checkpoint
