// m8n64.cu -- for up to eight rows of A.
#include "kernel/sm90/instances.cuh"

namespace dualgemm {

constexpr sm90::Options kSplit2 = sm90::for_few_rows({.tile_m = 8, .tile_n = 64, .split_k = 2, .stages = 4});

extern constinit const InstanceList LIST(sm90_m8n64) = sm90::kInstances<kSplit2>;

}  // namespace dualgemm
