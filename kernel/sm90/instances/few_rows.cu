// few_rows.cu -- tiles of 8, 16 and 32 rows, meant for up to as many rows of A, or of a group. With few
// columns to a tile many SMs take part.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_few_rows) =
    sm90::kInstances<sm90::kM8N32s2, sm90::kM8N64s2, sm90::kM8N128, sm90::kM16N32s2, sm90::kM16N64s2,
                     sm90::kM16N128, sm90::kM16N128g, sm90::kM32N64s2, sm90::kM32N128>;

}  // namespace dualgemm
