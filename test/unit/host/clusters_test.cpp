// clusters_test.cpp -- devices on which clusters of CTAs do not run, or few of them: a share of a GPU, or a
// smaller product. What has an instance without them runs, and the rest is refused with the reason.

#include <algorithm>
#include <string>
#include <vector>

#include "arguments.h"
#include "host/include/dualgemm.h"
#include "host/model/tiling.h"
#include "kernel/instance.h"
#include "rules.h"
#include "shapes.h"
#include "support/catch.hpp"

namespace clusters_test {

using namespace dualgemm_test;
using namespace dualgemm;

constexpr dualgemm_dtype_t kOutputs[] = {DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP16, DUALGEMM_DTYPE_FP32,
                                         DUALGEMM_DTYPE_NVFP4, DUALGEMM_DTYPE_FP8_E4M3};

struct Clusters {
  int32_t of_2, of_4;
  int32_t most;  // CTAs of the largest cluster that runs
};

static dualgemm_device_t with(dualgemm_device_t device, int32_t sms, const Clusters& clusters) {
  device.sm_count = sms;
  device.clusters_of_2 = clusters.of_2;
  device.clusters_of_4 = clusters.of_4;
  return device;
}

static int32_t cluster_of(int32_t id) { return instance(id - 1).plan.cluster_size(); }

// Returns launches of every kind that a device takes.
static std::vector<dualgemm_args_t> kinds(const dualgemm_device_t& device) {
  std::vector<dualgemm_args_t> all;
  for (const dualgemm_args_t& form : {valid_args(), batch_args(), masked_args()})
    for (const dualgemm_dtype_t c_dtype : kOutputs)
      for (const dualgemm_activation_t activation : {DUALGEMM_ACTIVATION_SWIGLU, DUALGEMM_ACTIVATION_GLU})
        for (const dualgemm_dtype_t a_dtype :
             {DUALGEMM_DTYPE_NVFP4, DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP16, DUALGEMM_DTYPE_FP8_E4M3}) {
          if (a_dtype != DUALGEMM_DTYPE_NVFP4 && device.cc_major != 9) continue;
          all.push_back(dualgemm_test::with_a(a_dtype, with_output(c_dtype, form)));
          if (a_dtype == DUALGEMM_DTYPE_FP8_E4M3) all.back().b_dtype = DUALGEMM_DTYPE_MXFP4;
          all.back().activation = activation;
        }
  return all;
}

TEST_CASE("every kind of launch has an instance for a device without clusters, or with few",
          "[host][clusters]") {
  const Clusters clusters =
      GENERATE(Clusters{-1, -1, 1}, Clusters{-1, 0, 1}, Clusters{-1, 7, 1}, Clusters{33, -1, 2},
               Clusters{0, -1, 2}, Clusters{1, -1, 2}, Clusters{0, 0, 8}, Clusters{3, 1, 8});
  const dualgemm_device_t whole = GENERATE(dualgemm_test::b200(), dualgemm_test::h100());
  const int32_t sms = GENERATE(1, 7, 78, 114);
  CAPTURE(clusters.of_2, clusters.of_4, whole.cc_major, sms);
  const dualgemm_device_t device = with(whole, sms, clusters);
  for (const dualgemm_args_t& kind : kinds(device))
    for (const uint32_t flags : {uint32_t{0}, uint32_t{DUALGEMM_FLAG_BATCH_INVARIANT}})
      for (const int32_t m : {1, 16, 300})
        for (const int32_t k : {64, 8192}) {
          dualgemm_args_t args = kind;
          args.flags = flags;
          args.m = m;
          args.k = k;
          INFO(m << " rows, k " << k);
          CHECK(cluster_of(selected_id(args, device)) <= std::min(clusters.most, sms));
        }
}

TEST_CASE("an instance whose clusters a device does not run is refused by their number", "[host][clusters]") {
  for (const Clusters& clusters : {Clusters{-1, -1, 1}, Clusters{-1, 9, 1}, Clusters{33, -1, 2}})
    for (const int32_t id : dualgemm_test::launched_ids())
      for (const int32_t max_sms : {0, 1, 100}) {
        const Instance& asked = instance(id - 1);
        const dualgemm_device_t device = with(dualgemm_test::device_for(asked), 132, clusters);
        dualgemm_args_t args = forced(id, asked.plan.tile.grouped ? masked_args() : valid_args());
        args.max_sms = max_sms;
        CAPTURE(asked.name, max_sms);
        const dualgemm_status_t status = dualgemm_can_implement_on(&args, &device);
        if (cluster_of(id) <= clusters.most) {
          if (max_sms == 0) CHECK(status == DUALGEMM_STATUS_SUCCESS);
          continue;
        }
        CHECK(status == DUALGEMM_STATUS_NOT_SUPPORTED);
        CHECK(std::string(dualgemm_last_error()) ==
              "instance_id=" + std::to_string(id) + ": " + asked.name + " needs clusters of " +
                  std::to_string(cluster_of(id)) + " CTAs, " +
                  (cluster_of(id) == 3 ? "counted as clusters of 4, " : "") +
                  "of which the device runs none (clusters_of_2=" + std::to_string(clusters.of_2) +
                  ", clusters_of_4=" + std::to_string(clusters.of_4) + ")");
      }
}

TEST_CASE("0 clusters stays not known, and -1 is none", "[host][clusters]") {
  for (const Arch arch : {Arch::kSm90, Arch::kSm100}) {
    const Machine unknown{132}, none{132, -1, -1}, pairs{132, 40, -1};
    CHECK(clusters_at_once(unknown, arch, 2) == 66);
    CHECK(clusters_at_once(unknown, arch, 4) > 0);
    for (const int32_t to_an_sm : {1, 2}) {
      CHECK(clusters_at_once(none, arch, 1, to_an_sm) == 132 * to_an_sm);
      for (const int32_t size : {2, 3, 4, 8}) {
        CHECK(clusters_at_once(none, arch, size, to_an_sm) == 0);
        CHECK(clusters_at_once(pairs, arch, size, to_an_sm) == (size == 2 ? 40 * to_an_sm : 0));
        // As an H200 counts: a part of the chip with fewer SMs than CTAs holds no such cluster.
        CHECK(clusters_at_once({size - 1}, arch, size, to_an_sm) == 0);
      }
    }
  }
}

}  // namespace clusters_test
