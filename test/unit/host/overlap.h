// overlap.h -- the tensors of a call as parts, each of which can be put at any place; and the check that what
// is written lies apart from all others. Nobody follows the pointers.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "arguments.h"
#include "host/include/dualgemm.h"
#include "support/catch.hpp"

namespace dualgemm_test {

// A tensor of a call: what it takes in all problems, and how it is put at a place.
template <class Args>
struct Part {
  const char* name;
  uintptr_t bytes, alignment;
  bool written;
  void (*place)(Args&, uintptr_t);
  const char* may_be = "";  // the output that it may be, at exactly its place
};

template <auto kMember, class Args>
void put(Args& args, uintptr_t at) {
  args.*kMember = reinterpret_cast<std::remove_reference_t<decltype(args.*kMember)>>(at);
}

template <class Args>
std::string text_of(const Part<Args>& part, uintptr_t at) {
  std::ostringstream text;
  text << part.name << "=0x" << std::hex << at;
  return text.str();
}

// Checks that of two tensors one of which is written, the other may lie right before and right behind it and
// no nearer, and that the refusal names both. `parts` lists what is written before what is read, and of
// outputs the one that a refusal names first before the other. `ask` gets arguments and returns a status.
template <class Args, class Ask>
void check_pairs(const Args& good, const std::vector<Part<Args>>& parts, const Ask& ask) {
  constexpr uintptr_t kAt = 0x8'0000'0000;
  for (size_t i = 0; i < parts.size(); ++i)
    for (size_t j = 0; j < parts.size(); ++j) {
      const Part<Args>&one = parts[i], &two = parts[j];
      if (i == j || !one.written) continue;
      const auto check = [&](uintptr_t at, dualgemm_status_t expected) {
        Args args = good;
        one.place(args, kAt);
        two.place(args, at);
        const dualgemm_status_t status = ask(args);
        INFO(text_of(one, kAt) << " and " << text_of(two, at));
        INFO("actual text: " << dualgemm_last_error());
        CHECK(std::string(dualgemm_status_name(status)) == dualgemm_status_name(expected));
        if (expected == DUALGEMM_STATUS_SUCCESS) return;
        const std::string first = i < j ? text_of(one, kAt) : text_of(two, at),
                          second = i < j ? text_of(two, at) : text_of(one, kAt);
        CHECK(std::string(dualgemm_last_error()) == first + ": overlaps " + second);
      };
      constexpr auto kApart = DUALGEMM_STATUS_SUCCESS, kOverlaps = DUALGEMM_STATUS_ALIASING;
      const uintptr_t before = (kAt - two.bytes) / two.alignment * two.alignment;
      const uintptr_t behind = (kAt + one.bytes + two.alignment - 1) / two.alignment * two.alignment;
      check(kAt,
            std::string(two.may_be) == one.name || std::string(one.may_be) == two.name ? kApart : kOverlaps);
      check(before, kApart);
      check(before + two.alignment, kOverlaps);
      check(behind, kApart);
      check(behind - two.alignment, kOverlaps);
    }
}

}  // namespace dualgemm_test
