// m64n128.cu -- for up to 64 rows of A, or groups of up to 64 rows, with many columns to a tile. A pass has
// expanded A before.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

constexpr sm90::Options kExpanded = sm90::for_many_columns(
    {.tile_m = 64, .tile_n = 128, .stages = 4, .panel_stages = 6, .expander_warps = 0});
constexpr sm90::Options kExpandedGrouped = sm90::for_many_columns(
    {.tile_m = 64, .tile_n = 128, .stages = 4, .panel_stages = 6, .expander_warps = 0, .grouped = true});

extern constinit const InstanceList LIST(sm90_m64n128) = sm90::kInstances<kExpanded, kExpandedGrouped>;

}  // namespace dualgemm
