// m8n32.cu -- for up to eight rows of A, with few columns to a tile, so that many SMs take part.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

constexpr sm90::Options kSplit2 =
    sm90::for_few_rows({.tile_m = 8, .tile_n = 32, .split_k = 2, .k_groups = 2, .stages = 5});

extern constinit const InstanceList LIST(sm90_m8n32) = sm90::kInstances<kSplit2>;

}  // namespace dualgemm
