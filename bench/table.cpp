// table.cpp -- see table.h. Everything is ASCII, so that bytes are columns.
#include "table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace bench {
namespace {

std::string without_trailing_spaces(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {
  for (Column& column : columns_)
    column.width = std::max(column.width, static_cast<int>(column.title.size()));
}

int Table::width() const {
  int width = -1;
  for (const Column& column : columns_) width += 1 + column.width;
  return width;
}

std::string Table::heading() const {
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  return line(titles);
}

std::string Table::line(const std::vector<std::string>& cells) const {
  std::string text;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const Column& column = columns_[i];
    std::string cell = i < cells.size() ? cells[i] : "";
    if (i == 0 && static_cast<int>(cell.size()) > column.width) {
      text = cell + "\n";
      cell.clear();
    }
    if (i > 0) text += ' ';
    text +=
        column.left ? fmt::format("{:<{}}", cell, column.width) : fmt::format("{:>{}}", cell, column.width);
  }
  text = without_trailing_spaces(text);
  const size_t last_line = text.size() - (text.find('\n') + 1);
  return last_line > kMostColumns ? wrapped(text) : text + "\n";
}

std::string wrapped(const std::string& text, int indent) {
  std::string out, line;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!line.empty() && static_cast<int>(line.size() + 1 + word.size()) > kMostColumns) {
      out += without_trailing_spaces(line) + "\n";
      line = std::string(static_cast<size_t>(indent), ' ') + word;
    } else {
      line += (begin == 0 ? "" : " ") + word;
    }
    begin = end + 1;
  }
  return out + line + "\n";
}

std::string modelled_us_text(double us) {
  return us < 1000 ? fmt::format("{:.1f}", us) : fmt::format("{:.0f}", us);
}

std::string us_text(double us) { return us < 100 ? fmt::format("{:.2f}", us) : modelled_us_text(us); }

std::string range_text(double middle, double low, double high, std::string (*text)(double)) {
  return text(middle) + " (" + text(low) + ".." + text(high) + ")";
}

}  // namespace bench
