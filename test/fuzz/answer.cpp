// answer.cpp -- see answer.h.

#include "fuzz/answer.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace dualgemm_fuzz {

void require(bool holds, const char* property, ...) {
  if (holds) return;
  std::fputs("violated: ", stderr);
  va_list arguments;
  va_start(arguments, property);
  std::vfprintf(stderr, property, arguments);
  va_end(arguments);
  std::fputs("\n", stderr);
  std::abort();
}

void require_same(const Answer& x, const Answer& y, const char* what) {
  require(x == y, "%s: %s \"%s\", and then %s \"%s\"", what, dualgemm_status_name(x.status), x.text.c_str(),
          dualgemm_status_name(y.status), y.text.c_str());
}

Answer answer_of(dualgemm_status_t status) {
  const Answer answer{status, dualgemm_last_error()};
  require(answer.text.empty() == answer.good(), "%s has the text \"%s\"", dualgemm_status_name(status),
          answer.text.c_str());
  require(status >= 0 && status < DUALGEMM_STATUS_INTERNAL, "status %d: %s", static_cast<int>(status),
          answer.text.c_str());
  return answer;
}

void require_named(const Answer& answer, Fields fields, const void* structure,
                   const dualgemm_device_t* device) {
  // A device that no kernel is built for is named by its number, and by what it is.
  if (answer.good() || answer.status == DUALGEMM_STATUS_ARCH_MISMATCH) return;
  if (answer.text.starts_with("args=NULL:") && !structure) return;
  require((structure && names_field(answer.text, fields, structure)) ||
              (device && names_field(answer.text, fields_of(*device), device)),
          "no argument and its value: \"%s\"", answer.text.c_str());
}

}  // namespace dualgemm_fuzz
