// progress.cpp -- see progress.h.
#include "progress.h"

#include <unistd.h>

#include <cstdio>

namespace bench {
namespace {

constexpr size_t kColumns = 79;

// Returns to the first column and erases the line.
constexpr const char* kErase = "\r\x1b[K";

}  // namespace

void show_progress(const std::string& text) {
  if (!isatty(STDERR_FILENO)) return;
  std::fprintf(stderr, "%s%s", kErase, text.substr(0, kColumns).c_str());
  std::fflush(stderr);
}

void clear_progress() {
  if (isatty(STDERR_FILENO)) std::fputs(kErase, stderr);
}

}  // namespace bench
