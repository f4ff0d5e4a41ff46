// m256n128.cu -- a pair of CTAs (2-SM), one mma of N = 256 for both products. The two rings share the shared
// memory of a CTA, and hold about as many k-tiles.
#include "kernel/sm100/instances.cuh"

namespace dualgemm {

constexpr sm100::Options kDense{.tile_m = 256, .tile_n = 128, .stages = 6, .scale_stages = 5};
constexpr sm100::Options kOverlapped{
    .tile_m = 256, .tile_n = 128, .stages = 6, .scale_stages = 5, .acc_stages = 2};
constexpr sm100::Options kSplit{.tile_m = 256, .tile_n = 128, .split_k = 2, .stages = 6, .scale_stages = 5};
constexpr sm100::Options kGrouped{
    .tile_m = 256, .tile_n = 128, .stages = 5, .scale_stages = 5, .acc_stages = 2, .grouped = true};

extern constinit const InstanceList LIST(sm100_m256n128) =
    sm100::kInstances<kDense, kOverlapped, kSplit, kGrouped>;

}  // namespace dualgemm
