// m8n64.cu -- meant for up to eight rows of A.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_m8n64) = sm90::kInstances<sm90::kM8N64s2>;

}  // namespace dualgemm
