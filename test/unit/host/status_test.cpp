// status_test.cpp -- names and sentences of the statuses, and the life of the last-error text.

#include <set>
#include <string>
#include <thread>

#include "arguments.h"
#include "host/include/dualgemm.h"
#include "support/catch.hpp"

namespace status_test {

using dualgemm_test::b200;
using dualgemm_test::valid_args;

TEST_CASE("every status has a name and a sentence of its own", "[host][status]") {
  std::set<std::string> names, sentences;
  for (int i = DUALGEMM_STATUS_SUCCESS; i <= DUALGEMM_STATUS_RUNTIME_MISMATCH; ++i) {
    const auto status = static_cast<dualgemm_status_t>(i);
    const std::string name = dualgemm_status_name(status), sentence = dualgemm_status_string(status);
    INFO(i << " " << name);
    CHECK(name.find("DUALGEMM_STATUS_") == 0);
    CHECK(sentence.back() == '.');
    names.insert(name);
    sentences.insert(sentence);
  }
  CHECK(names.size() == DUALGEMM_STATUS_RUNTIME_MISMATCH + 1);
  CHECK(sentences.size() == DUALGEMM_STATUS_RUNTIME_MISMATCH + 1);
  CHECK(std::string(dualgemm_status_name(DUALGEMM_STATUS_SUCCESS)) == "DUALGEMM_STATUS_SUCCESS");
  CHECK(std::string(dualgemm_status_name(DUALGEMM_STATUS_INVALID_SHAPE)) == "DUALGEMM_STATUS_INVALID_SHAPE");
  CHECK(std::string(dualgemm_status_name(DUALGEMM_STATUS_INTERNAL)) == "DUALGEMM_STATUS_INTERNAL");
}

TEST_CASE("numbers that are no status are named as such", "[host][status]") {
  CHECK(std::string(dualgemm_status_name(DUALGEMM_STATUS_MAX_ENUM)) == "unknown dualgemm_status_t");
  CHECK(std::string(dualgemm_status_string(static_cast<dualgemm_status_t>(
            DUALGEMM_STATUS_RUNTIME_MISMATCH + 1))) == "This number is not a status of this library.");
}

TEST_CASE("the last error lives until the next call and in one thread", "[host][status]") {
  const dualgemm_device_t device = b200();
  dualgemm_args_t args = valid_args();
  args.k = 1000;
  REQUIRE(dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_INVALID_SHAPE);

  std::string before, after;
  int cuda_error = -1;
  std::thread other([&] {
    before = dualgemm_last_error();
    cuda_error = dualgemm_last_cuda_error();
    dualgemm_args_t bad = valid_args();
    bad.n = 9;
    dualgemm_can_implement_on(&bad, &device);
    after = dualgemm_last_error();
  });
  other.join();
  CHECK(before.empty());
  CHECK(cuda_error == 0);
  CHECK(after == "n=9: must be a multiple of 8 with c_dtype=0 (BF16)");
  CHECK(std::string(dualgemm_last_error()) == "k=1000: must be a multiple of 16");

  args.k = 512;
  REQUIRE(dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_SUCCESS);
  CHECK(std::string(dualgemm_last_error()).empty());
}

}  // namespace status_test
