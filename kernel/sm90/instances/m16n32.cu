// m16n32.cu -- for up to sixteen rows of A, over many SMs.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

constexpr sm90::Options kWhole = sm90::in_four_k_groups(
    {.tile_m = 16, .tile_n = 32, .stages = 8, .scale_stages = 8, .expanded_stages = 8, .expander_warps = 6});
constexpr sm90::Options kSplit2 = sm90::in_four_k_groups(
    {.tile_m = 16, .tile_n = 32, .split_k = 2, .stages = 8, .scale_stages = 8, .expanded_stages = 8});

extern constinit const InstanceList LIST(sm90_m16n32) = sm90::kInstances<kWhole, kSplit2>;

}  // namespace dualgemm
