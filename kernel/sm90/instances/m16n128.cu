// m16n128.cu -- meant for up to sixteen rows of A, and for groups of few rows, with many columns to a tile.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

extern constinit const InstanceList LIST(sm90_m16n128) = sm90::kInstances<sm90::kM16N128, sm90::kM16N128g>;

}  // namespace dualgemm
