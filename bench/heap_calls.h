// heap_calls.h -- how often this program has asked for heap memory. Linking heap_calls.cpp puts counting
// functions in the place of malloc and its like, which operator new calls.
#pragma once

#include <cstdint>

namespace bench {

// Returns the calls that this thread has made.
uint64_t heap_calls();

}  // namespace bench
