// one_few_rows.cu -- one product in tiles of 8, 16 and 32 rows, meant for up to as many rows of A, or of a
// group.
#include "kernel/sm90/one_product.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_one_few_rows) = sm90::kInstances<
    sm90::kOneM8N128, sm90::kOneM8N128s2, sm90::kOneM8N64s2, sm90::kOneM8N64s4, sm90::kOneM16N128,
    sm90::kOneM16N128s2, sm90::kOneM16N128g, sm90::kOneM16N64s2, sm90::kOneM16N64s4, sm90::kOneM32N128,
    sm90::kOneM32N128s2, sm90::kOneM32N64s2, sm90::kOneM32N64s4>;

}  // namespace dualgemm
