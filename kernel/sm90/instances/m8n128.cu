// m8n128.cu -- meant for up to eight rows of A, with many columns to a tile.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_m8n128) = sm90::kInstances<sm90::kM8N128>;

}  // namespace dualgemm
