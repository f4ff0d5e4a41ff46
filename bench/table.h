// table.h -- tables of text for a person: columns side by side, never wider than kMostColumns.
#pragma once

#include <string>
#include <vector>

namespace bench {

inline constexpr int kMostColumns = 100;

struct Column {
  std::string title;
  int width;  // at least the title's
  bool left = false;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns);

  int width() const;  // of a line
  std::string heading() const;
  // Returns a line. Where the first cell does not fit into its column, the others follow below it; where
  // others are so large that the line gets too long, its end does.
  std::string line(const std::vector<std::string>& cells) const;

 private:
  std::vector<Column> columns_;
};

// Breaks text at spaces into lines of at most kMostColumns; all but the first are indented.
std::string wrapped(const std::string& text, int indent = 2);

// Returns microseconds with as many digits as they deserve: "9.87", "98.7" or "98.70", "987.6", "9877".
std::string modelled_us_text(double us);
std::string us_text(double us);
std::string range_text(double middle, double low, double high, std::string (*text)(double));

}  // namespace bench
