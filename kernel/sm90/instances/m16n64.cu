// m16n64.cu -- meant for up to sixteen rows of A.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_m16n64) = sm90::kInstances<sm90::kM16N64s2>;

}  // namespace dualgemm
