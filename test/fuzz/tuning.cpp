// tuning.cpp -- the reader of tuning files: a good file, then up to four lines, words or bytes of it changed,
// with the sum of what was changed or of what was there before.

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <iterator>
#include <string>

#include "fuzz/answer.h"
#include "fuzz/targets.h"
#include "host/common/tuning_file.h"

namespace dualgemm_fuzz {

namespace {

constexpr const char* kLines[] = {"dualgemm tuning 1", "gpu a GPU",   "sms 132", "driver 13000",
                                  "library 1-2",       "# a comment", ""};
constexpr const char* kWords[] = {
    "0", "-1", "2147483648", "9223372036854775808", "1e9", "NVFP4", "general", "groups", "end", "#",
    "",  "\t", "x"};

uint64_t sum_of(const std::string& bytes) {
  uint64_t sum = 14695981039346656037u;
  for (const char byte : bytes) sum = (sum ^ static_cast<unsigned char>(byte)) * 1099511628211u;
  return sum;
}

std::string good_lines(Bytes& bytes, int32_t entries) {
  std::string text;
  for (int i = 0; i < 5; ++i) text += std::string(kLines[i]) + "\n";
  for (int32_t i = 0; i < entries; ++i) {
    char line[128];
    std::snprintf(line, sizeof line, "%d NVFP4 BF16 plain dense %d %d %d %d m%d\n", 1 + bytes.below(2),
                  1 + bytes.below(9), 1 + bytes.below(9999), 1 + bytes.below(9999), 1 + i, bytes.below(99));
    text += line;
  }
  return text;
}

void change(Bytes& bytes, std::string* text) {
  const size_t at = static_cast<size_t>(bytes.raw<uint16_t>()) % (text->size() + 1);
  const size_t count = static_cast<size_t>(bytes.below(40));
  switch (bytes.below(4)) {
    case 0: text->replace(at, count, kWords[bytes.raw<uint8_t>() % std::size(kWords)]); break;
    case 1:
      text->insert(at, std::string("\n") + kLines[bytes.raw<uint8_t>() % std::size(kLines)] + "\n");
      break;
    case 2: text->erase(at); break;
    default:
      if (at < text->size()) (*text)[at] = bytes.raw<char>();
  }
}

}  // namespace

void read_tuning(Bytes& bytes) {
  const int32_t entries = bytes.below(5);
  std::string text = good_lines(bytes, entries);
  const uint64_t sum_before = sum_of(text);
  const int32_t changes = bytes.below(5);
  for (int32_t i = 0; i < changes; ++i) change(bytes, &text);
  char end[64];
  std::snprintf(end, sizeof end, "end %d %016" PRIx64 "\n", entries,
                bytes.one_in(2) ? sum_before : sum_of(text));
  text += end;
  if (bytes.one_in(4)) change(bytes, &text);
  // As the library has a file: no more memory than its bytes.
  const std::string exact(text);
  dualgemm::TuningReader reader(exact);
  dualgemm::TuningPlace place;
  int32_t read = 0;
  if (reader.read_place(&place))
    for (dualgemm::TuningLine line; reader.read_entry(&line); ++read)
      require(line.products >= 1 && line.products <= 2 && line.problems > 0 && line.n > 0 && line.k > 0 &&
                  line.rows > 0 && !line.instance.empty(),
              "an entry with numbers that are none, line %d", reader.line());
  const bool refused = reader.fault()[0] != '\0';
  const int64_t lines = std::count(exact.begin(), exact.end(), '\n');
  require(reader.line() >= 1 && reader.line() <= lines + 1, "line %d of %d", reader.line(), int(lines));
  require(changes > 0 || refused || read == entries, "%d of %d entries were read", read, entries);
  dualgemm::TuningLine none;
  require(!reader.read_entry(&none), "there is an entry behind the last one");
}

}  // namespace dualgemm_fuzz
