// m256n64.cu -- for very many rows of A, which a pass has expanded before.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

constexpr sm90::Options kExpanded{
    .tile_m = 256, .tile_n = 64, .stages = 2, .panel_stages = 5, .expander_warps = 0};
constexpr sm90::Options kGrouped{
    .tile_m = 256, .tile_n = 64, .stages = 3, .panel_stages = 4, .expander_warps = 0, .grouped = true};

extern constinit const InstanceList LIST(sm90_m256n64) = sm90::kInstances<kExpanded, kGrouped>;

}  // namespace dualgemm
