// m128.cu -- meant for many rows of A. Warps of the kernel prepare A, or a pass before the kernel does.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_m128) = sm90::kInstances<
    sm90::kM128N64, sm90::kM128N64g, sm90::kM128N64x, sm90::kM128N64skx, sm90::kM128N64s2x, sm90::kM128N64xg>;

}  // namespace dualgemm
