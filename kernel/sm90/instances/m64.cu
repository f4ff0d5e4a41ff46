// m64.cu -- meant for up to 64 rows of A, and for groups of up to 64 rows. Warps of the kernel prepare A, or
// a pass before the kernel does.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_m64) = sm90::kInstances<
    sm90::kM64N64, sm90::kM64N64s2, sm90::kM64N64g, sm90::kM64N64s2x, sm90::kM64N128x, sm90::kM64N128xg>;

}  // namespace dualgemm
