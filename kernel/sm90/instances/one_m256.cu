// one_m256.cu -- one product, meant for very many rows of A, which a pass before the kernel prepares: tiles
// of 256 rows, and of 192.
#include "kernel/sm90/one_product.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_one_m256) =
    sm90::kInstances<sm90::kOneM192N128skx, sm90::kOneM256N128x>;

}  // namespace dualgemm
