// m256n64.cu -- a pair of CTAs (2-SM) for a tile of 64 columns.
#include "kernel/sm100/instances.cuh"

namespace dualgemm {

// The number of copies limits here how fast the rings are filled, so a scale stage holds two k-tiles. The
// time of two narrow mma that share A is the time to read A: a public kernel gained 5 to 10 % on a B200 by
// keeping A in the collector for the second mma.
constexpr sm100::Options kDense{
    .tile_m = 256, .tile_n = 64, .stages = 7, .scale_stages = 4, .scale_k_tiles = 2, .keep_a = true};

extern constinit const InstanceList LIST(sm100_m256n64) = sm100::kInstances<kDense>;

}  // namespace dualgemm
