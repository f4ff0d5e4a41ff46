// one_m8.cu -- one product, meant for up to eight rows of A.
#include "kernel/sm90/one_product.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_one_m8) =
    sm90::kInstances<sm90::kOneM8N128, sm90::kOneM8N128s2, sm90::kOneM8N64s2, sm90::kOneM8N64s4>;

}  // namespace dualgemm
