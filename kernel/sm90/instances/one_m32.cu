// one_m32.cu -- one product, meant for up to 32 rows of A.
#include "kernel/sm90/one_product.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_one_m32) =
    sm90::kInstances<sm90::kOneM32N128, sm90::kOneM32N128s2, sm90::kOneM32N64s2, sm90::kOneM32N64s4>;

}  // namespace dualgemm
