// m16n64.cu -- for up to sixteen rows of A, and for groups of few rows.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

constexpr sm90::Options kSplit2{.tile_m = 16, .tile_n = 64, .split_k = 2, .stages = 6, .expander_warps = 6};
constexpr sm90::Options kGrouped =
    sm90::for_few_rows({.tile_m = 16, .tile_n = 64, .stages = 2, .grouped = true});

extern constinit const InstanceList LIST(sm90_m16n64) = sm90::kInstances<kSplit2, kGrouped>;

}  // namespace dualgemm
