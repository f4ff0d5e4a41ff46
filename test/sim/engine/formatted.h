// formatted.h -- the formatted output of device code (CUDA C++ Programming Guide, Formatted Output): a format
// string and its arguments become text. Where strings and arguments lie is the caller's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace sim {

// Where the arguments come from. A null pointer to a string is not asked for.
struct FormatArguments {
  std::function<uint64_t(uint32_t bytes)> next;                         // 4 or 8 bytes
  std::function<std::string(uint64_t address, size_t longest)> string;  // ends at its zero, or before
};

struct Formatted {
  std::string text;
  int arguments = 0;  // that conversions took
};

// What is no conversion stays as it is written, and so does every conversion behind 32 arguments. Throws
// Fault kUnsupported for conversions of C that the guide does not list.
Formatted format(const std::string& format, const FormatArguments& arguments);

}  // namespace sim
