// one_m128.cu -- one product, meant for many rows of A.
#include "kernel/sm90/one_product.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_one_m128) =
    sm90::kInstances<sm90::kOneM128N128, sm90::kOneM128N128x, sm90::kOneM128N128skx, sm90::kOneM128N128s2x,
                     sm90::kOneM128N128s4x, sm90::kOneM128N128xg>;

}  // namespace dualgemm
