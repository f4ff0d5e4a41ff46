// m32n64.cu -- for up to 32 rows of A.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

constexpr sm90::Options kSplit2{.tile_m = 32, .tile_n = 64, .split_k = 2, .stages = 5, .expander_warps = 8};
constexpr sm90::Options kSplit3{.tile_m = 32, .tile_n = 64, .split_k = 3, .stages = 5, .expander_warps = 8};

extern constinit const InstanceList LIST(sm90_m32n64) = sm90::kInstances<kSplit2, kSplit3>;

}  // namespace dualgemm
