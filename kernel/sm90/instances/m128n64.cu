// m128n64.cu -- for many rows of A. Warps of the kernel prepare them, or a pass has done that before.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_m128n64) = sm90::kInstances<
    sm90::kM128N64, sm90::kM128N64g, sm90::kM128N64x, sm90::kM128N64skx, sm90::kM128N64s2x, sm90::kM128N64xg>;

}  // namespace dualgemm
