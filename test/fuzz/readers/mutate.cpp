// mutate.cpp -- see mutate.h. The layout of a container is drawn in sim/shim/fatbin.h.
#include "fuzz/readers/mutate.h"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace dualgemm_fuzz {

constexpr uint32_t kMagic = 0xBA55ED50;
constexpr size_t kContainerHeader = 16, kEntryHeader = 64;
constexpr uint64_t kLz4 = 0x2000, kZstd = 0x8000, kTargetA = 0x100000, kTargetF = 0x200000;
constexpr size_t kMostText = 8192;

static std::vector<std::string> words_of(const char* text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

const std::vector<std::string> kNumbers = words_of(
    "0 1 -1 2 3 16 255 65536 2147483647 4294967295 4294967296 16777216 0x7fffffffffffffff "
    "0x8000000000000000 0xffffffffffffffff 18446744073709551616 0f3F800000 0d3FF0000000000000 "
    "1e400 0.5 017 0b101 (1<<40) (5/0) WARP_SZ");
const std::vector<std::string> kWords = words_of(
    "{ } ( ) [ ] < > , ; : | = @ ! - ~ _ /* // \" .reg .b8 .b128 .pred .u64 .f32 .global "
    ".shared .local .param .const .extern .align .v4 .entry k .func f .loc .file .section "
    ".visible .maxntid .reqntid .pragma .ptr inlined_at function_name .target .x99999999999 "
    ".m64n .v2 .wide .f16x2 bra brx.idx call ret; exit; .branchtargets .callprototype %tid.x "
    "%clock64 L0: .attribute");

template <class T>
static T field(const std::string& bytes, size_t at) {
  T value{};
  if (at + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <class T>
static void put(std::string& bytes, size_t at, T value) {
  if (at + sizeof value <= bytes.size()) std::memcpy(bytes.data() + at, &value, sizeof value);
}

static size_t below(size_t end, Random& random) { return end == 0 ? 0 : random() % end; }

template <class T>
static const T& one_of(const std::vector<T>& list, Random& random) {
  return list[below(list.size(), random)];
}

static void mutate_bytes(std::string& bytes, size_t most, Random&) {
  const size_t size = bytes.size();
  bytes.resize(size + 64);
  bytes.resize(
      LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(bytes.data()), size, std::min(most, bytes.size())));
}

// A token with the blanks in front of it. A word includes its dots.
static std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> tokens;
  const auto in_word = [](char c) {
    return std::isalnum(uint8_t(c)) || c == '_' || c == '$' || c == '%' || c == '.';
  };
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && std::isspace(uint8_t(text[end]))) ++end;
    const size_t begin = end;
    while (end < text.size() && in_word(text[end])) ++end;
    if (end == begin && end < text.size()) ++end;
    tokens.push_back(text.substr(at, end - at));
    at = end;
  }
  return tokens;
}

static size_t blanks(const std::string& token) {
  return std::min(token.find_first_not_of(" \t\r\n"), token.size());
}

static void change_lines(std::string& text, Random& random) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    lines.push_back(text.substr(at, end - at));
    at = end;
  }
  if (lines.empty()) return;
  const size_t first = below(lines.size(), random);
  const size_t count = 1 + below(std::min<size_t>(lines.size() - first, random() % 4 == 0 ? 32 : 2), random);
  const auto begin = lines.begin() + std::ptrdiff_t(first), end = begin + std::ptrdiff_t(count);
  switch (random() % 4) {
    case 0: lines.erase(begin, end); break;
    case 1: {
      const std::vector<std::string> copy(begin, end);
      lines.insert(lines.begin() + std::ptrdiff_t(below(lines.size() + 1, random)), copy.begin(), copy.end());
      break;
    }
    case 2: std::swap(*begin, lines[below(lines.size(), random)]); break;
    default: std::rotate(lines.begin() + std::ptrdiff_t(below(first + 1, random)), begin, end); break;
  }
  text.clear();
  for (const std::string& line : lines) text += line;
}

// Changes one qualifier of a word: leaves it out, doubles it, or takes one of another word.
static void change_qualifier(std::string& word, const std::string& other, Random& random) {
  const auto cut = [&](const std::string& from) {
    std::vector<std::string> parts;
    for (size_t at = 0; at < from.size();) {
      const size_t end = std::min(from.find('.', at + 1), from.size());
      parts.push_back(from.substr(at, end - at));
      at = end;
    }
    return parts;
  };
  std::vector<std::string> parts = cut(word);
  const std::vector<std::string> others = cut(other);
  if (parts.empty() || others.empty()) return;
  const size_t at = below(parts.size(), random);
  const auto place = parts.begin() + std::ptrdiff_t(at);
  switch (random() % 4) {
    case 0: parts.erase(place); break;
    case 1: parts.insert(place, std::string(parts[at])); break;
    case 2: parts.insert(place + 1, one_of(others, random)); break;
    default: parts[at] = one_of(others, random); break;
  }
  word.clear();
  for (const std::string& part : parts) word += part;
}

static void change_token(std::string& text, Random& random) {
  std::vector<std::string> tokens = split(text);
  if (tokens.empty()) return;
  size_t at = below(tokens.size(), random);
  const auto place = tokens.begin() + std::ptrdiff_t(at);
  std::string& token = tokens[at];
  const std::string space = token.substr(0, blanks(token));
  const std::string other = one_of(tokens, random);
  switch (random() % 10) {
    case 0: tokens.erase(place); break;
    case 1: tokens.insert(place, std::string(token)); break;
    case 2: std::swap(token, tokens[below(tokens.size(), random)]); break;
    case 3: token = space + other.substr(blanks(other)); break;
    case 4: tokens.insert(place, " " + one_of(kWords, random)); break;
    case 5: token = space + one_of(kWords, random); break;
    case 6: {
      // Nesting and lists of any length.
      const size_t times = size_t{1} << random() % 13;
      std::string many;
      for (size_t i = 0; i < times && many.size() < kMostText; ++i) many += token;
      token = many;
      break;
    }
    case 7:
    case 8: {
      // The next number.
      while (at < tokens.size() &&
             !std::isdigit(uint8_t(tokens[at][std::min(blanks(tokens[at]), tokens[at].size() - 1)])))
        ++at;
      if (at == tokens.size()) return;
      tokens[at] = tokens[at].substr(0, blanks(tokens[at])) + one_of(kNumbers, random);
      break;
    }
    default: {
      std::string word = token.substr(space.size());
      change_qualifier(word, other.substr(blanks(other)), random);
      token = space + word;
    }
  }
  text.clear();
  for (const std::string& one : tokens) text += one;
}

// Returns the text of the first PTX entry, empty where there is none that this reads.
static std::string first_text(const std::string& container) {
  for (size_t at = kContainerHeader; at + kEntryHeader <= container.size();) {
    const uint64_t header = field<uint32_t>(container, at + 4), padded = field<uint64_t>(container, at + 8);
    if (header < kEntryHeader || header > container.size() - at || padded > container.size() - at - header)
      break;
    const char* payload = container.data() + at + header;
    const uint64_t flags = field<uint64_t>(container, at + 40);
    if (field<uint16_t>(container, at) == 1) {
      const uint32_t stored = field<uint32_t>(container, at + 16);
      if ((flags & (kLz4 | kZstd)) == 0) return {payload, std::min<size_t>(padded, strnlen(payload, padded))};
      if (stored > padded) return {};
      std::string text(2 * kMostText, '\0');
      const size_t size =
          flags & kLz4 ? size_t(LZ4_decompress_safe(payload, text.data(), int(stored), int(text.size())))
                       : ZSTD_decompress(text.data(), text.size(), payload, stored);
      return size <= text.size() ? text.substr(0, strnlen(text.data(), size)) : std::string();
    }
    at += header + padded;
  }
  return {};
}

static void change_header(std::string& container, Random& random) {
  // The container's own fields, or those of one of the entries.
  std::vector<size_t> entries;
  for (size_t at = kContainerHeader; at + kEntryHeader <= container.size() && entries.size() < 8;) {
    entries.push_back(at);
    const uint64_t step = uint64_t{field<uint32_t>(container, at + 4)} + field<uint64_t>(container, at + 8);
    if (step < kEntryHeader || step > container.size() - at) break;
    at += step;
  }
  struct Field {
    size_t at, bytes;
  };
  constexpr Field kFields[] = {{0, 2}, {4, 4}, {8, 8}, {16, 4}, {28, 4}, {40, 8}, {56, 8}};
  size_t at;
  size_t bytes;
  if (entries.empty() || random() % 8 == 0) {
    at = 4 + 2 * (random() % 3);
    bytes = at == 8 ? 8 : 2;
  } else {
    const Field& chosen = kFields[random() % std::size(kFields)];
    at = one_of(entries, random) + chosen.at;
    bytes = chosen.bytes;
  }
  uint64_t value = 0;
  if (at + bytes > container.size()) return;
  std::memcpy(&value, container.data() + at, bytes);
  switch (random() % 5) {
    case 0: value = random() % 256; break;
    case 1: value ^= uint64_t{1} << random() % (8 * bytes); break;
    case 2: value += random() % 33 - 16; break;
    case 3: value = container.size() - random() % 128; break;
    default: value = (uint64_t{1} << random() % (8 * bytes)) - random() % 2; break;
  }
  std::memcpy(container.data() + at, &value, bytes);
}

bool is_container(std::string_view input) {
  uint32_t magic = 0;
  std::memcpy(&magic, input.data(), std::min(input.size(), sizeof magic));
  return magic == kMagic;
}

void mutate_text(std::string& text, Random& random) {
  if (random() % 16 == 0) mutate_bytes(text, kMostText, random);
  else
    for (size_t i = 0; i < 1 + random() % 3; ++i)
      random() % 3 == 0 ? change_lines(text, random) : change_token(text, random);
  if (text.size() > kMostText) text.resize(kMostText);
}

std::string pack(std::string_view text, Random& random) {
  std::string payload(text);
  payload += '\0';
  const uint64_t size = payload.size();
  uint64_t flags = random() % 2 == 0 ? kTargetF : random() % 2 == 0 ? kTargetA : 0;
  if (const uint64_t way = random() % 3; way == 0) {
    flags |= kLz4;
    std::string packed(size_t(LZ4_compressBound(int(size))), '\0');
    packed.resize(size_t(LZ4_compress_default(payload.data(), packed.data(), int(size), int(packed.size()))));
    payload = packed;
  } else if (way == 1) {
    flags |= kZstd;
    std::string packed(ZSTD_compressBound(size), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), payload.data(), size, 1));
    payload = packed;
  }
  const bool plain = (flags & (kLz4 | kZstd)) == 0;
  std::string out(kContainerHeader + kEntryHeader, '\0');
  put<uint32_t>(out, 0, kMagic);
  put<uint16_t>(out, 4, 1);
  put<uint16_t>(out, 6, kContainerHeader);
  const size_t entry = kContainerHeader;
  put<uint16_t>(out, entry, 1);
  put<uint32_t>(out, entry + 4, kEntryHeader);
  put<uint64_t>(out, entry + 8, (payload.size() + 7) / 8 * 8);
  put<uint32_t>(out, entry + 16, plain ? 0 : uint32_t(payload.size()));
  put<uint32_t>(out, entry + 28, 100);
  put<uint64_t>(out, entry + 40, flags);
  put<uint64_t>(out, entry + 56, plain ? 0 : size);
  out += payload;
  out.resize(kContainerHeader + kEntryHeader + (payload.size() + 7) / 8 * 8);
  put<uint64_t>(out, 8, out.size() - kContainerHeader);
  return out;
}

void mutate_container(std::string& container, Random& random) {
  switch (random() % 4) {
    case 0: change_header(container, random); break;
    case 1: mutate_bytes(container, container.size() + 64, random); break;
    default: {
      std::string text = first_text(container);
      if (random() % 2 == 0) mutate_text(text, random);
      container = pack(text, random);
    }
  }
}

}  // namespace dualgemm_fuzz
