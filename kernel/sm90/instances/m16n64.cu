// m16n64.cu -- for up to sixteen rows of A, and for groups of few rows.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

constexpr sm90::Options kWhole =
    sm90::for_few_rows({.tile_m = 16, .tile_n = 64, .stages = 3, .scale_stages = 3, .expanded_stages = 4});
constexpr sm90::Options kSplit2 = sm90::for_few_rows(
    {.tile_m = 16, .tile_n = 64, .split_k = 2, .stages = 3, .scale_stages = 3, .expanded_stages = 4});
constexpr sm90::Options kGrouped = sm90::for_few_rows(
    {.tile_m = 16, .tile_n = 64, .stages = 3, .scale_stages = 3, .expanded_stages = 4, .grouped = true});

extern constinit const InstanceList LIST(sm90_m16n64) = sm90::kInstances<kWhole, kSplit2, kGrouped>;

}  // namespace dualgemm
