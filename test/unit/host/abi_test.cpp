// abi_test.cpp -- the binary interface: sizes and offsets that may not move, numbers of enumerators, and
// argument structures that are older or newer than the library.

#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "arguments.h"
#include "host/include/dualgemm.h"
#include "support/catch.hpp"

namespace abi_test {

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

TEST_CASE("fields stay where programs of the first release find them", "[host][abi]") {
  CHECK(offsetof(dualgemm_device_t, struct_size) == 0);
  CHECK(offsetof(dualgemm_device_t, cc_major) == 4);
  CHECK(offsetof(dualgemm_device_t, name) == 24);
  CHECK(offsetof(dualgemm_device_t, clusters_of_4) == 96);
  CHECK(sizeof(dualgemm_device_t) == 100);
  CHECK(offsetof(dualgemm_instance_info_t, struct_size) == 0);
  CHECK(offsetof(dualgemm_instance_info_t, name) == 8);
  CHECK(offsetof(dualgemm_instance_info_t, tmem_columns) == 60);
  CHECK(offsetof(dualgemm_instance_info_t, general) == 80);
  CHECK(offsetof(dualgemm_instance_info_t, cc_major) == 84);
  CHECK(offsetof(dualgemm_instance_info_t, a_dtype) == 88);
  CHECK(offsetof(dualgemm_instance_info_t, products) == 96);  // of 0.3.0, which has 104 bytes
  CHECK(sizeof(dualgemm_instance_info_t) == 104);
  CHECK(sizeof(dualgemm_status_t) == 4);
  CHECK(offsetof(dualgemm_args_t, struct_size) == 0);
  CHECK(offsetof(dualgemm_args_t, m) == 8);
  CHECK(offsetof(dualgemm_args_t, a) == 24);
  CHECK(offsetof(dualgemm_args_t, c) == 72);
  CHECK(offsetof(dualgemm_args_t, lda) == 88);
  CHECK(offsetof(dualgemm_args_t, alpha1) == 184);
  CHECK(offsetof(dualgemm_args_t, alpha1_dev) == 192);
  CHECK(offsetof(dualgemm_args_t, a_row_scale) == 208);
  CHECK(offsetof(dualgemm_args_t, c_row_scale) == 232);
  CHECK(offsetof(dualgemm_args_t, c_global_scale) == 240);
  CHECK(offsetof(dualgemm_args_t, activation) == 244);
  CHECK(offsetof(dualgemm_args_t, swiglu_alpha) == 256);
  CHECK(offsetof(dualgemm_args_t, situ_up) == 272);
  CHECK(offsetof(dualgemm_args_t, c_dtype) == 276);
  CHECK(offsetof(dualgemm_args_t, amax_out) == 288);
  CHECK(offsetof(dualgemm_args_t, d1) == 296);
  CHECK(offsetof(dualgemm_args_t, batch_stride_d1) == 328);
  CHECK(offsetof(dualgemm_args_t, d_dtype) == 344);
  CHECK(offsetof(dualgemm_args_t, instance_id) == 348);
  CHECK(offsetof(dualgemm_args_t, workspace_size) == 368);
  CHECK(offsetof(dualgemm_args_t, group_mode) == 376);
  CHECK(offsetof(dualgemm_args_t, group_rows) == 384);
  CHECK(offsetof(dualgemm_args_t, alpha_stride) == 396);
  CHECK(offsetof(dualgemm_args_t, reserved1) == 404);
  CHECK(offsetof(dualgemm_args_t, bias_stride) == 408);
  CHECK(offsetof(dualgemm_args_t, batch_stride_c_row_scale) == 424);
  CHECK(offsetof(dualgemm_args_t, a_dtype) == 432);
  CHECK(offsetof(dualgemm_args_t, reserved3) == 436);
  CHECK(offsetof(dualgemm_args_t, products) == 440);  // of 0.3.0, which has 472 bytes
  CHECK(offsetof(dualgemm_args_t, linear_activation) == 444);
  CHECK(offsetof(dualgemm_args_t, c_add) == 448);
  CHECK(offsetof(dualgemm_args_t, batch_stride_c_add) == 464);
  CHECK(sizeof(dualgemm_args_t) == 472);  // what comes later lies behind
  CHECK(DUALGEMM_STATUS_NOT_SUPPORTED == 8);
  CHECK(DUALGEMM_STATUS_CUDA_ERROR == 13);
  CHECK(DUALGEMM_DTYPE_BF16 == 0);
  CHECK(DUALGEMM_DTYPE_FP16 == 1);
  CHECK(DUALGEMM_DTYPE_FP32 == 2);
  CHECK(DUALGEMM_DTYPE_NVFP4 == 3);
  CHECK(DUALGEMM_DTYPE_FP8_E4M3 == 4);
  CHECK(DUALGEMM_ACTIVATION_SWIGLU == 0);
  CHECK(DUALGEMM_ACTIVATION_GEGLU_TANH == 1);
  CHECK(DUALGEMM_ACTIVATION_GEGLU_ERF == 2);
  CHECK(DUALGEMM_ACTIVATION_REGLU == 3);
  CHECK(DUALGEMM_ACTIVATION_GLU == 4);
  CHECK(DUALGEMM_ACTIVATION_SWIGLU_STEP == 5);
  CHECK(DUALGEMM_ACTIVATION_SITU == 6);
  CHECK(DUALGEMM_LINEAR_ACTIVATION_NONE == 0);
  CHECK(DUALGEMM_LINEAR_ACTIVATION_SILU == 1);
  CHECK(DUALGEMM_LINEAR_ACTIVATION_GELU_TANH == 2);
  CHECK(DUALGEMM_LINEAR_ACTIVATION_GELU_ERF == 3);
  CHECK(DUALGEMM_LINEAR_ACTIVATION_RELU == 4);
  CHECK(DUALGEMM_LINEAR_ACTIVATION_RELU2 == 5);
  CHECK(DUALGEMM_FLAG_EXACT_ACT == 16);
  CHECK(DUALGEMM_GROUP_OFFSETS == 1);
  CHECK(DUALGEMM_GROUP_MASKED == 2);
  CHECK(DUALGEMM_MAX_GROUPS == 1024);
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
  // Everything else is zero.
  args.struct_size = 0;
  args.alpha1 = args.alpha2 = args.swiglu_alpha = args.swiglu_limit = args.c_global_scale = 0;
  args.situ_gate = args.situ_up = 0;
  args.a_dtype = 0;
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
