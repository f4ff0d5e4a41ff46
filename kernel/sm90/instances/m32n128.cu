// m32n128.cu -- meant for up to 32 rows of A, with many columns to a tile.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_m32n128) = sm90::kInstances<sm90::kM32N128>;

}  // namespace dualgemm
