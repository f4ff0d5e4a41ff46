// parts_test.cpp -- launches on a part of a GPU, which CTest asks for by SIM_MACHINE: whatever kind of launch
// it is, its clusters have room there, and its values are the reference's. CTest runs these tests, and some
// others, on several parts (CMakeLists.txt); alone they run on a whole B200.
#include <string>
#include <vector>

#include "kernel/extras.h"
#include "sim/decode/program.h"
#include "sim/exec/observer.h"
#include "sim/exec/occupancy.h"
#include "sim/shim/shim.h"
#include "support/thorough.h"

using namespace dualgemm_test;

namespace {

// Sees of every grid whether its clusters have room on the machine.
class RoomForClusters : public sim::Observer {
 public:
  RoomForClusters() { sim::shim::set_launch_options({nullptr, this}); }
  ~RoomForClusters() override { sim::shim::set_launch_options({}); }
  void start(const sim::GridStart& grid) override {
    ++grids;
    const sim::Dim3& size = grid.config->cluster;
    if (size.x * size.y * size.z > 1 &&
        sim::max_active_clusters(grid.machine, grid.kernel->info, *grid.config) == 0)
      without_room += " " + grid.kernel->info.name;
  }
  int32_t grids = 0;
  std::string without_room;  // names of kernels
};

dualgemm_device_t current_device() {
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  check_status(dualgemm_current_device(&device));
  return device;
}

// Returns launches of every kind. Of the first the long K is split over CTAs, and of the second the tiles
// belong to pairs, on a B200 that has these.
std::vector<ProblemSet> sets() {
  return {make_batch(Data::kFullRange, 1, 1, 64, 2048, 1), make_batch(Data::kFullRange, 1, 300, 136, 256, 2),
          make_batch(Data::kFullRange, 2, 40, 72, 272, 3),
          make_offsets(Data::kFullRange, {40, 0, 3}, 72, 272, 4),
          make_masked(Data::kFullRange, {9, 40, 0}, 72, 272, 5)};
}

}  // namespace

TEST_CASE("parts: each kind of launch runs in clusters that have room, and gives the reference's result",
          "[parts]") {
  std::vector<dualgemm_dtype_t> a_dtypes = {DUALGEMM_DTYPE_NVFP4};
  if (current_device().cc_major == 9) a_dtypes.push_back(DUALGEMM_DTYPE_BF16);
  const RoomForClusters room;
  size_t turn = 0;  // sets and types of A have the types of C in turn
  for (const ProblemSet& set : sets()) {
    ++turn;
    for (const dualgemm_dtype_t a_dtype : a_dtypes)
      for (const dualgemm_dtype_t dtype :
           all_or_every<dualgemm_dtype_t>(2, turn++, {DUALGEMM_DTYPE_BF16, DUALGEMM_DTYPE_FP32})) {
        SetOptions options;
        options.a_dtype = a_dtype;
        options.dtype = dtype;
        INFO(set.problems.size() << " problems, A " << a_dtype << ", C " << dtype);
        check_launch(set, options);
      }
  }
  CHECK(room.grids > 0);
  CHECK(room.without_room == "");
}

TEST_CASE("parts: what the device says of its clusters is what the runtime counts, with none as -1",
          "[parts]") {
  const dualgemm_device_t device = current_device();
  const RoomForClusters room;
  const auto runs = [](int32_t count) { return count > 0 || count == -1; };
  CHECK(runs(device.clusters_of_2));
  CHECK(runs(device.clusters_of_4));
  int sms = 0;
  check_cuda(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0), "cudaDeviceGetAttribute");
  CHECK(device.sm_count == sms);
  // Each instance runs where the device has its clusters, and is refused with the reason where it has not.
  const Problem p = make_problem(Data::kFullRange, 9, 72, 272, 6);
  int32_t alone = 0;
  for (const NamedInstance& instance : in_turn(dense_instances())) {
    CAPTURE(instance.name);
    const int32_t cluster = instance.info.cta_group * instance.info.split_k;
    // Of instances without clusters, which run anywhere, one is enough.
    if (cluster == 1 && ++alone > 1 && !thorough()) continue;
    const bool has = cluster == 1 || (cluster == 2 ? device.clusters_of_2 : device.clusters_of_4) > 0;
    const DeviceProblem on(p, use(instance));
    if (has) {
      on.launch(nullptr);
      check(on.download(), p, use(instance));
    } else {
      CHECK(dualgemm_launch_ex(&on.args(), nullptr) == DUALGEMM_STATUS_NOT_SUPPORTED);
      CHECK_THAT(dualgemm_last_error(),
                 contains(" needs clusters of " + std::to_string(cluster) + " CTAs, ") &&
                     contains("of which the device runs none"));
    }
  }
  CHECK(room.without_room == "");
}
