// cublaslt.cpp -- see cublaslt.h.
#include "cublaslt.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace bench::lt {
namespace {

void* open_first(const char* name, const char* older) {
  void* const newest = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  return newest != nullptr ? newest : dlopen(older, RTLD_NOW | RTLD_LOCAL);
}

#define DUALGEMM_LT_FIND(member, name, ...)                                  \
  out->member = reinterpret_cast<decltype(out->member)>(dlsym(from, #name)); \
  all = all && out->member != nullptr;

void load_grouped(Library* out) {
  void* const from = open_first("libcublas.so.13", "libcublas.so.12");
  if (from == nullptr) return;
  bool all = true;
  DUALGEMM_BLAS_FUNCTIONS(DUALGEMM_LT_FIND)
  if (!all || out->blas_create(&out->blas) != kStatusSuccess) out->blas = nullptr;
}

bool load(Library* out) {
  void* const from = open_first("libcublasLt.so.13", "libcublasLt.so.12");
  if (from == nullptr) return false;
  bool all = true;
  DUALGEMM_LT_FUNCTIONS(DUALGEMM_LT_FIND)
  if (!all || out->create(&out->handle) != kStatusSuccess) return false;
  load_grouped(out);
  return true;
}

#undef DUALGEMM_LT_FIND

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
