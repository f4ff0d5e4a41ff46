// m16n32.cu -- for up to sixteen rows of A, with few columns to a tile, so that many SMs take part.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

constexpr sm90::Options kSplit2{
    .tile_m = 16, .tile_n = 32, .split_k = 2, .k_groups = 2, .stages = 8, .expander_warps = 4};

extern constinit const InstanceList LIST(sm90_m16n32) = sm90::kInstances<kSplit2>;

}  // namespace dualgemm
