// m64n64.cu -- for up to 64 rows of A, and for groups of up to 64 rows. Warps of the kernel expand them, or a
// pass has done that before.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

constexpr sm90::Options kWhole{.tile_m = 64, .tile_n = 64, .stages = 3, .expander_warps = 8};
constexpr sm90::Options kSplit2{.tile_m = 64, .tile_n = 64, .split_k = 2, .stages = 3, .expander_warps = 8};
constexpr sm90::Options kGrouped{
    .tile_m = 64, .tile_n = 64, .stages = 3, .expander_warps = 8, .grouped = true};
constexpr sm90::Options kExpandedSplit2{
    .tile_m = 64, .tile_n = 64, .split_k = 2, .stages = 4, .expander_warps = 0};
constexpr sm90::Options kExpandedSplit3{
    .tile_m = 64, .tile_n = 64, .split_k = 3, .stages = 4, .expander_warps = 0};

extern constinit const InstanceList LIST(sm90_m64n64) =
    sm90::kInstances<kWhole, kSplit2, kGrouped, kExpandedSplit2, kExpandedSplit3>;

}  // namespace dualgemm
