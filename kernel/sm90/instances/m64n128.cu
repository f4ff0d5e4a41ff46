// m64n128.cu -- meant for up to 64 rows of A, or groups of up to 64 rows, with many columns to a tile. A pass
// before the kernel prepares A.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_m64n128) = sm90::kInstances<sm90::kM64N128x, sm90::kM64N128xg>;

}  // namespace dualgemm
