// one_kernel.cpp -- see one_kernel.h.
#include "sim/shim/one_kernel.h"

#include <algorithm>
#include <cstddef>

namespace sim::shim {

// Returns where the next line begins that is a directive; npos: none is left. A directive begins with a dot,
// as do the many lines with bytes of debug information, and no instruction does. The search begins at `at`.
static size_t next_directive(const std::string& text, size_t at) {
  do {
    at = text.find('\n', at);
    if (at == std::string::npos) return at;
    ++at;
  } while (text[at] != '.' || text[at + 1] == 'b');
  return at;
}

static bool begins(const std::string& text, size_t at, const std::string& with) {
  return text.compare(at, with.size(), with) == 0;
}

bool keep_kernel(std::string& text, const std::string& name) {
  // The ends of blocks of inline PTX have no empty line.
  const std::string entry = ".visible .entry ", end = "\n\n}\n", func = ".func ";
  std::string out;
  size_t copied = 0;
  bool found = false;
  for (size_t at = next_directive(text, 0); at != std::string::npos; at = next_directive(text, at)) {
    if (!begins(text, at, entry)) continue;
    size_t last = at;
    do {
      last = text.find(end, last);
      if (last == std::string::npos) return false;
      last += end.size();
    } while (begins(text, last, func));
    if (begins(text, at + entry.size(), name + "(")) {
      found = true;
    } else {
      out.append(text, copied, at - copied);
      const auto lines = std::count(text.begin() + static_cast<std::ptrdiff_t>(at),
                                    text.begin() + static_cast<std::ptrdiff_t>(last), '\n');
      out.append(static_cast<size_t>(lines), '\n');
      copied = last;
    }
    at = last - 1;
  }
  if (found) text = out.append(text, copied);
  return found;
}

bool kernels_stand_alone(const std::string& text) {
  for (size_t at = next_directive(text, 0); at != std::string::npos; at = next_directive(text, at))
    for (const char* space : {".global ", ".const ", ".visible .global ", ".visible .const ",
                              ".weak .global ", ".weak .const ", ".extern .global ", ".extern .const "})
      if (begins(text, at, space)) return false;
  return true;
}

}  // namespace sim::shim
