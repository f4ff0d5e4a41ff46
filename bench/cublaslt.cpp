// cublaslt.cpp -- see cublaslt.h.
#include "cublaslt.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace bench::lt {
namespace {

bool load(Library* out) {
  void* from = nullptr;
  for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12"})
    if (from == nullptr) from = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (from == nullptr) return false;
  bool all = true;
#define DUALGEMM_LT_FIND(member, name, ...)                                  \
  out->member = reinterpret_cast<decltype(out->member)>(dlsym(from, #name)); \
  all = all && out->member != nullptr;
  DUALGEMM_LT_FUNCTIONS(DUALGEMM_LT_FIND)
#undef DUALGEMM_LT_FIND
  return all && out->create(&out->handle) == kStatusSuccess;
}

}  // namespace

const Library* library() {
  static Library loaded;
  static const bool there = load(&loaded);
  return there ? &loaded : nullptr;
}

void check(int status, const char* what) {
  if (status != kStatusSuccess)
    throw std::runtime_error(std::string(what) + ": status " + std::to_string(status) +
                             (status == kStatusNotSupported ? " (not supported)" : ""));
}

}  // namespace bench::lt
