// shapes.cpp -- see shapes.h.
#include "shapes.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace bench {
namespace {

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw std::runtime_error("--shape " + text + ": " + why);
}

int32_t number(const std::string& text, const std::string& digits) {
  int32_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || rest != end) refuse(text, "\"" + digits + "\" is not a 32-bit number");
  return value;
}

// Parses "40,0,248", or "256~8": 256 groups of 8 rows on average.
std::vector<int32_t> parse_rows(const std::string& text, const std::string& list) {
  if (const size_t tilde = list.find('~'); tilde != std::string::npos) {
    const int32_t count = number(text, list.substr(0, tilde)), mean = number(text, list.substr(tilde + 1));
    if (count > DUALGEMM_MAX_GROUPS) refuse(text, std::to_string(count) + " groups are too many");
    const int64_t total = int64_t{count} * mean;
    if (total > INT32_MAX) refuse(text, std::to_string(total) + " rows are too many");
    return skewed_rows(count, total);
  }
  std::vector<int32_t> rows;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    rows.push_back(number(text, list.substr(begin, end - begin)));
    begin = end + 1;
  }
  if (rows.size() > DUALGEMM_MAX_GROUPS) refuse(text, std::to_string(rows.size()) + " groups are too many");
  return rows;
}

}  // namespace

int64_t Shape::rows() const {
  if (!grouped()) return int64_t{batch} * m;
  return std::accumulate(group_rows.begin(), group_rows.end(), int64_t{0});
}

double Shape::flops() const { return 2.0 * static_cast<double>(rows()) * static_cast<double>(columns()) * k; }

Shape groups(dualgemm_group_mode_t mode, std::vector<int32_t> rows, int32_t n, int32_t k, std::string label) {
  Shape shape{0, n, k, std::move(label), 1, mode, std::move(rows)};
  const int64_t most = *std::max_element(shape.group_rows.begin(), shape.group_rows.end());
  const int64_t m = shape.offsets() ? shape.rows() : (most + 127) / 128 * 128;
  if (m > INT32_MAX) throw std::runtime_error(shape.label + ": " + std::to_string(m) + " rows are too many");
  shape.m = static_cast<int32_t>(m);
  return shape;
}

std::vector<int32_t> skewed_rows(int32_t groups, int64_t total) {
  // Returns the part of the total that the smallest `share` of the groups has.
  const auto part = [](double share) { return share < 1 ? share + (1 - share) * std::log1p(-share) : 1.0; };
  std::vector<int32_t> rows(groups);
  // A step without a common divisor visits every place once; this one leaves neighbours far apart.
  int32_t step = std::max(1, static_cast<int32_t>(groups * 0.618));
  while (std::gcd(step, groups) != 1) ++step;
  int64_t before = 0;
  for (int32_t i = 0; i < groups; ++i) {
    const int64_t upto = std::llround(part((i + 1.0) / groups) * static_cast<double>(total));
    rows[int64_t{i} * step % groups] = static_cast<int32_t>(upto - before);
    before = upto;
  }
  return rows;
}

Shape parse_shape(const std::string& text) {
  static const std::regex form(
      R"((?:(\d+)\*)?(\d+)x(\d+)x(\d+)|(offsets|masked):(\d[\d,]*|\d+~\d+)x(\d+)x(\d+))");
  std::smatch part;
  if (!std::regex_match(text, part, form))
    refuse(text, "expected MxNxK, L*MxNxK, or offsets: or masked: with R,R,..xNxK or G~RxNxK");
  Shape shape;
  if (part[5].matched) {
    const std::vector<int32_t> rows = parse_rows(text, part[6]);
    if (std::all_of(rows.begin(), rows.end(), [](int32_t r) { return r == 0; })) refuse(text, "has no rows");
    shape = groups(part[5] == "offsets" ? DUALGEMM_GROUP_OFFSETS : DUALGEMM_GROUP_MASKED, rows,
                   number(text, part[7]), number(text, part[8]), "command line");
  } else {
    shape = {number(text, part[2]), number(text, part[3]), number(text, part[4]), "command line"};
    if (part[1].matched) shape.batch = number(text, part[1]);
  }
  if (shape.m < 1 || shape.n < 1 || shape.k < 1 || shape.batch < 1) refuse(text, "numbers must be positive");
  return shape;
}

std::vector<Shape> parse_shape_list(const std::string& text) {
  std::vector<Shape> out;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string products, shape;
    if (!(words >> products)) continue;
    try {
      if ((products != "1" && products != "2") || !(words >> shape))
        throw std::runtime_error("\"" + line + "\": expected 1 or 2 and a shape");
      out.push_back(parse_shape(shape));
    } catch (const std::runtime_error& error) {
      throw std::runtime_error("line " + std::to_string(number) + ": " + error.what());
    }
    out.back().products = products[0] - '0';
    std::getline(words >> std::ws, out.back().label);
    if (out.back().label.empty()) out.back().label = "list";
  }
  return out;
}

void check_compact(const Shape& shape) {
  if (shape.k % 32 != 0)
    throw std::runtime_error("K = " + std::to_string(shape.k) +
                             ": the benchmark's tensors are compact, K % 32 == 0");
}

std::string shape_text(const Shape& s) {
  const auto size = [&s](int64_t m) {
    return std::to_string(m) + " x " + std::to_string(s.n) + " x " + std::to_string(s.k);
  };
  const std::string problems = std::to_string(s.problems());
  if (s.grouped()) return (s.offsets() ? "offsets " : "masked ") + problems + ", " + size(s.rows());
  return s.batch > 1 ? problems + " of " + size(s.m) : size(s.m);
}

int Epilogue::bits() const {
  switch (dtype) {
    case DUALGEMM_DTYPE_FP32: return 32;
    case DUALGEMM_DTYPE_FP8_E4M3: return 8;
    case DUALGEMM_DTYPE_NVFP4: return 4;
    default: return 16;
  }
}

int64_t Epilogue::pitch(int64_t n) const {
  const int64_t piece = 128 / bits();
  return (n + piece - 1) / piece * piece;
}

std::vector<Shape> with_rows(const std::vector<Shape>& shapes, const std::vector<int32_t>& rows) {
  std::vector<Shape> out;
  for (Shape shape : shapes) {
    if (shape.grouped())
      throw std::runtime_error("--rows: " + shape_text(shape) + ": groups have rows of their own");
    for (const int32_t m : rows) {
      shape.m = m;
      const auto same = [&shape](const Shape& x) {
        return x.m == shape.m && x.n == shape.n && x.k == shape.k && x.batch == shape.batch &&
               x.products == shape.products;
      };
      if (std::none_of(out.begin(), out.end(), same)) out.push_back(shape);
    }
  }
  return out;
}

std::vector<Shape> part_of(const std::vector<Shape>& shapes, const std::string& text) {
  static const std::regex form(R"(([1-9]\d{0,3})/([1-9]\d{0,3}))");
  std::smatch number;
  if (!std::regex_match(text, number, form)) throw std::runtime_error("--part " + text + ": expected I/N");
  const size_t part = std::stoul(number[1]), parts = std::stoul(number[2]);
  if (part > parts || part > shapes.size())
    throw std::runtime_error("--part " + text + ": of " + std::to_string(shapes.size()) +
                             " shapes there is no such part");
  std::vector<Shape> out;
  for (size_t i = part - 1; i < shapes.size(); i += parts) out.push_back(shapes[i]);
  return out;
}

}  // namespace bench
