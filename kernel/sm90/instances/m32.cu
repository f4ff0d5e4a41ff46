// m32.cu -- meant for up to 32 rows of A.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_m32) = sm90::kInstances<sm90::kM32N64s2, sm90::kM32N128>;

}  // namespace dualgemm
