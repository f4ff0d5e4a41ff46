// one_kernel.cpp -- see one_kernel.h.
#include "sim/shim/one_kernel.h"

#include <algorithm>
#include <cstddef>

namespace sim::shim {

bool keep_kernel(std::string& text, const std::string& name) {
  // The ends of blocks of inline PTX have no empty line.
  const std::string begin = "\n.visible .entry ", end = "\n\n}\n", func = ".func ";
  if (text.find(begin + name + "(") == std::string::npos) return false;
  std::string out;
  size_t copied = 0;
  for (size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 1)) {
    size_t last = text.find(end, at);
    if (last == std::string::npos) return false;
    last += end.size();
    while (text.compare(last, func.size(), func) == 0) {
      last = text.find(end, last);
      if (last == std::string::npos) return false;
      last += end.size();
    }
    if (text.compare(at + begin.size(), name.size() + 1, name + "(") == 0) continue;
    out.append(text, copied, at - copied);
    out.append(static_cast<size_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(at),
                                              text.begin() + static_cast<std::ptrdiff_t>(last), '\n')),
               '\n');
    copied = last;
  }
  text = out.append(text, copied);
  return true;
}

bool kernels_stand_alone(const std::string& text) {
  for (const char* space : {"\n.global ", "\n.const ", "\n.visible .global ", "\n.visible .const ",
                            "\n.weak .global ", "\n.weak .const ", "\n.extern .global ", "\n.extern .const "})
    if (text.find(space) != std::string::npos) return false;
  return true;
}

}  // namespace sim::shim
