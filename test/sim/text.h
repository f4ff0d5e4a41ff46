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

// Returns the name of a kernel with its parameters and template arguments left out as far as that takes to
// fit in a line: "dual_gemm_kernel<Traits<...>>(...)".
std::string short_name(std::string readable);

// Returns the mangled name of the kernel that the text of a fault names, empty when it names none.
std::string kernel_in(const std::string& text);
// Returns the text of a fault with the short name of that kernel.
std::string with_short_kernel(std::string text);

}  // namespace sim
