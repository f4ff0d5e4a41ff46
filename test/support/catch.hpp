// catch.hpp -- Catch2, whichever major version the system packages: Debian 12 ships 2.x,
// Ubuntu 24.04 ships 3.x. Tests keep to the part both share: TEST_CASE, SECTION, REQUIRE, CHECK,
// INFO, GENERATE, REQUIRE_THROWS_AS/WITH.
#pragma once

// Assertions then have no handlers for exceptions: one that nobody expects ends its TEST_CASE, which fails.
// Handlers take an eighth of the time of compiling a test.
#define CATCH_CONFIG_FAST_COMPILE
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

// The matchers moved: Catch::Matchers::Contains in 2.x, ContainsSubstring in 3.x.
namespace dualgemm_test {
inline auto contains(const std::string& text) {
#if __has_include(<catch2/catch_all.hpp>)
  return Catch::Matchers::ContainsSubstring(text);
#else
  return Catch::Matchers::Contains(text);
#endif
}
}  // namespace dualgemm_test
