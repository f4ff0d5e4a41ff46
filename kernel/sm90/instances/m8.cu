// m8.cu -- meant for up to eight rows of A. With few columns to a tile many SMs take part.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_m8) =
    sm90::kInstances<sm90::kM8N32s2, sm90::kM8N64s2, sm90::kM8N128>;

}  // namespace dualgemm
