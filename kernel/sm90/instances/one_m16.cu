// one_m16.cu -- one product, meant for up to sixteen rows of A, and for groups of few rows.
#include "kernel/sm90/one_product.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_one_m16) = sm90::kInstances<
    sm90::kOneM16N128, sm90::kOneM16N128s2, sm90::kOneM16N128g, sm90::kOneM16N64s2, sm90::kOneM16N64s4>;

}  // namespace dualgemm
