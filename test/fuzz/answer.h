// answer.h -- what a function of the library said, and what holds of everything that it can say. A violation
// ends the program with a sentence, which the fuzzer takes for a crash.
#pragma once

#include <string>

#include "fuzz/fields.h"
#include "support/stub/cuda.h"

namespace dualgemm_fuzz {

// Ends the program unless the property holds.
__attribute__((format(printf, 2, 3))) void require(bool holds, const char* property, ...);

struct Answer {
  dualgemm_status_t status;
  std::string text;
  bool operator==(const Answer&) const = default;
  bool good() const { return status == DUALGEMM_STATUS_SUCCESS; }
};

void require_same(const Answer& x, const Answer& y, const char* what);

// Looks at the text that the last call left: empty after a success, and only then.
Answer answer_of(dualgemm_status_t status);

// The same question has the same answer again.
template <class Call>
Answer steady_answer(Call call) {
  const Answer first = answer_of(call());
  require_same(first, answer_of(call()), "the same call again");
  return first;
}

// A refusal that is about the arguments names one and its value.
void require_named(const Answer& answer, Fields fields, const void* structure,
                   const dualgemm_device_t* device);

// Counts what the calls of one scope ask the device to do.
class Work {
 public:
  uint64_t launches() const { return dualgemm_test::stub_work().launches - before_.launches; }
  uint64_t fills() const { return dualgemm_test::stub_work().fills - before_.fills; }
  bool none() const { return launches() == 0 && fills() == 0; }

 private:
  const dualgemm_test::StubWork before_ = dualgemm_test::stub_work();
};

}  // namespace dualgemm_fuzz
