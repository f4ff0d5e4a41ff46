// m128n64.cu -- for many rows of A. Warps of the kernel expand them, or a pass has done that before.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

// A general instance takes more registers than eight expanders leave it.
constexpr int32_t kExpanders = InstanceArithmetic::kGeneral ? 4 : 8;

constexpr sm90::Options kWhole{.tile_m = 128, .tile_n = 64, .stages = 2, .expander_warps = kExpanders};
constexpr sm90::Options kGrouped{
    .tile_m = 128, .tile_n = 64, .stages = 2, .expander_warps = kExpanders, .grouped = true};
constexpr sm90::Options kExpanded{
    .tile_m = 128, .tile_n = 64, .stages = 4, .panel_stages = 8, .expander_warps = 0};
constexpr sm90::Options kExpandedSplit2{
    .tile_m = 128, .tile_n = 64, .split_k = 2, .stages = 3, .panel_stages = 10, .expander_warps = 0};
constexpr sm90::Options kExpandedGrouped{
    .tile_m = 128, .tile_n = 64, .stages = 4, .panel_stages = 7, .expander_warps = 0, .grouped = true};

extern constinit const InstanceList LIST(sm90_m128n64) =
    sm90::kInstances<kWhole, kGrouped, kExpanded, kExpandedSplit2, kExpandedGrouped>;

}  // namespace dualgemm
