// m16n128.cu -- for up to sixteen rows of A, and for groups of few rows, with many columns to a tile.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

constexpr sm90::Options kWhole =
    sm90::for_many_columns({.tile_m = 16, .tile_n = 128, .stages = 4, .expander_warps = 4});
constexpr sm90::Options kGrouped =
    sm90::for_many_columns({.tile_m = 16, .tile_n = 128, .stages = 4, .expander_warps = 4, .grouped = true});

extern constinit const InstanceList LIST(sm90_m16n128) = sm90::kInstances<kWhole, kGrouped>;

}  // namespace dualgemm
