// status.cpp -- names and sentences of the statuses, and the thread-local text behind dualgemm_last_error().

#include "host/common/status.h"

#include <cstdarg>
#include <cstdio>

namespace dualgemm {
namespace {

// The longest text is the one of a refused tensor map, which lists all of its arguments: about 400
// characters.
thread_local char last_error[1024] = "";
thread_local int last_cuda_error = 0;

struct StatusText {
  dualgemm_status_t status;
  const char* name;
  const char* sentence;
};

constexpr StatusText kStatusTexts[] = {
    {DUALGEMM_STATUS_SUCCESS, "DUALGEMM_STATUS_SUCCESS", "The call succeeded."},
    {DUALGEMM_STATUS_NULL_POINTER, "DUALGEMM_STATUS_NULL_POINTER", "A required pointer is NULL."},
    {DUALGEMM_STATUS_INVALID_VALUE, "DUALGEMM_STATUS_INVALID_VALUE",
     "A number, enumerator or flag lies outside its range."},
    {DUALGEMM_STATUS_INVALID_SHAPE, "DUALGEMM_STATUS_INVALID_SHAPE",
     "N or K is not a multiple of what the data format needs."},
    {DUALGEMM_STATUS_INVALID_STRIDE, "DUALGEMM_STATUS_INVALID_STRIDE",
     "A row pitch or a stride between problems is too small, too large or not a multiple of 16 bytes."},
    {DUALGEMM_STATUS_MISALIGNED, "DUALGEMM_STATUS_MISALIGNED", "A pointer is not aligned as documented."},
    {DUALGEMM_STATUS_ALIASING, "DUALGEMM_STATUS_ALIASING", "An output overlaps an input or another output."},
    {DUALGEMM_STATUS_VERSION_MISMATCH, "DUALGEMM_STATUS_VERSION_MISMATCH",
     "The size of the argument structure fits no release this library knows."},
    {DUALGEMM_STATUS_NOT_SUPPORTED, "DUALGEMM_STATUS_NOT_SUPPORTED",
     "The request is legal, but this release does not compute it."},
    {DUALGEMM_STATUS_NO_DEVICE, "DUALGEMM_STATUS_NO_DEVICE", "There is no CUDA device or no CUDA driver."},
    {DUALGEMM_STATUS_ARCH_MISMATCH, "DUALGEMM_STATUS_ARCH_MISMATCH",
     "The library has no kernel for the compute capability of the device."},
    {DUALGEMM_STATUS_DRIVER_TOO_OLD, "DUALGEMM_STATUS_DRIVER_TOO_OLD",
     "The CUDA driver is older than the CUDA version the library was built with."},
    {DUALGEMM_STATUS_WORKSPACE_TOO_SMALL, "DUALGEMM_STATUS_WORKSPACE_TOO_SMALL",
     "The workspace is smaller than the instance needs."},
    {DUALGEMM_STATUS_CUDA_ERROR, "DUALGEMM_STATUS_CUDA_ERROR",
     "A CUDA call failed; dualgemm_last_cuda_error() has its number."},
    {DUALGEMM_STATUS_INTERNAL, "DUALGEMM_STATUS_INTERNAL",
     "The library contradicts itself; please report this."},
    {DUALGEMM_STATUS_RUNTIME_MISMATCH, "DUALGEMM_STATUS_RUNTIME_MISMATCH",
     "The CUDA runtime of the program has another major version than the CUDA that the library was built with."},
};

const StatusText* find_text(dualgemm_status_t status) noexcept {
  for (const StatusText& text : kStatusTexts)
    if (text.status == status) return &text;
  return nullptr;
}

}  // namespace

dualgemm_status_t fail(dualgemm_status_t status, const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(last_error, sizeof last_error, format, arguments);
  va_end(arguments);
  return status;
}

void clear_last_error() noexcept { last_error[0] = '\0'; }

void set_last_cuda_error(int error) noexcept { last_cuda_error = error; }

UnreportedErrors::UnreportedErrors() noexcept : cuda_error_(last_cuda_error) {}

UnreportedErrors::~UnreportedErrors() {
  clear_last_error();
  set_last_cuda_error(cuda_error_);
}

}  // namespace dualgemm

const char* dualgemm_status_name(dualgemm_status_t status) noexcept {
  const dualgemm::StatusText* text = dualgemm::find_text(status);
  return text ? text->name : "unknown dualgemm_status_t";
}

const char* dualgemm_status_string(dualgemm_status_t status) noexcept {
  const dualgemm::StatusText* text = dualgemm::find_text(status);
  return text ? text->sentence : "This number is not a status of this library.";
}

const char* dualgemm_last_error(void) noexcept { return dualgemm::last_error; }

int dualgemm_last_cuda_error(void) noexcept { return dualgemm::last_cuda_error; }
