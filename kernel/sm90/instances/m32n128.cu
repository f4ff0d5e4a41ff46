// m32n128.cu -- for up to 32 rows of A, with many columns to a tile.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

constexpr sm90::Options kWhole =
    sm90::for_many_columns({.tile_m = 32, .tile_n = 128, .stages = 3, .expander_warps = 4});

extern constinit const InstanceList LIST(sm90_m32n128) = sm90::kInstances<kWhole>;

}  // namespace dualgemm
