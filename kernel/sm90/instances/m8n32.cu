// m8n32.cu -- meant for up to eight rows of A, with few columns to a tile, so that many SMs take part.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_m8n32) = sm90::kInstances<sm90::kM8N32s2>;

}  // namespace dualgemm
