// one_product.cu -- one product. The two rings share the shared memory of a CTA, and hold about as many
// k-tiles.
#include "kernel/sm100/instances.cuh"

namespace dualgemm {

// Swap A/B, meant for few rows of A.
constexpr sm100::Options kDecode{
    .tile_m = 64, .tile_n = 128, .stages = 8, .scale_stages = 8, .acc_stages = 2, .products = 1};
constexpr sm100::Options kDecodes4{
    .tile_m = 64, .tile_n = 128, .split_k = 4, .stages = 8, .scale_stages = 8, .products = 1};
constexpr sm100::Options kDecodeg{.tile_m = 64,
                                  .tile_n = 128,
                                  .stages = 7,
                                  .scale_stages = 8,
                                  .acc_stages = 2,
                                  .grouped = true,
                                  .products = 1};

// Tiles of one CTA.
constexpr sm100::Options kM128N128{
    .tile_m = 128, .tile_n = 128, .stages = 6, .scale_stages = 7, .acc_stages = 2, .products = 1};
constexpr sm100::Options kM128N128s2{
    .tile_m = 128, .tile_n = 128, .split_k = 2, .stages = 6, .scale_stages = 7, .products = 1};
constexpr sm100::Options kM128N128s4{
    .tile_m = 128, .tile_n = 128, .split_k = 4, .stages = 6, .scale_stages = 7, .products = 1};
// The widest mma of one CTA, whose two accumulators overlap.
constexpr sm100::Options kM128N256o{
    .tile_m = 128, .tile_n = 256, .stages = 4, .scale_stages = 5, .acc_stages = 2, .products = 1};
constexpr sm100::Options kM128N256og{.tile_m = 128,
                                     .tile_n = 256,
                                     .stages = 4,
                                     .scale_stages = 4,
                                     .acc_stages = 2,
                                     .grouped = true,
                                     .products = 1};

// Tiles of a pair of CTAs (2-SM). Here a scale stage holds two k-tiles, so that there are fewer copies.
constexpr sm100::Options kM256N128{.tile_m = 256,
                                   .tile_n = 128,
                                   .stages = 8,
                                   .scale_stages = 4,
                                   .scale_k_tiles = 2,
                                   .acc_stages = 2,
                                   .products = 1};
constexpr sm100::Options kM256N192{
    .tile_m = 256, .tile_n = 192, .stages = 7, .scale_stages = 4, .acc_stages = 2, .products = 1};
// The widest mma of a pair, whose two accumulators overlap.
constexpr sm100::Options kM256N256o{
    .tile_m = 256, .tile_n = 256, .stages = 6, .scale_stages = 5, .acc_stages = 2, .products = 1};
constexpr sm100::Options kM256N256s2{
    .tile_m = 256, .tile_n = 256, .split_k = 2, .stages = 6, .scale_stages = 5, .products = 1};
constexpr sm100::Options kM256N256og{.tile_m = 256,
                                     .tile_n = 256,
                                     .stages = 5,
                                     .scale_stages = 5,
                                     .acc_stages = 2,
                                     .grouped = true,
                                     .products = 1};

extern constinit const InstanceList LIST(sm100_one_product) =
    sm100::kInstances<kDecode, kDecodes4, kDecodeg, kM128N128, kM128N128s2, kM128N128s4, kM128N256o,
                      kM128N256og, kM256N128, kM256N192, kM256N256o, kM256N256s2, kM256N256og>;

}  // namespace dualgemm
