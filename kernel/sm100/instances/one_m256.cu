// one_m256.cu -- one product, by a pair of CTAs (2-SM).
#include "kernel/sm100/instances.cuh"

namespace dualgemm {

// A scale stage holds two k-tiles, so that there are fewer copies.
constexpr sm100::Options kN128{.tile_m = 256,
                               .tile_n = 128,
                               .stages = 8,
                               .scale_stages = 4,
                               .scale_k_tiles = 2,
                               .acc_stages = 2,
                               .products = 1};
constexpr sm100::Options kN192{
    .tile_m = 256, .tile_n = 192, .stages = 7, .scale_stages = 4, .acc_stages = 2, .products = 1};
// The widest mma of a pair, whose two accumulators overlap.
constexpr sm100::Options kN256o{
    .tile_m = 256, .tile_n = 256, .stages = 6, .scale_stages = 5, .acc_stages = 2, .products = 1};
constexpr sm100::Options kN256s2{
    .tile_m = 256, .tile_n = 256, .split_k = 2, .stages = 6, .scale_stages = 5, .products = 1};
constexpr sm100::Options kN256og{.tile_m = 256,
                                 .tile_n = 256,
                                 .stages = 5,
                                 .scale_stages = 5,
                                 .acc_stages = 2,
                                 .grouped = true,
                                 .products = 1};

extern constinit const InstanceList LIST(sm100_one_m256) =
    sm100::kInstances<kN128, kN192, kN256o, kN256s2, kN256og>;

}  // namespace dualgemm
