// status.h -- how the library's own files report a failure: a status for the caller, a text for the person
// behind it. The text lives in a thread-local buffer, so that reporting allocates nothing and threads do not
// mix their messages. It knows nothing about CUDA; cuda_error.cpp turns CUDA's errors into statuses.
#pragma once

#include "host/include/dualgemm.h"

namespace dualgemm {

inline constexpr dualgemm_status_t kOk = DUALGEMM_STATUS_SUCCESS;

// Stores the formatted text as this thread's last error and returns `status`.
[[gnu::format(printf, 2, 3)]] dualgemm_status_t fail(dualgemm_status_t status, const char* format,
                                                     ...) noexcept;

// Every exported function that returns a status calls this first, so that a success leaves an empty text
// behind.
void clear_last_error() noexcept;

// Sets the number that dualgemm_last_cuda_error() returns from now on, on this thread.
void set_last_cuda_error(int error) noexcept;

// Some CUDA calls are questions of a function's own, and the function goes on if they fail. Errors in this
// scope are not reported to the caller.
class UnreportedErrors {
 public:
  UnreportedErrors() noexcept;
  ~UnreportedErrors();
  UnreportedErrors(const UnreportedErrors&) = delete;
  UnreportedErrors& operator=(const UnreportedErrors&) = delete;

 private:
  int cuda_error_;
};

}  // namespace dualgemm
