// startup_test.cpp -- what a program may rely on wherever it calls: the library answers before any of its
// own, or anybody's, ordinary static constructors have run, since its tables are constants; and its answers
// allocate nothing.

#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "host/include/dualgemm.h"
#include "support/catch.hpp"
#include "unit/host/arguments.h"

// Counts what any C++ code of this program allocates.
static size_t allocations = 0;
void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace {

// `ordinary` is initialised when the program starts, at ordinary priority, and is 0 before.
volatile int one = 1;
int ordinary = one;

struct Answers {
  Answers() noexcept;

  int seen_ordinary;
  int32_t count, id;
  dualgemm_status_t info_status, select_status, refused_status;
  dualgemm_instance_info_t last;
  char name[64], build_info[200], refusal[200];
};

template <size_t kSize>
void keep(char (&text)[kSize], const char* from) {
  std::strncpy(text, from ? from : "NULL", kSize - 1);
}

Answers::Answers() noexcept : seen_ordinary(ordinary) {
  count = dualgemm_instance_count();
  dualgemm_instance_info_init(&last);
  info_status = dualgemm_instance_info(count, &last);
  keep(name, last.name);
  dualgemm_args_t args = dualgemm_test::valid_args();
  dualgemm_device_t device = dualgemm_test::b200();
  select_status = dualgemm_select_instance(&args, &device, &id);
  device.cc_major = 8;
  refused_status = dualgemm_can_implement_on(&args, &device);
  keep(refusal, dualgemm_last_error());
  keep(build_info, dualgemm_build_info());
}

// A constructor of the first priority asks; what it was told is looked at afterwards.
__attribute__((init_priority(101))) Answers early;

}  // namespace

TEST_CASE("a static constructor gets the answers that main gets", "[startup]") {
  REQUIRE(early.seen_ordinary == 0);  // it ran first
  REQUIRE(ordinary == 1);
  const Answers now;
  CHECK(early.count > 0);
  CHECK(early.count == now.count);
  CHECK(early.info_status == DUALGEMM_STATUS_SUCCESS);
  CHECK(std::string(early.name) == now.name);
  CHECK(std::memcmp(&early.last, &now.last, sizeof now.last) == 0);
  CHECK(early.select_status == DUALGEMM_STATUS_SUCCESS);
  CHECK(early.id > 0);
  CHECK(early.id == now.id);
  CHECK(early.refused_status == DUALGEMM_STATUS_ARCH_MISMATCH);
  CHECK(std::string(early.refusal) == now.refusal);
  CHECK(std::string(early.build_info) == now.build_info);
}

TEST_CASE("answers allocate nothing", "[startup]") {
  const size_t for_a_string = allocations;
  { const std::string long_enough(100, 'x'); }
  REQUIRE(allocations > for_a_string);  // it is counted
  const size_t before = allocations;
  const Answers answers;
  const size_t after = allocations;
  CHECK(answers.select_status == DUALGEMM_STATUS_SUCCESS);
  CHECK(after == before);
}
