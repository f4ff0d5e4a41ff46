// loads_test.cpp -- the judge on the load roles of loads.cuh: it finds nothing, neither in what they load nor
// under programmatic dependent launch; and it names as a race what became stale on an H200, although in the
// simulator grids run one after the other and every value is right.
#include <string>

#include "kernel/judged.h"
#include "sim/conformance/record.h"
#include "support/catch.hpp"

static std::string findings_in(const std::string& cases) {
  const dualgemm_test::Judged judged;
  const auto records = conformance::run(
      cases, [] {}, [](const conformance::Record&) {});
  REQUIRE_FALSE(records.empty());
  for (const conformance::Record& record : records) {
    CAPTURE(record.name);
    CHECK(record.error == "");
  }
  return judged.findings();
}

TEST_CASE("loads: the judge finds nothing in the load roles", "[loads]") {
  CHECK(findings_in("loads/m") == "");
  CHECK(findings_in("loads/pdl.ordered") == "");
}

TEST_CASE("loads: the judge finds nothing where there are more tiles than SMs", "[.many]") {
  CHECK(findings_in("loads/of_many.") == "");
}

TEST_CASE("loads: static weights from the kernel before the previous one are in order", "[loads]") {
  // In every CTA the launch between waits for that kernel before it lets the next launch start. On an H200
  // the weights are never stale.
  CHECK(findings_in("loads/pdl.behind") == "");
}

TEST_CASE("loads: what is stale on an H200 is a race for the judge", "[loads]") {
  const std::string found = findings_in("loads/pdl.stale");
  INFO(found);
  CHECK(found.find("race") != std::string::npos);
}
