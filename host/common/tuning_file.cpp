// tuning_file.cpp -- see tuning_file.h.

#include "host/common/tuning_file.h"

#include <cinttypes>
#include <cstdarg>
#include <limits>

#include "host/common/names.h"

namespace dualgemm {
namespace {

constexpr std::string_view kFirstLine = "dualgemm tuning 1";

// As messages have a part of a line: not longer than this.
constexpr size_t kMostShown = 64;

int shown(std::string_view text) {
  return static_cast<int>(text.size() < kMostShown ? text.size() : kMostShown);
}

// Takes the next word off a line; an empty one where there is none.
std::string_view take_word(std::string_view* line) {
  const size_t begin = line->find_first_not_of(' ');
  if (begin == std::string_view::npos) return *line = {};
  const size_t end = line->find(' ', begin);
  const std::string_view word = line->substr(begin, end == std::string_view::npos ? end : end - begin);
  *line = end == std::string_view::npos ? std::string_view() : line->substr(end);
  return word;
}

// Reads a number that is not negative, of digits alone. (std::from_chars would show functions of the standard
// library in every object that embeds this one.)
template <class Number>
bool read_number(std::string_view word, Number* number, uint64_t base = 10) {
  constexpr uint64_t kMost = std::numeric_limits<Number>::max();
  uint64_t value = 0;
  for (const char c : word) {
    const uint64_t digit = c >= '0' && c <= '9'   ? static_cast<uint64_t>(c - '0')
                           : c >= 'a' && c <= 'f' ? static_cast<uint64_t>(c - 'a' + 10)
                                                  : base;
    if (digit >= base || value > (kMost - digit) / base) return false;
    value = value * base + digit;
  }
  *number = static_cast<Number>(value);
  return !word.empty();
}

template <class Number>
bool take_number(std::string_view* line, Number* number) {
  return read_number(take_word(line), number) && *number > 0;
}

bool take_dtype(std::string_view* line, int32_t* dtype) {
  const std::string_view word = take_word(line);
  for (*dtype = DUALGEMM_DTYPE_BF16; *dtype <= DUALGEMM_DTYPE_FP8_E4M3; ++*dtype)
    if (word == dtype_name(*dtype)) return true;
  return false;
}

// Takes one of two words: the first one is false.
bool take_either(std::string_view* line, std::string_view no, std::string_view yes, bool* is) {
  const std::string_view word = take_word(line);
  *is = word == yes;
  return *is || word == no;
}

const char* epilogue_word(bool general) { return general ? "general" : "plain"; }
const char* groups_word(bool grouped) { return grouped ? "groups" : "dense"; }

}  // namespace

bool TuningReader::refuse(const char* format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fault_.add("%s", text);
  return false;
}

// Comments and empty lines are left out.
bool TuningReader::next_line(std::string_view* line) {
  while (!rest_.empty()) {
    const size_t end = rest_.find('\n');
    ++line_;
    if (end == std::string_view::npos) return refuse("the line has no end");
    *line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    if (line->find('\0') != std::string_view::npos) return refuse("a byte of 0: this is no text");
    *line = line->substr(0, line->find('#'));
    while (!line->empty() && line->back() == ' ') line->remove_suffix(1);
    if (!line->empty()) return true;
  }
  ++line_;
  return refuse("the file ends here, without its line \"end\"");
}

bool TuningReader::read_place(TuningPlace* place) {
  std::string_view line;
  if (!next_line(&line)) return false;
  if (line != kFirstLine)
    return refuse("\"%.*s\": must be \"%.*s\"", shown(line), line.data(), static_cast<int>(kFirstLine.size()),
                  kFirstLine.data());
  int32_t sms_line = 0;
  const struct {
    std::string_view name;
    std::string_view* text;
    int32_t* number;
    int32_t* line;
  } fields[] = {{"gpu", &place->gpu, nullptr, &place->gpu_line},
                {"sms", nullptr, &place->sms, &sms_line},
                {"driver", nullptr, &place->driver, &place->driver_line},
                {"library", &place->library, nullptr, &place->library_line}};
  for (const auto& [name, text, number, at] : fields) {
    if (!next_line(&line)) return false;
    *at = line_;
    std::string_view value = line;
    if (take_word(&value) != name || value.size() < 2)
      return refuse("\"%.*s\": must be \"%.*s\" and its value", shown(line), line.data(),
                    static_cast<int>(name.size()), name.data());
    value.remove_prefix(1);
    if (text) *text = value;
    else if (!read_number(value, number)) return refuse("\"%.*s\": is no number", shown(value), value.data());
  }
  return true;
}

bool TuningReader::read_end(std::string_view line) {
  const std::string_view all = line;
  take_word(&line);
  int32_t entries = 0;
  uint64_t sum = 0;
  if (!read_number(take_word(&line), &entries) || !read_number(take_word(&line), &sum, 16) ||
      !take_word(&line).empty())
    return refuse("\"%.*s\": must be \"end\", the number of entries and the sum of the bytes before",
                  shown(all), all.data());
  if (entries != entries_)
    return refuse("%" PRId32 " entries are counted, %" PRId32 " are there", entries, entries_);
  TuningSum expected;
  expected.add({text_.data(), static_cast<size_t>(all.data() - text_.data())});
  if (sum != expected.get())
    return refuse("the lines above have changed: their sum is %016" PRIx64 ", not %016" PRIx64,
                  expected.get(), sum);
  ended_ = true;
  if (!rest_.empty()) return ++line_, refuse("nothing may follow the line \"end\"");
  return false;
}

bool TuningReader::read_entry(TuningLine* entry) {
  std::string_view line;
  if (ended_ || fault_.get()[0] != '\0' || !next_line(&line)) return false;
  std::string_view rest = line;
  if (take_word(&rest) == "end") return read_end(line);
  rest = line;
  const bool read = take_number(&rest, &entry->products) && entry->products <= 2 &&
                    take_dtype(&rest, &entry->a_dtype) && take_dtype(&rest, &entry->c_dtype) &&
                    take_either(&rest, epilogue_word(false), epilogue_word(true), &entry->general) &&
                    take_either(&rest, groups_word(false), groups_word(true), &entry->grouped) &&
                    take_number(&rest, &entry->problems) && take_number(&rest, &entry->n) &&
                    take_number(&rest, &entry->k) && take_number(&rest, &entry->rows);
  entry->instance = take_word(&rest);
  if (!read || entry->instance.empty() || !take_word(&rest).empty())
    return refuse(
        "\"%.*s\": must be products, types of A and C, plain or general, dense or groups, problems, N, "
        "K, rows and an instance",
        shown(line), line.data());
  ++entries_;
  return true;
}

Text<512> tuning_heading(const TuningPlace& place) {
  Text<512> text;
  text.add("%.*s\ngpu %.*s\nsms %" PRId32 "\ndriver %" PRId32 "\nlibrary %.*s\n",
           static_cast<int>(kFirstLine.size()), kFirstLine.data(), static_cast<int>(place.gpu.size()),
           place.gpu.data(), place.sms, place.driver, static_cast<int>(place.library.size()),
           place.library.data());
  return text;
}

Text<256> tuning_entry(const TuningLine& x) {
  Text<256> text;
  text.add("%" PRId32 " %s %s %s %s %" PRId32 " %" PRId32 " %" PRId32 " %" PRId64 " %.*s\n", x.products,
           dtype_name(x.a_dtype), dtype_name(x.c_dtype), epilogue_word(x.general), groups_word(x.grouped),
           x.problems, x.n, x.k, x.rows, static_cast<int>(x.instance.size()), x.instance.data());
  return text;
}

Text<64> tuning_end(int32_t entries, const TuningSum& sum) {
  Text<64> text;
  text.add("end %" PRId32 " %016" PRIx64 "\n", entries, sum.get());
  return text;
}

}  // namespace dualgemm
