// text_test.cpp -- texts of limited length: lists, and what happens at the end.

#include "host/common/text.h"

#include <string>

#include "support/catch.hpp"

namespace text_test {

using dualgemm::Text;

TEST_CASE("a text grows by formats and by members of a list", "[host][text]") {
  Text<40> text;
  CHECK(std::string(text.get()).empty());
  text.add_member("9.0");
  CHECK(std::string(text.get()) == "9.0");
  text.add_member("10.x");
  text.add(" and %d", 12);
  CHECK(std::string(text.get()) == "9.0, 10.x and 12");
}

TEST_CASE("a text that is full keeps what it has", "[host][text]") {
  struct {
    Text<8> text;
    char behind[4] = {'a', 'b', 'c', 'd'};
  } guarded;
  guarded.text.add("%s", "1234567");
  CHECK(std::string(guarded.text.get()) == "1234567");
  guarded.text.add("%s", "89");
  guarded.text.add_member("x");
  CHECK(std::string(guarded.text.get()) == "1234567");
  CHECK(std::string(guarded.behind, 4) == "abcd");
  Text<8> cut;
  cut.add("%s", "123456789");
  CHECK(std::string(cut.get()) == "1234567");
}

}  // namespace text_test
