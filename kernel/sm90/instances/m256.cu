// m256.cu -- meant for very many rows of A, which a pass before the kernel prepares: tiles of 256 rows, and
// of 192.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_m256) = sm90::kInstances<sm90::kM192N64skx, sm90::kM256N64x>;

}  // namespace dualgemm
