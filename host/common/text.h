// text.h -- a text of limited length, composed without allocating: for messages that list things.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdio>

namespace dualgemm {

template <size_t kSize>
class Text {
 public:
  const char* get() const { return text_; }

  // A text that is too long is cut off.
  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = std::vsnprintf(text_ + used_, kSize - used_, format, arguments);
    va_end(arguments);
    if (length > 0)
      used_ = static_cast<size_t>(length) < kSize - used_ ? used_ + static_cast<size_t>(length) : kSize - 1;
  }

  // Adds the next member of a list, with ", " between it and the one before.
  void add_member(const char* member) { add("%s%s", used_ ? ", " : "", member); }

 private:
  char text_[kSize] = {};  // with a literal here clang 14 would give each size the zeros of the first size
  size_t used_ = 0;
};

// Returns an address as messages have it, where a pointer may be missing.
inline Text<24> pointer_text(const void* pointer) {
  Text<24> text;
  if (pointer) text.add("%p", pointer);
  else text.add("NULL");
  return text;
}

}  // namespace dualgemm
