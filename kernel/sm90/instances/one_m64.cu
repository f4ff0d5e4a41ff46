// one_m64.cu -- one product, meant for up to 64 rows of A, and for groups of up to 64 rows.
#include "kernel/sm90/one_product.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_one_m64) =
    sm90::kInstances<sm90::kOneM64N128, sm90::kOneM64N128g, sm90::kOneM64N128x, sm90::kOneM64N128xg,
                     sm90::kOneM64N128s2x, sm90::kOneM64N64s4x>;

}  // namespace dualgemm
