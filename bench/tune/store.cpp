// store.cpp -- see store.h.
#include "store.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "operands.h"

namespace bench {
namespace {

using dualgemm::TuningLine;

bool same_launches(const TuningLine& x, const TuningLine& y) {
  const auto key = [](const TuningLine& line) {
    return std::tuple(line.products, line.a_dtype, line.c_dtype, line.general, line.grouped, line.problems,
                      line.n, line.k, line.rows);
  };
  return key(x) == key(y);
}

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw std::runtime_error(path + ": " + why);
}

}  // namespace

TuningLine key_of(const Shape& shape, const Epilogue& epilogue, bool general) {
  const dualgemm_args_t sizes = timed_sizes(shape, epilogue);
  TuningLine out;
  out.products = shape.products;
  out.a_dtype = shape.a_dtype;
  out.c_dtype = epilogue.dtype;
  out.general = general;
  out.grouped = shape.grouped();
  out.problems = shape.problems();
  out.n = shape.n;
  out.k = shape.k;
  if (shape.offsets()) out.rows = shape.m;
  else
    out.rows = int64_t{shape.grouped() ? std::min(sizes.expected_rows, shape.m) : shape.m} * shape.problems();
  return out;
}

Store::Store(std::string path, StorePlace place, bool fresh)
    : path_(std::move(path)), place_(std::move(place)) {
  if (!fresh && std::filesystem::exists(path_)) read();
}

void Store::read() {
  std::ifstream file(path_, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  dualgemm::TuningReader reader(text);
  dualgemm::TuningPlace there;
  constexpr const char* kFresh = "; --fresh begins a new file in its place";
  if (reader.read_place(&there)) {
    const dualgemm::TuningPlace here = place();
    if (there.gpu != here.gpu || there.sms != here.sms || there.driver != here.driver ||
        there.library != here.library)
      fail(path_, "is for another GPU, driver or library" + std::string(kFresh));
    for (TuningLine line; reader.read_entry(&line);) {
      const char* const end = line.instance.data() + line.instance.size();
      std::string comment(end, std::find(end, text.data() + text.size(), '\n'));
      const size_t hash = comment.find("# ");
      entries_.push_back({line, std::string(line.instance),
                          hash == std::string::npos ? std::string() : comment.substr(hash + 2)});
    }
  }
  if (reader.fault()[0] != '\0')
    fail(path_, "line " + std::to_string(reader.line()) + ": " + reader.fault() + kFresh);
}

bool Store::has(const TuningLine& key) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return same_launches(entry.line, key); });
}

void Store::add(const TuningLine& line, const std::string& comment) {
  std::erase_if(entries_, [&](const Entry& entry) { return same_launches(entry.line, line); });
  entries_.push_back({line, std::string(line.instance), comment});
  write();
}

// First into a file of its own beside it, which then takes its name.
void Store::write() const {
  std::string text = dualgemm::tuning_heading(place()).get();
  text += "# products, types of A and C, epilogue, dense or groups, problems, N, K, rows, instance\n";
  for (const Entry& entry : entries_) {
    TuningLine line = entry.line;
    line.instance = entry.instance;
    std::string written = dualgemm::tuning_entry(line).get();
    if (!entry.comment.empty()) written.insert(written.size() - 1, "  # " + entry.comment);
    text += written;
  }
  dualgemm::TuningSum sum;
  sum.add(text);
  text += dualgemm::tuning_end(static_cast<int32_t>(entries_.size()), sum).get();
  const std::string other = path_ + "." + std::to_string(getpid()) + ".new";
  std::FILE* const file = std::fopen(other.c_str(), "wb");
  if (file == nullptr) fail(other, std::string("cannot be written: ") + std::strerror(errno));
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size() &&
                       std::fflush(file) == 0 && fsync(fileno(file)) == 0;
  const int error = errno;
  std::fclose(file);
  std::error_code renamed;
  if (written) std::filesystem::rename(other, path_, renamed);
  if (written && !renamed) return;
  std::error_code ignored;
  std::filesystem::remove(other, ignored);
  fail(path_, "cannot be written: " + (written ? renamed.message() : std::string(std::strerror(error))));
}

}  // namespace bench
