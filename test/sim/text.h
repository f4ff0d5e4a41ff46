// text.h -- the few helpers with which every folder writes its messages, so that one thing is spelled one
// way.
#pragma once

#include <cstdint>
#include <string>

namespace sim {

std::string hex(uint64_t value);                 // "0x1f0"
std::string plural(int64_t n, const char* one);  // "1 arrival", "2 arrivals"
// Returns a C++ name as the programmer wrote it; any other name is unchanged.
std::string readable(const std::string& mangled);

}  // namespace sim
