// m64n128.cu -- for up to 64 rows of A, or groups of up to 64 rows, with many columns to a tile. A pass has
// prepared A before.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_m64n128) = sm90::kInstances<sm90::kM64N128x, sm90::kM64N128xg>;

}  // namespace dualgemm
