// m16n64.cu -- for up to sixteen rows of A.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

constexpr sm90::Options kSplit2{.tile_m = 16, .tile_n = 64, .split_k = 2, .stages = 6, .expander_warps = 4};

extern constinit const InstanceList LIST(sm90_m16n64) = sm90::kInstances<kSplit2>;

}  // namespace dualgemm
