// heap_calls.cpp -- see heap_calls.h. glibc names its own functions __libc_*.
#include "bench/heap_calls.h"

#include <cerrno>
#include <cstddef>

namespace {
thread_local uint64_t calls = 0;
}

uint64_t bench::heap_calls() { return calls; }

extern "C" {

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* memory);

void* malloc(size_t bytes) {
  ++calls;
  return __libc_malloc(bytes);
}

void* calloc(size_t count, size_t bytes) {
  ++calls;
  return __libc_calloc(count, bytes);
}

void* realloc(void* memory, size_t bytes) {
  ++calls;
  return __libc_realloc(memory, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) {
  ++calls;
  return __libc_memalign(alignment, bytes);
}

void* memalign(size_t alignment, size_t bytes) {
  ++calls;
  return __libc_memalign(alignment, bytes);
}

int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  ++calls;
  *memory = __libc_memalign(alignment, bytes);
  return *memory ? 0 : ENOMEM;
}

void free(void* memory) { __libc_free(memory); }

}  // extern "C"
