// m16.cu -- meant for up to sixteen rows of A, and for groups of few rows. With few columns to a tile many
// SMs take part.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_m16) =
    sm90::kInstances<sm90::kM16N32s2, sm90::kM16N64s2, sm90::kM16N128, sm90::kM16N128g>;

}  // namespace dualgemm
