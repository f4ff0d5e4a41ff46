// The choice of a kernel instance: pinned where the shape is a published benchmark, stated as properties
// elsewhere.

#include "host/select_config.h"

#include <cstring>
#include <string>

#include "arguments.h"
#include "host/dualgemm.h"
#include "support/catch.hpp"

using dualgemm_test::b200;
using dualgemm_test::valid_args;

namespace {

dualgemm_args_t args_of(int32_t m, int32_t n, int32_t k, int32_t c_dtype) {
  dualgemm_args_t args = valid_args();
  args.m = m;
  args.n = n;
  args.k = k;
  args.c_dtype = c_dtype;
  return args;
}

int32_t selected(const dualgemm_args_t& args, const dualgemm_device_t& device = b200()) {
  int32_t id = -1;
  const dualgemm_status_t status = dualgemm_select_config(&args, &device, &id);
  INFO(dualgemm_last_error());
  REQUIRE(status == DUALGEMM_STATUS_SUCCESS);
  return id;
}

dualgemm_config_info_t info_of(int32_t id) {
  dualgemm_config_info_t info;
  REQUIRE(dualgemm_config_info(id, &info) == DUALGEMM_STATUS_SUCCESS);
  return info;
}

}  // namespace

TEST_CASE("the benchmark shapes get the pair tile that fits one wave on 148 SMs", "[host][select_config]") {
  struct Row {
    int32_t m, n, k, tile_n;
  };
  for (const int32_t dtype : {DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP16})
    for (const Row& row : {Row{256, 4096, 7168, 64}, Row{512, 4096, 7168, 128}, Row{256, 3072, 4096, 64},
                           Row{512, 3072, 7168, 128}}) {
      const dualgemm_config_info_t info = info_of(selected(args_of(row.m, row.n, row.k, dtype)));
      INFO(row.m << " x " << row.n << " x " << row.k << " got " << info.name);
      CHECK(info.tile_m == 256);
      CHECK(info.tile_n == row.tile_n);
      CHECK(info.c_dtype == dtype);
    }
}

TEST_CASE("a problem that fills the machine many times gets the wide tile, a small one the narrow",
          "[host][select_config]") {
  CHECK(info_of(selected(args_of(4096, 14336, 4096, DUALGEMM_DTYPE_BF16))).tile_n == 128);
  CHECK(info_of(selected(args_of(1, 2048, 7168, DUALGEMM_DTYPE_BF16))).tile_n == 64);
  // 64 columns or fewer: the other half of a wide tile would be loaded for nothing.
  CHECK(info_of(selected(args_of(4096, 64, 4096, DUALGEMM_DTYPE_BF16))).tile_n == 64);
}

TEST_CASE("no tile width leaves its busiest SM with more bytes than the chosen one",
          "[host][select_config]") {
  // Restated from the formats: per 64 elements of K a row is 32 bytes, and 128 rows of scale factors are 512
  // bytes.
  const auto busiest = [](const dualgemm_config_info_t& info, int64_t m, int64_t n, int64_t sms) {
    const int64_t tiles = ((m + info.tile_m - 1) / info.tile_m) * ((n + info.tile_n - 1) / info.tile_n);
    const int64_t bytes = 32 * (info.tile_m + 2 * info.tile_n) / info.cta_group + 512 * 3;
    const int64_t at_once = sms / info.cta_group;
    return (tiles + at_once - 1) / at_once * bytes;
  };
  for (const int32_t m : {1, 127, 128, 129, 300, 512, 2000, 8192})
    for (const int32_t n : {8, 64, 72, 720, 1408, 2880, 7168, 28672})
      for (const int32_t sms : {1, 33, 148, 160}) {
        dualgemm_device_t device = b200();
        device.sm_count = sms;
        const dualgemm_config_info_t chosen =
            info_of(selected(args_of(m, n, 512, DUALGEMM_DTYPE_FP16), device));
        for (int32_t id = 1; id <= dualgemm_config_count(); ++id) {
          const dualgemm_config_info_t other = info_of(id);
          if (other.c_dtype != DUALGEMM_DTYPE_FP16 || other.cta_group > sms) continue;
          INFO("M=" << m << " N=" << n << " SMs=" << sms << ": " << chosen.name << " against " << other.name);
          CHECK(busiest(chosen, m, n, sms) <= busiest(other, m, n, sms));
        }
      }
}

TEST_CASE("the caller's wishes reach the choice", "[host][select_config]") {
  dualgemm_args_t args = args_of(256, 4096, 7168, DUALGEMM_DTYPE_BF16);
  SECTION("max_sms counts as the size of the machine") {
    dualgemm_device_t small = b200();
    for (const int32_t sms : {1, 16, 60, 64, 100, 147}) {
      small.sm_count = sms;
      const int32_t on_small = selected(args, small);
      args.max_sms = sms;
      CHECK(selected(args) == on_small);
      args.max_sms = 0;
    }
    // More SMs than there are change nothing, though 256 of them would prefer the narrow tile.
    args.m = 512;
    args.max_sms = 256;
    const int32_t unlimited = selected(args);
    args.max_sms = 0;
    CHECK(selected(args) == unlimited);
  }
  SECTION("BATCH_INVARIANT does not look at M") {
    args.flags = DUALGEMM_FLAG_BATCH_INVARIANT;
    const int32_t id = selected(args);
    for (const int32_t m : {1, 2, 17, 128, 129, 257, 512, 8192}) {
      args.m = m;
      CHECK(selected(args) == id);
    }
    args.flags = 0;  // the flag matters: some of these M choose differently without it
    CHECK(selected(args) != id);
  }
  SECTION("config_id overrides") {
    for (int32_t id = 1; id <= dualgemm_config_count(); ++id) {
      args.config_id = id;
      args.c_dtype = info_of(id).c_dtype;
      CHECK(selected(args) == id);
      args.c_dtype = args.c_dtype == DUALGEMM_DTYPE_BF16 ? DUALGEMM_DTYPE_FP16 : DUALGEMM_DTYPE_BF16;
      const dualgemm_device_t device = b200();
      CHECK(dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_NOT_SUPPORTED);
      CHECK(std::string(dualgemm_last_error()).find("config_id=" + std::to_string(id)) == 0);
    }
    const dualgemm_device_t device = b200();
    for (const int32_t id : {-1, dualgemm_config_count() + 1}) {
      args.config_id = id;
      CHECK(dualgemm_can_implement_on(&args, &device) == DUALGEMM_STATUS_INVALID_VALUE);
    }
  }
  SECTION("what runs no kernel has no configuration") {
    args.m = 0;
    CHECK(selected(args) == 0);
    args.m = 256;
    args.k = 0;
    CHECK(selected(args) == 0);
  }
  SECTION("missing pointers") {
    const dualgemm_device_t device = b200();
    int32_t id = -1;
    CHECK(dualgemm_select_config(&args, nullptr, &id) == DUALGEMM_STATUS_NULL_POINTER);
    CHECK(dualgemm_select_config(&args, &device, nullptr) == DUALGEMM_STATUS_NULL_POINTER);
    CHECK(id == -1);
  }
}

TEST_CASE("every configuration keeps to its static budget", "[host][select_config]") {
  REQUIRE(dualgemm_config_count() > 0);
  for (int32_t id = 1; id <= dualgemm_config_count(); ++id) {
    const dualgemm_config_info_t info = info_of(id);
    INFO(info.name);
    // One stage: rows of tile_k / 2 bytes for A, B1, B2 and 512 bytes per 64 elements of K for each factor
    // tensor.
    const int32_t stage =
        (info.tile_m + 2 * info.tile_n) / info.cta_group * info.tile_k / 2 + 3 * info.tile_k / 64 * 512;
    CHECK(info.stages >= 2);
    CHECK(info.smem_bytes >= info.stages * stage);
    CHECK(info.smem_bytes <= 232448);
    // tcgen05.alloc takes a power of two from 32 to 512; each accumulator pair needs tile_n columns twice.
    CHECK(info.tmem_columns >= info.acc_stages * 2 * info.tile_n);
    CHECK(info.tmem_columns <= 512);
    CHECK((info.tmem_columns & (info.tmem_columns - 1)) == 0);
    CHECK(info.mma_n * info.mmas_per_step == 2 * info.tile_n);
    CHECK(info.threads % 32 == 0);
    CHECK(std::strstr(info.name, ("n" + std::to_string(info.tile_n)).c_str()) != nullptr);
  }
  dualgemm_config_info_t info;
  CHECK(dualgemm_config_info(0, &info) == DUALGEMM_STATUS_INVALID_VALUE);
  CHECK(dualgemm_config_info(dualgemm_config_count() + 1, &info) == DUALGEMM_STATUS_INVALID_VALUE);
  CHECK(dualgemm_config_info(1, nullptr) == DUALGEMM_STATUS_NULL_POINTER);
}
