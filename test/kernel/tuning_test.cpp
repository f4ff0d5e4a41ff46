// tuning_test.cpp -- a launch under a tuning file runs the kernel of the instance that the file names, with
// the bits of that instance, also where it is captured; and the same bits each time.
#include <string>
#include <vector>

#include "kernel/extras.h"
#include "sim/decode/program.h"
#include "sim/exec/observer.h"
#include "sim/shim/shim.h"
#include "support/stream.h"
#include "support/tuning.h"

using namespace dualgemm_test;

namespace {

// Notes which kernels run while it lives.
class Kernels : public sim::Observer {
 public:
  Kernels() { sim::shim::set_launch_options({nullptr, this}); }
  ~Kernels() override { sim::shim::set_launch_options({}); }
  void start(const sim::GridStart& grid) override { names.push_back(grid.kernel->info.name); }
  std::vector<std::string> names;
};

constexpr int32_t kM = 40, kN = 136, kK = 1056;

std::string entry(const std::string& name) {
  return "2 NVFP4 FP16 plain dense 1 " + std::to_string(kN) + " " + std::to_string(kK) + " " +
         std::to_string(kM) + " " + name;
}

struct Ran {
  std::vector<std::string> kernels;
  std::vector<uint16_t> bits;
  bool operator==(const Ran&) const = default;
};

Ran launched(const ProblemSet& set, int32_t instance_id, bool captured = false) {
  SetOptions options;
  options.instance_id = instance_id;
  const DeviceSet device(set, options);
  Kernels kernels;
  if (captured) Captured([&](cudaStream_t stream) { device.launch(stream); }).replay();
  else device.launch(nullptr);
  return {kernels.names, device.download().at(0).bits};
}

}  // namespace

TEST_CASE("tuning: a launch runs the instance that the file names", "[tuning]") {
  const ProblemSet set = set_of(make_problem(Data::kFullRange, kM, kN, kK, 77));
  const Ran usual = launched(set, 0);
  int others = 0;
  for (const NamedInstance& instance : dense_instances()) {
    if (instance.info.general || instance.dtype != DUALGEMM_DTYPE_FP16 || others == 4) continue;
    INFO(instance.info.name);
    const Ran asked = launched(set, instance.id);
    others += asked.kernels != usual.kernels;
    const Tuned tuned({entry(instance.info.name)});
    CHECK(launched(set, 0) == asked);
    CHECK(launched(set, 0) == asked);
    CHECK(launched(set, 0, true) == asked);
  }
  CHECK(others > 1);
  CHECK(launched(set, 0) == usual);
}
