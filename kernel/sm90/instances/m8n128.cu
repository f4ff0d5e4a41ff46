// m8n128.cu -- for up to eight rows of A, with many columns to a tile.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

constexpr sm90::Options kWhole = sm90::for_many_columns({.tile_m = 8, .tile_n = 128, .stages = 5});

extern constinit const InstanceList LIST(sm90_m8n128) = sm90::kInstances<kWhole>;

}  // namespace dualgemm
