// m256n64.cu -- a pair of CTAs (2-SM) for a tile of 64 columns.
#include "kernel/sm100/instances.cuh"

namespace dualgemm {

// The fill of the rings is bound by the number of copies here, so that a scale stage holds two k-tiles. Two
// narrow mma that share A are bound by reading it: a public kernel gained 5 to 10 % on a B200 by keeping it.
constexpr sm100::Options kDense{
    .tile_m = 256, .tile_n = 64, .stages = 7, .scale_stages = 4, .scale_k_tiles = 2, .keep_a = true};

extern constinit const InstanceList LIST(sm100_m256n64) = sm100::kInstances<kDense>;

}  // namespace dualgemm
