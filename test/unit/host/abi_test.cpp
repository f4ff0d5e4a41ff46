// abi_test.cpp -- the binary interface: what is on record, and argument structures that are older or newer
// than the library.

#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "arguments.h"
#include "host/include/dualgemm.h"
#include "support/catch.hpp"

namespace abi_test {

using dualgemm_test::b200;
using dualgemm_test::valid_args;

extern "C" {
void c99_args_init(dualgemm_args_t* args);
}

TEST_CASE("fields stay where programs find them, numbers and functions as programs know them",
          "[host][abi]") {
#define STRUCT(type, size) \
  {                        \
    using S = type;        \
    size_t covered = 0;    \
    CHECK(sizeof(S) == (size));
#define FIELD(offset, type, name)                         \
  CHECK(offsetof(S, name) == (offset));                   \
  static_assert(std::is_same_v<decltype(S::name), type>); \
  covered += sizeof(S::name);
#define END()                  \
  CHECK(covered == sizeof(S)); \
  }
#define NUMBER(name, value) CHECK(name == (value));
#define FUNCTION(name, ...) static_assert(std::is_same_v<decltype(name), __VA_ARGS__ noexcept>);
#include "support/interface.def"
}

TEST_CASE("version", "[host][abi]") {
  CHECK(dualgemm_version() == DUALGEMM_VERSION);
  const std::string number = std::to_string(DUALGEMM_VERSION_MAJOR) + "." +
                             std::to_string(DUALGEMM_VERSION_MINOR) + "." +
                             std::to_string(DUALGEMM_VERSION_PATCH);
  const std::string info = dualgemm_build_info();
  INFO(info);
  CHECK(info.find("dualgemm " + number + ",") == 0);
  CHECK(info.find("10.x") != std::string::npos);
}

TEST_CASE("defaults are a plain SwiGLU of NVFP4 with BF16 output", "[host][abi]") {
  dualgemm_args_t args;
  std::memset(&args, 0xFF, sizeof args);
  c99_args_init(&args);
  CHECK(args.struct_size == sizeof args);
  CHECK(args.alpha1 == 1);
  CHECK(args.alpha2 == 1);
  CHECK(args.swiglu_alpha == 1);
  CHECK(args.swiglu_beta == 0);
  CHECK((std::isinf(args.swiglu_limit) && args.swiglu_limit > 0));
  CHECK(args.situ_gate == 4);
  CHECK(args.situ_up == 25);
  CHECK(args.c_global_scale == 1);
  CHECK(args.activation == DUALGEMM_ACTIVATION_SWIGLU);
  CHECK(args.c_dtype == DUALGEMM_DTYPE_BF16);
  CHECK(args.bias_dtype == DUALGEMM_DTYPE_BF16);
  CHECK(args.d_dtype == DUALGEMM_DTYPE_BF16);
  CHECK(args.a_dtype == DUALGEMM_DTYPE_NVFP4);
  CHECK(args.b_dtype == DUALGEMM_DTYPE_NVFP4);
  // Everything else is zero.
  args.struct_size = 0;
  args.alpha1 = args.alpha2 = args.swiglu_alpha = args.swiglu_limit = args.c_global_scale = 0;
  args.situ_gate = args.situ_up = 0;
  args.a_dtype = args.b_dtype = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(&args);
  for (size_t i = 0; i < sizeof args; ++i) CHECK(bytes[i] == 0);
  dualgemm_args_init(nullptr);
}

TEST_CASE("argument structures of other sizes", "[host][abi]") {
  const dualgemm_device_t device = b200();
  struct Newer {
    dualgemm_args_t known;
    unsigned char unknown[16];
  };
  Newer newer{valid_args(), {}};
  const auto ask = [&](size_t size) {
    newer.known.struct_size = static_cast<uint32_t>(size);
    return dualgemm_can_implement_on(&newer.known, &device);
  };

  SECTION("smaller than the first release, 0.1.0 before it included") {
    for (const size_t size : {size_t{0}, size_t{4}, size_t{368}, size_t{439}}) {
      CHECK(ask(size) == DUALGEMM_STATUS_VERSION_MISMATCH);
      CHECK(std::string(dualgemm_last_error())
                .find("struct_size=" + std::to_string(size) + ": below 440, that of release 0.2.0;") == 0);
    }
  }
  SECTION("the first release's, with anything after it") {
    std::memset(newer.unknown, 0xFF, sizeof newer.unknown);
    CHECK(ask(440) == DUALGEMM_STATUS_SUCCESS);
  }
  SECTION("larger, and the caller uses nothing of the excess") {
    CHECK(ask(sizeof newer) == DUALGEMM_STATUS_SUCCESS);
  }
  SECTION("larger, and the caller asks for something unknown") {
    for (const size_t i : {size_t{0}, sizeof newer.unknown - 1}) {
      newer.unknown[i] = 1;
      CHECK(ask(sizeof newer) == DUALGEMM_STATUS_VERSION_MISMATCH);
      CHECK(ask(sizeof newer.known) == DUALGEMM_STATUS_SUCCESS);
      newer.unknown[i] = 0;
    }
  }
  SECTION("initialising writes no more than the size that is passed, a program's of 0.1.0") {
    std::vector<unsigned char> bytes(sizeof newer.known, 0xEE);
    auto* args = reinterpret_cast<dualgemm_args_t*>(bytes.data());
    dualgemm_args_init_sized(args, 368);
    CHECK(args->struct_size == 368);
    for (size_t i = 368; i < bytes.size(); ++i) CHECK(bytes[i] == 0xEE);
    CHECK(dualgemm_can_implement_on(args, &device) == DUALGEMM_STATUS_VERSION_MISMATCH);
  }
  SECTION("initialising writes exactly the size that is passed") {
    std::vector<unsigned char> bytes(sizeof newer + 8, 0xEE);
    auto* args = reinterpret_cast<dualgemm_args_t*>(bytes.data());
    dualgemm_args_init_sized(args, sizeof newer);
    CHECK(args->struct_size == sizeof newer);
    CHECK(args->alpha2 == 1);
    for (size_t i = sizeof newer.known; i < sizeof newer; ++i) CHECK(bytes[i] == 0);
    for (size_t i = sizeof newer; i < bytes.size(); ++i) CHECK(bytes[i] == 0xEE);
  }
}

}  // namespace abi_test
