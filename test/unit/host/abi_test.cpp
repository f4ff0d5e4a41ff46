// abi_test.cpp -- the binary interface: sizes and offsets that may not move, numbers of enumerators, and
// argument structures that are older or newer than the library.

#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "arguments.h"
#include "host/dualgemm.h"
#include "support/catch.hpp"

using dualgemm_test::b200;
using dualgemm_test::valid_args;

extern "C" {
size_t c99_args_size(void);
size_t c99_device_size(void);
size_t c99_instance_info_size(void);
void c99_args_init(dualgemm_args_t* args);
}

TEST_CASE("C and C++ agree about the header", "[host][abi]") {
  CHECK(c99_args_size() == sizeof(dualgemm_args_t));
  CHECK(c99_device_size() == sizeof(dualgemm_device_t));
  CHECK(c99_instance_info_size() == sizeof(dualgemm_instance_info_t));
}

TEST_CASE("fields stay where the first programs found them", "[host][abi]") {
  CHECK(sizeof(dualgemm_device_t) == 96);
  CHECK(offsetof(dualgemm_device_t, name) == 20);
  CHECK(offsetof(dualgemm_instance_info_t, tmem_columns) == 56);
  CHECK(sizeof(dualgemm_status_t) == 4);
  CHECK(offsetof(dualgemm_args_t, struct_size) == 0);
  CHECK(offsetof(dualgemm_args_t, m) == 8);
  CHECK(offsetof(dualgemm_args_t, a) == 24);
  CHECK(offsetof(dualgemm_args_t, c) == 72);
  CHECK(offsetof(dualgemm_args_t, lda) == 88);
  CHECK(offsetof(dualgemm_args_t, alpha1) == 184);
  CHECK(offsetof(dualgemm_args_t, alpha1_dev) == 192);
  CHECK(offsetof(dualgemm_args_t, c_dtype) == 260);
  CHECK(offsetof(dualgemm_args_t, instance_id) == 316);
  CHECK(offsetof(dualgemm_args_t, workspace_size) == 336);
  CHECK(offsetof(dualgemm_args_t, group_mode) == 344);  // what came later lies behind
  CHECK(offsetof(dualgemm_args_t, group_rows) == 352);
  CHECK(offsetof(dualgemm_args_t, alpha_stride) == 364);
  CHECK(sizeof(dualgemm_args_t) == 368);
  CHECK(DUALGEMM_STATUS_NOT_SUPPORTED == 8);
  CHECK(DUALGEMM_STATUS_CUDA_ERROR == 13);
  CHECK(DUALGEMM_DTYPE_BF16 == 0);
  CHECK(DUALGEMM_DTYPE_FP16 == 1);
  CHECK(DUALGEMM_GROUP_OFFSETS == 1);
  CHECK(DUALGEMM_GROUP_MASKED == 2);
  CHECK(DUALGEMM_MAX_GROUPS == 512);
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

TEST_CASE("defaults are a plain SwiGLU with BF16 output", "[host][abi]") {
  dualgemm_args_t args;
  std::memset(&args, 0xFF, sizeof args);
  c99_args_init(&args);
  CHECK(args.struct_size == sizeof args);
  CHECK(args.alpha1 == 1);
  CHECK(args.alpha2 == 1);
  CHECK(args.swiglu_alpha == 1);
  CHECK(args.swiglu_beta == 0);
  CHECK((std::isinf(args.swiglu_limit) && args.swiglu_limit > 0));
  CHECK(args.c_global_scale == 1);
  CHECK(args.c_dtype == DUALGEMM_DTYPE_BF16);
  // Everything else is zero.
  args.struct_size = 0;
  args.alpha1 = args.alpha2 = args.swiglu_alpha = args.swiglu_limit = args.c_global_scale = 0;
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

  SECTION("smaller than the first release") {
    for (const size_t size : {size_t{0}, size_t{4}, size_t{343}}) {
      CHECK(ask(size) == DUALGEMM_STATUS_VERSION_MISMATCH);
      CHECK(std::string(dualgemm_last_error()).find("struct_size=" + std::to_string(size) + ":") == 0);
    }
  }
  SECTION("the first release's, with anything after it") {
    std::memset(&newer.known.group_mode, 0xFF, sizeof newer.known - 344);
    CHECK(ask(344) == DUALGEMM_STATUS_SUCCESS);
    CHECK(ask(348) == DUALGEMM_STATUS_INVALID_VALUE);
    CHECK(std::string(dualgemm_last_error()).find("group_mode=-1:") == 0);
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
